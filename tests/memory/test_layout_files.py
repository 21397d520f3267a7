"""Layout files: MiniMalloc's CSV in and out, broken ones, and its challenging instances."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewright.errors import InputError
from edgewright.memory.layout import (
    Item,
    LayoutEffort,
    LayoutProblem,
    conflicts,
    place_optimal,
    read_csv,
    write_csv,
)

_FOLDER = Path(os.environ.get("EDGEWRIGHT_CORPUS", "")) / "data" / "minimalloc"


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "buffers.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(1, 9), st.integers(0, 1 << 40)), min_size=1))
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int, int]]) -> None:
    problem = LayoutProblem(tuple(Item(f"b, {n}", s, s + d, size) for n, (s, d, size) in enumerate(rows)))
    placement = place_optimal(problem, effort=LayoutEffort.QUICK)
    path = tmp_path_factory.mktemp("csv") / "out.csv"
    write_csv(path, problem, placement)
    assert read_csv(path) == problem
    offsets = [int(line.rsplit(",", 1)[1]) for line in path.read_text().splitlines()[1:]]
    assert offsets == list(placement.offsets.values())


def test_any_column_order_and_other_names(tmp_path: Path) -> None:
    text = "size, hint ,End,begin,id\n7,-1,4,2,x\n\n 3 ,,9,4,y\n"
    assert read_csv(write(tmp_path, text)).items == (Item("x", 2, 4, 7), Item("y", 4, 9, 3))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("id,lower,upper,size\n", "no buffer below the header"),
        ("id,lower,size\n1,2,3\n", "line 1: column 'upper' is missing"),
        ("id,lower,upper,size\n1,0,2,8\n2,0,x,8\n", "line 3, column upper: 'x' is not a whole number"),
        ("id,lower,upper,size\n1,0,2,8.5\n", "line 2, column size: '8.5' is not a whole number"),
        ("id,lower,upper,size\n1,0,2\n", "line 2, column size: the value is missing"),
        ("id,lower,upper,size\n1,0,2,-8\n", "line 2, column size: -8 is negative"),
        ("id,start,end,size\n1,2,2,8\n", "line 2, column end: 2 must come after 2"),
        ("id,lower,upper,size\n1,0,2,8\n1,0,2,8\n", "line 3, column id: '1' is there twice"),
        ("id,lower,upper,size\n1,0,2,99999999999999999999\n", "line 2, column size: 9+ is beyond"),
        ("id,lower,upper,size\n1,0,2," + "9" * 5000 + "\n", "line 2, column size: '9+' is not a whole"),
        (b"id,lower,upper,size\n\xff\xfe\x00\x01", "not a text file"),
        ('id,lower,upper,size\n"1,0,2,8\n', "not CSV"),
    ],
)
def test_bad_files(tmp_path: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(InputError, match=message) as raised:
        read_csv(write(tmp_path, text))
    assert "buffers.csv" in str(raised.value)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nothing\.csv: cannot be read"):
        read_csv(tmp_path / "nothing.csv")
    with pytest.raises(InputError, match="cannot be read"):
        read_csv(tmp_path)


@pytest.mark.skipif(not _FOLDER.is_dir(), reason="set EDGEWRIGHT_CORPUS to a folder with data/minimalloc")
@pytest.mark.parametrize("name", "ABCDEFGHIJK")
def test_minimalloc(name: str) -> None:
    """Moffitt, ASPLOS'23: each of the challenging instances fits the capacity in its name."""
    (path,) = _FOLDER.glob(f"{name}.*.csv")
    capacity = int(path.name.split(".")[1])
    problem = read_csv(path)
    placement = place_optimal(problem, capacity)
    assert conflicts(problem, placement) == []
    assert placement.peak <= capacity
    # Where the capacity is live at once, fitting it is the optimum. C reaches its 1015 KiB as well.
    assert placement.optimal == (name not in "DJ")
