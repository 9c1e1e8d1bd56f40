"""`adgn explain`: which nodes and distances a prediction depends on."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from adgn.cli.console import NewEdges, NewNodes, PluginOption, print_table, say
from adgn.cli.model_folder import model_and_graph, refuse_bad_input

if TYPE_CHECKING:
    from adgn.estimators import Explanation, GraphEstimator


def explain(
    folder: Annotated[Path, Argument(help="A model of `adgn fit`.")],
    node: Annotated[
        str,
        Option(
            metavar="ID",
            help="The id of the node, of many graphs GRAPH/ID; of the graph, if graphs are "
            "predicted.",
        ),
    ],
    nodes: NewNodes = None,
    edges: NewEdges = None,
    out: Annotated[
        Path | None, Option(help="The picture to write: .png. Default: explain-ID.png in FOLDER.")
    ] = None,
    top: Annotated[int, Option(min=1, help="How many nodes the table shows.")] = 10,
    plugin: PluginOption = None,
) -> None:
    """Show which nodes and which distances the prediction of a node depends on.

    The shares are those of the sensitivity: how much the prediction changes with the features of
    each node.
    """
    with refuse_bad_input():
        from adgn._util.figures import figure_bytes
        from adgn._util.files import write_file
        from adgn.report.explanation import explanation_figure

        if out is not None and out.suffix.lower() != ".png":
            raise ValueError(f"--out={out}: the picture is a .png file")
        estimator, graph = model_and_graph(folder, nodes, edges)
        found = estimator.explain(node, graph)
        say(_headline(estimator, found))
        shares = found.by_distance()
        if shares.keys() - {0}:
            rows = [
                ["no way" if distance < 0 else f"{distance}", f"{100 * share:.1f} %"]
                for distance, share in shares.items()
            ]
            print_table(["distance, edges", "share"], rows)
        rows = [
            [str(name), "no way" if distance < 0 else f"{distance}", f"{100 * share:.1f} %"]
            for name, distance, share in zip(
                found.nodes.to_pylist()[:top],
                found.distance.tolist(),
                found.share.tolist(),
                strict=False,
            )
        ]
        print_table(["node", "distance, edges", "share"], rows)
        safe = "".join(c if c.isalnum() or c in "-_" else "_" for c in node)
        picture = out or folder / f"explain-{safe}.png"
        picture.parent.mkdir(parents=True, exist_ok=True)
        write_file(picture, figure_bytes(explanation_figure(found), "png"))
        say(f"picture: {picture}")


def _headline(estimator: "GraphEstimator", found: "Explanation") -> str:
    """The prediction in a line."""
    encoder = estimator.encoder_
    if estimator.kind == "classification":
        place = int(found.output.argmax())
        label, share = encoder.classes[place], float(found.output[place])
        return f"{found.id}: {encoder.names[0]} = {label}, probability {share:.3f}"
    values = estimator.encoder_.decode(found.output.view(1, -1))[0]
    parts = (f"{n} = {float(v):.4g}" for n, v in zip(encoder.names, values, strict=True))
    return f"{found.id}: {', '.join(parts)}"
