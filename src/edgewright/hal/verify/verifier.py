"""Verification of a design: the driver with one register for each field against the driver with the layout (S 6.6)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from ...board.toolchain import toolchain
from ...board.unicorn import require_unicorn
from ...errors import EdgewrightError
from ..analysis.functions import Function
from ..analysis.interrupts import address_taken
from ..design import Analysis, Design
from ..design_flow import naive
from ..generate import generate, rewritten
from ..generate.calls import Call, Marks, call_for, marks_of, names_of, needed_calls
from ..language.lexical import blanked
from ..language.macros import LINE
from .abi import Signature, Type
from .build import HOOKS, compile_image, free_window, link, target_named
from .caller import CALLBACKS
from .calls import bounds_of
from .compare import Runnable, compare
from .peripheral import Models, models_for
from .prototype import CRITICAL, Prototype, Variant
from .requests import requests_of
from .signatures import (
    aliases,
    exported,
    foreign_pages,
    kept_pointers,
    signatures_of,
    watched_variables,
    weak_functions,
)
from .verification import Difference, FunctionCheck, Uncompared, Verification
from .written import Written, WrittenSource, written_source

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

    weak = sorted(weak_functions(analysis.source))

    def compared(more: Sequence[str], measure: bool, calls: int) -> Verification:
        variants = [
            variant_of(one, target, measure=measure, includes=includes, defines=[*defines, *more])
            for one in (naive(analysis), design)
        ]
        written = written_source(analysis, target, includes, [*defines, *more], weak)
        return compare_variants(analysis, variants[0], variants[1], model or (), calls, seed, written)

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
    analysis: Analysis,
    plain: Variant,
    optimised: Variant,
    models: Models = (),
    calls: int = 32,
    seed: int = 0,
    written: WrittenSource | None = None,
) -> Verification:
    """The driver's functions on both variants; the first is right where it does what the source as written does."""
    signatures = signatures_of(analysis.source, analysis.description)
    by_device = models_for(models, analysis.description)
    images = [image for one in (plain, optimised) for image in (one.outlined, one.inlined) if image is not None]
    images += [written.image] if written else []
    base = free_window([*plain.description.devices, *optimised.description.devices], _largest(plain, optimised))
    linked = dict(zip(map(id, images), link(images, base), strict=True))
    other_names = aliases(analysis.source)
    for each in linked.values():  # clang drops the name of a static function that has an alias
        known = each.elf.symbols
        known |= {target: known[name] for target, name in other_names.items() if name in known}
    symbols = frozenset.intersection(*(frozenset(built.elf.symbols) for built in linked.values()))
    signatures = {name: _with_objects_in(signature, symbols) for name, signature in signatures.items()}
    prototypes = [
        Prototype(
            one, linked[id(one.outlined)], linked[id(one.inlined)] if one.inlined else None, signatures, by_device
        )
        for one in (plain, optimised)
    ]
    functions = _runnable(analysis, signatures, symbols)
    reference = None
    if written:
        registers, image = prototypes[0].registers, linked[id(written.image)]
        reference = Written(written, image, registers, signatures, plain.foreign, plain.watched, plain.pointers)
    checked, differences, ran = compare(prototypes[0], prototypes[1], functions, calls, seed, reference)
    built = [prototype.built for prototype in prototypes]
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
        tuple(_uncompared(analysis, checked, _with_inlined(analysis, ran, symbols))),
    )


def _largest(*variants: Variant) -> int:
    """Bytes around the devices that the driver's code keeps clear of."""
    spaces = [(one.layout.spaces[device.group]) for one in variants for device in one.description.devices]
    return max((space.size for space in spaces), default=0) + 4096


def _with_objects_in(signature: Signature, symbols: frozenset[str]) -> Signature:
    """The signature, with pointers to those variables only that are in every image."""
    parameters = tuple(
        (name, replace(type_, objects=tuple(one for one in type_.objects if one in symbols)))
        for name, type_ in signature.parameters
    )
    return replace(signature, parameters=parameters)


def _with_inlined(analysis: Analysis, ran: frozenset[str], symbols: frozenset[str]) -> frozenset[str]:
    """The functions that ran, and those that compilers put into these whatever they are told."""
    inlined = [f for f in analysis.functions if f.name.partition(" (")[0] not in symbols]
    callees = frozenset(usr for function in analysis.functions if function.name in ran for usr in function.calls)
    more = ran | {function.name for function in inlined if function.usr in callees}
    return ran if more == ran else _with_inlined(analysis, more, symbols)


def _uncompared(analysis: Analysis, checked: Sequence[FunctionCheck], ran: frozenset[str]) -> Iterator[Uncompared]:
    """The functions with accesses that no compared call went through, and why."""
    known = {check.function: check for check in checked}
    called = {usr for function in analysis.functions for usr in function.calls} | address_taken(analysis.source)
    aliased = aliases(analysis.source)
    for function in analysis.functions:
        check = known.get(function.name)
        if not function.accesses or (check and (check.calls or check.unfinished)):
            continue
        if function.name.partition(" (")[0] in ran:
            continue
        if function.is_static and function.usr not in called and function.name not in aliased:
            yield Uncompared(function.name, "nothing calls it", is_dead=True)
        else:
            why = check.left_out if check else "it is static, and no function that was called calls it"
            yield Uncompared(function.name, why or "no call of it ended")


def variant_of(
    design: Design, target: str, *, measure: bool = True, includes: Sequence[Path] = (), defines: Sequence[str] = ()
) -> Variant:
    """The design's generated code, compiled for the prototype."""
    analysis, processor = design.analysis, target_named(target)
    marks = marks_of(analysis)
    files = generate(design, "driver", marks)
    stubs = (*CALLBACKS, *sorted(weak_functions(analysis.source)))
    images = [
        compile_image(files, processor, inline, includes, [*(HOOKS if inline else _WATCHED), *defines], stubs)
        if measure or not inline
        else None
        for inline in (False, True)
    ]
    assert images[0] is not None
    requests = requests_of(analysis.spaces, names_of(needed_calls(design, marks)))
    foreign = foreign_pages(analysis.source)
    watched = watched_variables(analysis.source)
    return Variant(
        analysis.description,
        analysis.spaces,
        design.layout,
        requests,
        images[0],
        images[1],
        foreign,
        watched,
        kept_pointers(analysis.source, analysis.description),
    )


def _asked(analysis: Analysis, function: Function, names: Mapping[Call, str], marks: Marks) -> dict[str, str]:
    """The HAL functions that a function calls in the naive design, each with an access that it stands for."""
    found: dict[str, str] = {}
    for access in function.accesses:
        use = analysis.uses[function.name, access.number]
        found.setdefault(names[call_for(use, None, marks)], f"{access.name} (line {access.place.line})")
    return found


def _runnable(analysis: Analysis, signatures: dict[str, Signature], symbols: frozenset[str]) -> list[Runnable]:
    """The functions that code elsewhere can call: by their names, through tables and callbacks, or by attributes.

    A static function that nothing calls and that the compiler keeps is an alias's target, a constructor or the like.
    """
    marks, taken = marks_of(analysis), address_taken(analysis.source)
    called = {usr for function in analysis.functions for usr in function.calls}
    static = [f for f in analysis.functions if f.is_static and f.accesses]
    known = (exported(analysis.source) | {f.name for f in static if f.usr in taken or f.usr not in called}) & symbols
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
_NAME = re.compile(r"\w+")
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
    """The macros that nobody defines and that decide what functions with accesses say: by what they leave out, and by
    the macros that are defined under them."""
    macros = analysis.source.macros
    given = {define.partition("=")[0] for define in defines} | set(macros.bodies)
    guards = {name: tested for name, tested in _guards(analysis.source.files.values()).items() if tested}
    found: dict[str, None] = {}
    behind: dict[str, None] = {}
    for function in analysis.functions:
        if function.accesses:
            body = analysis.source.files[function.file][slice(*function.body)]
            found |= dict.fromkeys(name for line in _directives(body) for name in _tested(line))
            text = _code(body)
            used = [name for name in guards if macros.mentions(text, name)]
            behind |= dict.fromkeys(name for one in used for name in guards[one])
    return tuple(name for name in found | behind if name not in given)


def _guards(files: Iterable[bytes]) -> dict[str, set[str]]:
    """For each macro that is defined, the macros that conditions around its definitions test."""
    found: dict[str, set[str]] = {}
    for content in files:
        around: list[set[str]] = []
        for line in _directives(content):
            word, _, rest = line.partition(" ")
            if word in ("if", "ifdef", "ifndef"):
                around.append(_tested(line))
            elif word == "endif" and around:
                around.pop()
            elif word == "elif" and around:
                around[-1] |= _tested(line)
            elif word == "define":
                name = _NAME.match(rest)
                found.setdefault(name.group() if name else rest, set()).update(*around)
    return found


def _tested(line: str) -> set[str]:
    return {name for pair in _TESTED.findall(line) for name in pair if name}


def _directives(text: bytes) -> list[str]:
    return [" ".join(line.split()) for line in _DIRECTIVE.findall(_code(text))]


def _code(text: bytes) -> str:
    return blanked(text, literals=False).decode(errors="replace")
