"""Tables in files and in memory."""

import ast
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from adgn._util import environment
from adgn.data import Graph, GraphInputError, own
from adgn.data.own.tables import open_table
from adgn.data.own.textfiles import TextFormat

COLUMNS = {"id": ["a", "b"], "n": [1, None], "x": [0.5, 1.5], "ok": [True, False]}


def read(source, **form):
    table = open_table(source, "nodes", TextFormat(**form))
    return table.read(table.names).to_pydict()


def write(path, data):
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


@pytest.mark.parametrize(
    "ending", [".csv", ".tsv", ".txt", ".parquet", ".pq", ".feather", ".arrow"]
)
def test_files_by_their_ending(tmp_path, ending):
    path = tmp_path / f"nodes{ending}"
    if ending in (".parquet", ".pq"):
        pa.parquet.write_table(pa.table(COLUMNS), path)
    elif ending in (".feather", ".arrow"):
        pa.feather.write_feather(pa.table(COLUMNS), str(path))
    else:
        tab = "\t" if ending == ".tsv" else ","
        rows = ["id,n,x,ok", "a,1,0.5,true", "b,,1.5,false"]
        write(path, "".join(f"{row}\n" for row in rows).replace(",", tab))
    assert read(path) == COLUMNS
    assert read(str(path)) == COLUMNS


def test_compressed_text(tmp_path):
    path = tmp_path / "nodes.tsv.gz"
    with pa.output_stream(str(path), compression="gzip") as file:
        file.write(b"id\tn\na\t1\n")
    assert read(path) == {"id": ["a"], "n": [1]}


class SpeaksArrow:
    """What pandas, polars and DuckDB have."""

    def __arrow_c_stream__(self, requested_schema=None):
        return pa.table(COLUMNS).__arrow_c_stream__(requested_schema)


class SpeaksInterchange:
    """What older data frames have."""

    def __dataframe__(self, nan_as_null=False, allow_copy=True):
        return pa.table(COLUMNS).__dataframe__(nan_as_null, allow_copy)


@pytest.mark.parametrize(
    "source", [SpeaksArrow(), SpeaksInterchange(), pa.table(COLUMNS), COLUMNS], ids=type
)
def test_objects_with_columns(source):
    assert read(source) == COLUMNS


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames(library):
    frames = pytest.importorskip(library)
    frame = frames.DataFrame({"id": ["a", "b"], "kind": ["x", None]})
    graph = Graph.from_tables(frame, frames.DataFrame({"source": ["a"], "target": ["b"]}))
    assert graph.ids.to_pylist() == ["a", "b"]
    assert graph.node_columns.to_pydict() == {"kind": ["x", None]}
    assert graph.edge_index.tolist() == [[0], [1]]


def test_an_index_of_pandas_is_no_feature():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"id": ["a", "b", "c"], "v": [1, 2, 3]}).drop(index=1)
    graph = Graph.from_tables(frame, None)
    assert graph.node_columns.column_names == ["v"]
    named = Graph.from_tables(frame.set_index("id"), None, id="id")
    assert named.ids.to_pylist() == ["a", "c"]


def test_results_of_duckdb():
    duckdb = pytest.importorskip("duckdb")
    nodes = duckdb.sql("select range as id, range * 0.5 as x from range(3)")
    edges = duckdb.sql("select 0 as source, 2 as target")
    graph = Graph.from_tables(nodes, edges)
    assert graph.ids.to_pylist() == [0, 1, 2]
    assert graph.edge_index.tolist() == [[0], [2]]


def test_no_library_of_data_frames_is_imported():
    for path in Path(own.__path__[0]).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) else []
            roots = {name.partition(".")[0] for name in names}
            assert not roots & {"pandas", "polars", "duckdb", "igraph"}, path.name


def test_things_that_are_no_table(tmp_path):
    with pytest.raises(GraphInputError, match=r"nodes is an int; give a path"):
        read(5)
    with pytest.raises(GraphInputError, match=r"nodes=.*nowhere.csv': there is no such file"):
        read(tmp_path / "nowhere.csv")
    with pytest.raises(GraphInputError, match=r"is a folder; .* Graph.from_folder"):
        read(tmp_path)
    with pytest.raises(GraphInputError, match=r"ending that is not known; tables end in .csv"):
        read(write(tmp_path / "nodes.xlsx", b"PK"))
    with pytest.raises(GraphInputError, match="cannot be read as its ending says"):
        read(write(tmp_path / "nodes.parquet", b"id,x\n1,2\n"))
    with pytest.raises(GraphInputError, match="cannot be read as its ending says"):
        read(write(tmp_path / "nodes.feather", b"id,x\n1,2\n"))
    with pytest.raises(GraphInputError, match="values of one type"):
        read({"id": [1, "a"]})
    with pytest.raises(GraphInputError, match="nodes has no columns"):
        read({})


def test_columns_of_the_same_name(tmp_path):
    with pytest.raises(GraphInputError, match="more than one column named 'a'"):
        read(write(tmp_path / "n.csv", "id,a,a\n1,2,3\n"))


@pytest.mark.parametrize(("sign", "name"), [(";", "a semicolon"), ("\t", "a tab"), ("|", "a bar")])
def test_a_wrong_delimiter_is_told(tmp_path, sign, name):
    nodes = write(tmp_path / "nodes.csv", f"id{sign}age\na{sign}5\n")
    message = rf"nodes.csv has one column where a comma .* {name} separated .* delimiter="
    with pytest.raises(GraphInputError, match=message):
        Graph.from_tables(nodes, None)
    graph = Graph.from_tables(nodes, None, delimiter=sign)
    assert graph.node_columns.to_pydict() == {"age": [5]}


def test_edges_in_one_column():
    with pytest.raises(GraphInputError, match="edges has one column, 'pair'; edges need two"):
        Graph.from_tables({"id": [1]}, {"pair": [1]})


def test_decimal_commas(tmp_path):
    nodes = write(tmp_path / "nodes.csv", "id;age\na;5,5\nb;7,25\n")
    graph = Graph.from_tables(nodes, None, delimiter=";", decimal=",")
    assert graph.node_columns.to_pydict() == {"age": [5.5, 7.25]}


@pytest.mark.parametrize("text", ["id,name\n1,José\n", "id,name\n" + "1,x\n" * 400_000 + "2,é\n"])
def test_a_wrong_encoding_is_told(tmp_path, text):
    nodes = write(tmp_path / "nodes.csv", text.encode("latin-1"))
    with pytest.raises(GraphInputError, match=r"nodes.csv is not written in UTF-8.*latin-1"):
        read(nodes)
    assert read(nodes, encoding="latin-1")["name"][-1] in ("José", "é")


def test_utf_16_is_recognised(tmp_path):
    nodes = write(tmp_path / "nodes.csv", "id,name\n1,José\n".encode("utf-16"))
    with pytest.raises(GraphInputError, match=r"give encoding='utf-16'"):
        read(nodes)
    assert read(nodes, encoding="utf-16") == {"id": [1], "name": ["José"]}
    with pytest.raises(GraphInputError, match="encoding='klingon' is not known"):
        read(write(tmp_path / "plain.csv", "id\n1\n"), encoding="klingon")


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path):
    assert read(write(tmp_path / "n.csv", b"\xef\xbb\xbfid,x\na,1\n")) == {"id": ["a"], "x": [1]}


def test_binary_files_and_files_without_header(tmp_path):
    with pytest.raises(GraphInputError, match="not a text file"):
        read(write(tmp_path / "a.csv", b"PK\0\0,\n"))
    with pytest.raises(GraphInputError, match=r"has no header: its first line is '0,1'"):
        read(write(tmp_path / "b.csv", "0,1\n1,2\n"))
    with pytest.raises(GraphInputError, match="its first line is empty"):
        read(write(tmp_path / "c.csv", "\n\n"))


def test_rows_of_another_length_are_told_by_line(tmp_path):
    path = write(tmp_path / "n.csv", "id,x\na,1\nb,2,3\n")
    with pytest.raises(GraphInputError, match=r"n.csv: line 3 has 3 columns, the header has 2"):
        read(path)


def test_cells_with_several_lines_and_types_that_show_late(tmp_path):
    late = "".join(f"{number},1\n" for number in range(300_000))
    path = write(tmp_path / "n.csv", f'id,v\n{late}x,"two\nlines"\n')
    columns = read(path)
    assert columns["id"][-1] == "x"
    assert columns["v"][:1] == ["1"]
    assert columns["v"][-1] == "two\nlines"


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".feather"])
def test_a_file_larger_than_memory_is_refused(tmp_path, monkeypatch, ending):
    path = tmp_path / f"nodes{ending}"
    table = pa.table({"id": list(range(1000)), "x": [0.25] * 1000})
    if ending == ".parquet":
        pa.parquet.write_table(table, path)
    elif ending == ".feather":
        pa.feather.write_feather(table, str(path))
    else:
        write(path, "id,x\n" + "".join(f"{number},0.25\n" for number in range(1000)))
    assert len(read(path)["id"]) == 1000
    monkeypatch.setattr(environment, "available_bytes", lambda: 1000.0)
    with pytest.raises(
        environment.NotEnoughMemoryError, match=rf"reading nodes{ending} needs about.*"
    ):
        read(path)
    monkeypatch.setenv("ADGN_MEMORY_CHECK", "off")
    assert len(read(path)["id"]) == 1000
