from adgn.cli.console import print_table, progress_bar


def test_a_piped_table_has_a_whole_line_per_row(capsys):
    long = "x" * 150
    print_table(("name", "text"), [("a", long), ("b", "[not markup]")])
    header, first, second = capsys.readouterr().out.splitlines()
    assert header.split() == ["name", "text"]
    assert first.split() == ["a", long]
    assert second.split(maxsplit=1)[1].rstrip() == "[not markup]"


def test_piped_progress_is_a_line_per_tenth_on_stderr(capsys):
    with progress_bar("work") as progress:
        for done in range(1, 101):
            progress(done, 100)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [f"work: {10 * i} %" for i in range(1, 11)]


def test_progress_on_a_terminal_is_a_bar(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with progress_bar("work") as progress:
        progress(50, 100)
    assert "work" in capsys.readouterr().err
