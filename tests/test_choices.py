from adgn.choices import unknown_name


def test_the_nearest_name_is_suggested():
    assert "Did you mean 'gcn'?" in str(unknown_name("phi", "gnc", ["sum", "gcn"]))


def test_no_suggestion_where_nothing_is_near():
    message = str(unknown_name("phi", "transformer", ["sum", "gcn"]))
    assert message == "phi='transformer' is not known. Choose one of: gcn, sum."
