"""The driver's files with every access made a call of its HAL function; all other text stays as it is (S 6.5)."""

from __future__ import annotations

from collections.abc import Mapping

from ..design import Design
from .calls import Call, Marks
from .definitions import drop_definitions
from .edits import Sheet
from .facts import facts_of
from .rewriter import Rewriter


def rewritten_files(design: Design, name: str, names: Mapping[Call, str], marks: Marks) -> dict[str, str]:
    """The text of each of the driver's files, by the name it has in the source."""
    source = design.analysis.source
    sheets = {file: Sheet(text) for file, text in source.files.items()}
    facts = facts_of(source, design.analysis.description)
    for file, sheet in sheets.items():
        drop_definitions(sheet, source.definitions.get(file, ()), f"{name}_hal.h")
    for function in design.analysis.functions:
        Rewriter(design, function, sheets[function.file], names, facts, marks).rewrite()
    return {file: sheet.edited((0, len(sheet.original))) for file, sheet in sheets.items()}
