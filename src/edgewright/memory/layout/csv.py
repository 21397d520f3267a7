"""Reads and writes layout problems as CSV files in MiniMalloc's format."""

import csv
import io
from pathlib import Path

from ...errors import InputError
from ...files import write_atomic
from .problem import Item, LayoutProblem, Placement

_COLUMNS = {  # accepted column names, the usual one first
    "name": ("id", "name", "buffer"),
    "start": ("lower", "start", "begin"),
    "end": ("upper", "end"),
    "size": ("size",),
}
_MOST_BYTES = 64 << 20  # of a file
_MOST = 1 << 48  # largest number in it


def read_csv(path: Path | str) -> LayoutProblem:
    """The problem in a CSV file with columns id, lower, upper, size in any order; `upper` is one past the last."""
    path = Path(path)
    rows = csv.reader(io.StringIO(_text(path)), strict=True)
    try:
        header = next(rows, None)
        if header is None:
            raise InputError(f"{path}: the file is empty; its first line must name the columns id,lower,upper,size")
        where = _find_columns(path, [cell.strip().lower() for cell in header])
        items: dict[str, Item] = {}
        for row in rows:
            if any(cell.strip() for cell in row):
                item = _item(f"{path}, line {rows.line_num}", row, where, header)
                if item.name in items:
                    raise InputError(
                        f"{path}, line {rows.line_num}, column {header[where['name']]}: {item.name!r} is there twice; "
                        "give every buffer its own id"
                    )
                items[item.name] = item
    except csv.Error as error:
        raise InputError(f"{path}, line {rows.line_num}: not CSV: {error}") from None
    if not items:
        raise InputError(f"{path}: there is no buffer below the header; add one line for each buffer")
    return LayoutProblem(tuple(items.values()))


def write_csv(path: Path | str, problem: LayoutProblem, placement: Placement) -> None:
    """Writes the buffers with their addresses, in the order of `problem`: id,lower,upper,size,offset."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("id", "lower", "upper", "size", "offset"))
    for item in problem.items:
        writer.writerow((item.name, item.start, item.end, item.size, placement.offsets[item.name]))
    write_atomic(path, text.getvalue())


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise InputError(f"{path}: larger than {_MOST_BYTES >> 20} MiB; is this a list of buffers?")
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{path}: not a text file; give a CSV with the columns id,lower,upper,size") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None


def _find_columns(path: Path, header: list[str]) -> dict[str, int]:
    where = {}
    for what, names in _COLUMNS.items():
        present = [name for name in names if name in header]
        if not present:
            raise InputError(f"{path}, line 1: column {names[0]!r} is missing among {header}")
        where[what] = header.index(present[0])
    return where


def _item(at: str, row: list[str], where: dict[str, int], header: list[str]) -> Item:
    def number(what: str) -> int:
        text = cell(what)
        try:
            value = int(text)
        except ValueError:
            raise InputError(f"{at}, column {header[where[what]]}: {text[:40]!r} is not a whole number") from None
        if abs(value) > _MOST:
            raise InputError(f"{at}, column {header[where[what]]}: {text[:40]} is beyond 2^48; check the unit")
        return value

    def cell(what: str) -> str:
        if where[what] >= len(row) or not row[where[what]].strip():
            raise InputError(f"{at}, column {header[where[what]]}: the value is missing")
        return row[where[what]].strip()

    name, start, end, size = cell("name"), number("start"), number("end"), number("size")
    if size < 0:
        raise InputError(f"{at}, column {header[where['size']]}: {size} is negative; a size is at least 0")
    if end <= start:
        raise InputError(f"{at}, column {header[where['end']]}: {end} must come after {start}, where the life begins")
    return Item(name, start, end, size)
