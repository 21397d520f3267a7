"""What running a driver cannot show: text that the preprocessor leaves out, and numbers of lines.

Both designs come from the same rewriting, so that what it loses is lost in both. The source itself is looked at here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from ..design import Analysis
from ..language.macros import LINE
from .verification import Difference

_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*((?:if|ifdef|ifndef|elif|else|endif|define|undef)\b[^\n]*)", re.MULTILINE)
_TESTED = re.compile(r"^(?:ifdef|ifndef)\s+(\w+)|\bdefined\s*\(?\s*(\w+)")
_LINE_USE = re.compile(rf"\b{LINE}\b")
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)


def text_faults(analysis: Analysis, generated: Mapping[str, str]) -> Iterator[Difference]:
    """What the generated files, by the names of the sources, lack of their sources' text."""
    for file, content in analysis.source.files.items():
        source, made = content.decode(errors="replace"), _COMMENT.sub("", generated[file])
        known = iter(_lines(made))
        for function in analysis.functions:
            if function.file != file:
                continue
            first, last = function.body
            body = _COMMENT.sub("", content[first:last].decode(errors="replace"))
            for line in _lines(body):
                if line not in known:  # goes on behind the last that was found
                    yield Difference(function.name, function.name, f"the line '#{line}' is gone")
                    return
            source = source.replace(content[first:last].decode(errors="replace"), "", 1)
        if len(_LINE_USE.findall(made)) > len(_LINE_USE.findall(_COMMENT.sub("", source))):
            yield Difference(file, file, f"{LINE} is not the number that it is in the source")


def choices(analysis: Analysis, defines: Sequence[str] = ()) -> tuple[str, ...]:
    """The macros on which it depends what is left out of functions with accesses, and which nobody defines."""
    given = {define.partition("=")[0] for define in defines} | set(analysis.source.macros.bodies)
    found: dict[str, None] = {}
    for function in analysis.functions:
        if function.accesses:
            body = analysis.source.text(function.file, function.body)
            tested = (_TESTED.findall(line) for line in _lines(_COMMENT.sub("", body)))
            found |= dict.fromkeys(name for names in tested for pair in names for name in pair if name)
    return tuple(name for name in found if name not in given)


def _lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in _DIRECTIVE.findall(text)]
