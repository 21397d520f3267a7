"""Verification of a design: the driver with one register for each field against the driver with the layout (S 6.6)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from ...board.toolchain import toolchain
from ...board.unicorn import require_unicorn
from ...errors import EdgewrightError
from ..analysis.functions import Function
from ..design import Analysis, Design
from ..design_flow import naive
from ..generate import generate, rewritten
from ..generate.calls import Call, Marks, call_for, marks_of, names_of, needed_calls
from ..language.lexical import blanked
from ..language.macros import LINE
from .abi import Signature, Type
from .build import HOOKS, build, free_window, target_named
from .calls import bounds_of
from .compare import Runnable, compare
from .peripheral import Models, models_for
from .prototype import CALLBACKS, CRITICAL, Prototype, Variant
from .requests import requests_of
from .signatures import exported, foreign_pages, signatures_of, watched_variables, weak_functions
from .verification import Difference, Verification

# With no function inlined, the prototype watches critical sections; they are not measured.
_WATCHED = (
    f"HAL_ENTER_CRITICAL()=({{void {CRITICAL[0]}(void);{CRITICAL[0]}();}})",
    f"HAL_EXIT_CRITICAL()=({{void {CRITICAL[1]}(void);{CRITICAL[1]}();}})",
)

MOST_CHOICES = 4  # macros that decide what is left out of functions
FEW_CALLS = 8


def verify(
    analysis: Analysis,
    design: Design,
    *,
    target: str = "rv32imc",
    model: Models | None = None,
    calls: int = 32,
    seed: int = 0,
    measure: bool = True,
    includes: Sequence[Path] = (),
    defines: Sequence[str] = (),
) -> Verification:
    """Every function of the driver that other files can call, `calls` times with drawn arguments on both layouts.

    Once more with each of the macros that decide what is left out, and the text is compared with that of the source.
    Without `measure`, code is run with no function inlined only: half the work, and counts that say little.
    """
    models_for(model or (), analysis.description)  # before the work: it may not fit

    def compared(more: Sequence[str], measure: bool, calls: int) -> Verification:
        variants = [
            variant_of(one, target, measure=measure, includes=includes, defines=[*defines, *more])
            for one in (naive(analysis), design)
        ]
        return compare_variants(analysis, variants[0], variants[1], model or (), calls, seed)

    found = compared((), measure, calls)
    differences = [*found.differences, *text_faults(analysis, rewritten(design))]
    for name in choices(analysis, defines)[:MOST_CHOICES]:
        with suppress(EdgewrightError):  # it may not compile so
            other = compared((name,), False, min(calls, FEW_CALLS)).differences
            differences += [replace(one, call=f"{one.call} with -D {name}") for one in other]
    return replace(found, differences=tuple(differences))


def missing_tools(target: str) -> str:
    """Why nothing can be run for a target here: no compiler or no emulator; empty where both are."""
    try:
        toolchain(target_named(target))
        require_unicorn()
    except EdgewrightError as error:
        return str(error)
    return ""


def compare_variants(
    analysis: Analysis, plain: Variant, optimised: Variant, models: Models = (), calls: int = 32, seed: int = 0
) -> Verification:
    """The driver's functions on both variants; the first is right by definition."""
    signatures = signatures_of(analysis.source, analysis.description)
    by_device = models_for(models, analysis.description)
    prototypes = [Prototype(variant, signatures, by_device) for variant in (plain, optimised)]
    functions = _runnable(analysis, signatures)
    checked, differences = compare(prototypes[0], prototypes[1], functions, calls, seed)
    built = [variant.inlined or variant.outlined for variant in (plain, optimised)]
    sizes = [one.code_bytes for one in built]
    return Verification(
        built[0].target.name,
        built[0].compiler,
        seed,
        checked,
        differences,
        sizes[0],
        sizes[1],
        any(function.accesses for function in analysis.functions),
    )


def variant_of(
    design: Design, target: str, *, measure: bool = True, includes: Sequence[Path] = (), defines: Sequence[str] = ()
) -> Variant:
    """The design's generated code, compiled for the prototype."""
    analysis, processor = design.analysis, target_named(target)
    marks = marks_of(analysis)
    files = generate(design, "driver", marks)
    stubs = (*CALLBACKS, *sorted(weak_functions(analysis.source)))
    devices = analysis.description.devices
    largest = max((design.layout.spaces[device.group].size for device in devices), default=0)
    base = free_window(devices, largest + 4096)
    built = [
        build(files, processor, base, inline, includes, [*(HOOKS if inline else _WATCHED), *defines], stubs)
        if measure or not inline
        else None
        for inline in (False, True)
    ]
    assert built[0] is not None
    requests = requests_of(analysis.spaces, names_of(needed_calls(design, marks)))
    foreign = foreign_pages(analysis.source)
    watched = watched_variables(analysis.source)
    return Variant(analysis.description, analysis.spaces, design.layout, requests, built[0], built[1], foreign, watched)


def _asked(analysis: Analysis, function: Function, names: Mapping[Call, str], marks: Marks) -> dict[str, str]:
    """The HAL functions that a function calls in the naive design, each with an access that it stands for."""
    found: dict[str, str] = {}
    for access in function.accesses:
        use = analysis.uses[function.name, access.number]
        found.setdefault(names[call_for(use, None, marks)], f"{access.name} (line {access.place.line})")
    return found


def _runnable(analysis: Analysis, signatures: dict[str, Signature]) -> list[Runnable]:
    known, marks = exported(analysis.source), marks_of(analysis)
    names = names_of(needed_calls(naive(analysis), marks))
    return [
        Runnable(
            signatures.get(function.name, Signature(function.name, Type(0))),
            bounds_of(function, analysis.description),
            _asked(analysis, function, names, marks),
        )
        for function in analysis.functions
        if function.name in known
    ]


_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*((?:if|ifdef|ifndef|elif|else|endif|define|undef)\b[^\n]*)", re.MULTILINE)
_TESTED = re.compile(r"^(?:ifdef|ifndef)\s+(\w+)|\bdefined\s*\(?\s*(\w+)")
_LINE_USE = re.compile(rf"\b{LINE}\b")


def text_faults(analysis: Analysis, generated: Mapping[str, str]) -> Iterator[Difference]:
    """What the generated files, by the names of the sources, lack of their sources' text."""
    for file, content in analysis.source.files.items():
        outside, made = content, generated[file].encode()
        known = iter(_directives(made))
        for function in (function for function in analysis.functions if function.file == file):
            body = content[slice(*function.body)]
            for line in _directives(body):
                if line not in known:  # goes on behind the last that was found
                    yield Difference(function.name, function.name, f"the line '#{line}' is gone")
                    return
            outside = outside.replace(body, b"", 1)
        if len(_LINE_USE.findall(_code(made))) > len(_LINE_USE.findall(_code(outside))):
            yield Difference(file, file, f"{LINE} is not the number that it is in the source")


def choices(analysis: Analysis, defines: Sequence[str] = ()) -> tuple[str, ...]:
    """The macros on which it depends what is left out of functions with accesses, and which nobody defines."""
    given = {define.partition("=")[0] for define in defines} | set(analysis.source.macros.bodies)
    found: dict[str, None] = {}
    for function in analysis.functions:
        if function.accesses:
            body = analysis.source.files[function.file][slice(*function.body)]
            tested = (_TESTED.findall(line) for line in _directives(body))
            found |= dict.fromkeys(name for names in tested for pair in names for name in pair if name)
    return tuple(name for name in found if name not in given)


def _directives(text: bytes) -> list[str]:
    return [" ".join(line.split()) for line in _DIRECTIVE.findall(_code(text))]


def _code(text: bytes) -> str:
    return blanked(text, literals=False).decode(errors="replace")
