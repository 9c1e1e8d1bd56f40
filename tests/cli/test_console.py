from adgn.cli.console import print_table


def test_a_piped_table_has_a_whole_line_per_row(capsys):
    long = "x" * 150
    print_table(("name", "text"), [("a", long), ("b", "[not markup]")])
    header, first, second = capsys.readouterr().out.splitlines()
    assert header.split() == ["name", "text"]
    assert first.split() == ["a", long]
    assert second.split(maxsplit=1)[1].rstrip() == "[not markup]"
