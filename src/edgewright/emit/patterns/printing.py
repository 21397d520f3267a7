"""The files of patterns, and the records and calls that stand in the networks' own files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ...kernels.printing.source import CWriter, braced, comment
from ..files import kernel_text, renamed
from .atoms import StageReader
from .fields import Arrays, arrays_of
from .grouping import grouped
from .pattern import Pattern, PrintedStage, array_name


@dataclass(frozen=True, slots=True)
class StageProbe:
    """C that is called before each stage, with the number of its library (`own`) and its own (`stage`)."""

    text: str
    may_stop: bool = False  # it is a condition, and ends the run where it holds

    @property
    def counts(self) -> bool:
        """Whether it takes the numbers."""
        return "stage" in self.text


def kernel_types(kernels: Iterable[str]) -> Mapping[str, str]:
    """The types of kernels that are declared by the name of a function type, as those behind pointers are."""
    texts = [kernel_text(f"{name}.h") for name in kernels]
    return {name: ctype for text in texts for ctype, name in re.findall(r"^(ew_\w+) (ew_\w+);$", text, re.M)}


class StagePatterns:
    """The patterns among the stages of several networks."""

    def __init__(
        self,
        prefix: str,
        memories: Sequence[str],
        stages: Sequence[tuple[PrintedStage, StageReader]],
        probe: StageProbe,
    ) -> None:
        """All stages stand in C functions with these arenas as parameters, and are run with a probe before each."""
        self.prefix, self.memories, self.probe = prefix, memories, probe
        self.patterns: list[Pattern] = []
        left = [(stage, reader) for stage, reader in stages]
        for has_own_tables in (True, False):
            read = {
                n: (reader.atoms(stage.text, has_own_tables), stage.index) for n, (stage, reader) in enumerate(left)
            }
            groups = grouped(read)
            for group in groups:
                own, atoms = tuple(left[n][0] for n in group), tuple(read[n][0] for n in group)
                layers = sum(pattern.layer_count for pattern in self.patterns)
                self.patterns.append(Pattern(len(self.patterns), layers, own, atoms))
            taken = {n for group in groups for n in group}
            left = [one for n, one in enumerate(left) if n not in taken]
        self._at = {
            (stage.network, stage.index): (pattern, at)
            for pattern in self.patterns
            for at, stage in enumerate(pattern.stages)
        }

    def covers(self, network: str, index: int) -> bool:
        """Whether the stage is one of a pattern."""
        return (network, index) in self._at

    @cached_property
    def arrays(self) -> Arrays:
        return arrays_of(field for pattern in self.patterns for field in pattern.fields)

    def records(self, network: str, indices: Sequence[int], name: str) -> list[str]:
        """The definition of the records of stages in a row."""
        found = [self._at[network, index] for index in indices]
        lines = ["static const struct {"]
        lines += [f"    {pattern.record} s{index};" for index, (pattern, _) in zip(indices, found, strict=True)]
        lines += [f"}} {name} = {{"]
        for pattern, at in found:
            lines.append(f"    {pattern.initialiser(at, self.arrays)}, /* {comment(pattern.stages[at].title)} */")
        return [*lines, "};"]

    def call(self, indices: Sequence[int], name: str, number: int) -> str:
        """C of the call that runs stages in a row; true where it was stopped."""
        own = [str(number), str(indices[0])] if self.probe.counts else []
        given = [f"&{name}.s{indices[0]}.pattern", str(len(indices)), *own, *self.memories]
        return f"ew_run_patterns({', '.join(given)})"

    @property
    def _signature(self) -> str:
        given = ("const ew_pattern *pattern", "const ew_layer *of_layer")
        return ", ".join([*given, *(f"uint8_t *{memory}" for memory in self.memories)])

    @property
    def _runner(self) -> str:
        own = ["int32_t own", "int32_t stage"] if self.probe.counts else []
        given = [
            "const ew_pattern *pattern",
            "int32_t count",
            *own,
            *(f"uint8_t *{memory}" for memory in self.memories),
        ]
        return f"{'int32_t' if self.probe.may_stop else 'void'} ew_run_patterns({', '.join(given)})"

    def _write_runner(self, c: CWriter) -> None:
        may_stop, text = self.probe.may_stop, self.probe.text
        names = [pattern.layer_name(n) for pattern in self.patterns for n in range(pattern.layer_count)]
        c.line(f"static const ew_layer *const layers[] = {braced([f'&{name}.layer' for name in names])};")
        c.line()
        with c.block(self._runner):
            with c.block(f"for (; count; count--{', stage++' if self.probe.counts else ''})"):
                c.line("EW_FENCE();")
                if text:
                    c.line(f"if ({text}) return 1;" if may_stop else f"{text};")
                c.line("const ew_layer *const layer = layers[pattern->layer];")
                c.line(f"pattern = layer->run(pattern, layer, {', '.join(self.memories)});")
                if may_stop:
                    c.line("if (!pattern) return 1;")
            if may_stop:
                c.line("return 0;")

    def files(self) -> dict[str, str]:
        """PREFIX_patterns.h and PREFIX_patterns.c."""
        if not self.patterns:
            return {}
        about = f"/* {self.prefix}: code that stages of several networks share, and what differs between them. */"
        files = {"h": self._header(about), "c": self._source(about)}
        return {f"{self.prefix}_patterns.{end}": renamed(text, self.prefix) for end, text in files.items()}

    def _header(self, about: str) -> str:
        guard = f"{self.prefix.upper()}_PATTERNS_H"
        lines = [about, f"#ifndef {guard}", f"#define {guard}", "", "#include <stdint.h>"]
        lines += [f'#include "{self.prefix}_{name}.h"' for name in ("kernels", "weights")]
        lines += [
            "",
            "typedef struct {",
            f"    uint{32 if any(one.has_pointers for one in self.patterns) else 16}_t layer;",
            "} ew_pattern; /* a stage's record, followed by that of the next */",
            "typedef struct ew_layer ew_layer;",
            "struct ew_layer {",
            f"    const ew_pattern *(*run)({self._signature}); /* the stage; returns the next one, or 0 to stop */",
            "};",
            "",
        ]
        for pattern in self.patterns:
            lines += [*pattern.declarations(), ""]
        lines += ["/* The stages in a row. */", f"{self._runner};", "", f"#endif /* {guard} */", ""]
        return "\n".join(lines)

    def _source(self, about: str) -> str:
        c = CWriter()
        c.lines += [about, f'#include "{self.prefix}_patterns.h"']
        c.lines += [f'#include "{self.prefix}_probe.h"', ""] if self.probe.text else [""]
        for element, values in self.arrays.items():
            c.line(f"static const {element} {array_name(element)}[{len(values)}] = {braced(values)};")
        c.line()
        for pattern in self.patterns:
            pattern.write(c, self._signature, self.memories, self.arrays)
        self._write_runner(c)
        return c.text()
