"""Generated C: the HAL header and the driver rewritten to use it; layout and merges are decided elsewhere."""

from __future__ import annotations

from os.path import commonpath, relpath
from pathlib import Path

from ...errors import InputError
from ..design import Design
from ..language.source import Source
from .calls import Marks, names_of, needed_calls
from .header import hal_header
from .rewriter import rewritten_files

SUPPORT_HEADER = Path(__file__).parent.parent / "include" / "edgewright_hal.h"


def generate(design: Design, name: str, marks: Marks | None = None) -> dict[str, str]:
    """The text of every generated file by its name: the driver's own files, `<name>_hal.h`, the support header.

    Accesses with a mark call functions of their own, by which the prototype knows them.
    """
    names, targets = names_of(needed_calls(design, marks)), file_names(design.analysis.source)
    files = {f"{name}_hal.h": hal_header(design, name, names), SUPPORT_HEADER.name: SUPPORT_HEADER.read_text()}
    for file, text in rewritten_files(design, name, names, marks or {}, targets).items():
        if targets[file] in files:
            raise InputError(f"'{file}' would be written over another file '{targets[file]}'. Rename one of them.")
        files[targets[file]] = text
    return files


def rewritten(design: Design) -> dict[str, str]:
    """The driver's own files by the names that they have in the source."""
    return rewritten_files(design, "driver", names_of(needed_calls(design)), {}, file_names(design.analysis.source))


def file_names(source: Source) -> dict[str, str]:
    """The name of each of the driver's files in the output folder: as it is included, or lies below the main files."""
    root = commonpath([str(Path(path).absolute().parent) for path in source.main])
    found = {}
    for file in source.files:
        relative = Path(relpath(Path(file).absolute(), root))
        found[file] = source.found.get(file) or (relative.name if relative.parts[0] == ".." else relative.as_posix())
    return found
