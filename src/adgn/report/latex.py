r"""Tables in LaTeX, for `\usepackage{booktabs}`."""

from adgn.report.grid import Grid, Line

_SPECIALS = {
    **{c: f"\\{c}" for c in "{}$&#%_"},
    **{"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"},
    **{"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"},
    **{"−": "$-$", "±": r"$\pm$", "×": r"$\times$", "–": "--", "“": "``", "”": "''"},
    **{"ε": r"$\varepsilon$", "γ": r"$\gamma$", "Φ": r"$\Phi$"},
}


def escape_latex(text: str) -> str:
    r"""Text that LaTeX sets as it is.

    Example:
        >>> escape_latex("100 % of a_b")
        '100 \\% of a\\_b'
    """
    return " ".join("".join(_SPECIALS.get(c, c) for c in text).split())


def latex_grid(grid: Grid) -> str:
    """A table of a report, complete with its float; the best values are bold."""
    head = map(escape_latex, [grid.corner, *(column.title for column in grid.heads)])
    notes = [f"{column.title}: {column.note}" for column in grid.heads if column.note]
    caption = escape_latex(". ".join([grid.caption, "Bold: the best of its column", *notes]))
    blocks = ["\n".join(map(_line, block)) for block in grid.blocks]
    return "\n".join(
        [
            r"% needs \usepackage{booktabs}",
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{caption}.}}",
            rf"\label{{tab:{grid.key}}}",
            rf"\begin{{tabular}}{{l{'r' * len(grid.heads)}}}",
            r"\toprule",
            " & ".join(head) + r" \\",
            r"\midrule",
            "\n\\addlinespace\n".join(blocks),
            r"\bottomrule",
            r"\end{tabular}",
            *(
                rf"\par\smallskip\footnotesize $^{{{note.mark}}}$ {escape_latex(note.whole)}"
                for note in grid.notes
            ),
            r"\end{table}",
            "",
        ]
    )


def _line(line: Line) -> str:
    mark = f"$^{{{line.mark}}}$" if line.mark else ""
    texts = [("" if line.main else r"\quad ") + escape_latex(line.label) + mark]
    for entry in line.entries:
        text = escape_latex(entry.text)
        texts.append(rf"\textbf{{\boldmath {text}}}" if entry.best else text)
    return " & ".join(texts) + r" \\"
