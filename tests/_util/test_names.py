import pytest

from adgn._util.names import check_name


@pytest.mark.parametrize("name", ["a", "texas-adgn-compact", "größe 3", "v1.2", "a" * 200])
def test_a_name_can_be_a_folder_in_its_place(name, tmp_path):
    assert check_name(name) == name
    (tmp_path / f"{name}.json").write_text("")
    assert list(tmp_path.iterdir()) == [tmp_path / f"{name}.json"]


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "/etc", "a/b", "a\\b", "a\0", "a\nb", "\ud800", 3, None, ["a"]]
)
def test_what_is_no_name(name):
    with pytest.raises(ValueError, match=r"study=.* is not a name"):
        check_name(name, "study")


def test_a_name_that_is_too_long_is_not_shown_whole():
    with pytest.raises(ValueError, match="has 300 bytes; use at most 200") as error:
        check_name("a" * 300)
    assert len(str(error.value)) < 160
    with pytest.raises(ValueError, match="has 202 bytes"):
        check_name("ü" * 101)
