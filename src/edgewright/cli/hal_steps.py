"""The steps of `edgewright hal`. Separate from its options, because libclang is an extra."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import partial
from os.path import exists
from pathlib import Path
from typing import Any

import click

from .. import text
from ..errors import EdgewrightError, Infeasible, InputError
from ..files import FolderMode, output_folder, write_together
from ..hal.advice import advice_for
from ..hal.design import Analysis, Design
from ..hal.design_flow import analyse, naive
from ..hal.export import exports
from ..hal.export.record import record, refused_record
from ..hal.generate import generate
from ..hal.importing.address_file import address_macros, read_addresses
from ..hal.language.description import Bus, Refused
from ..hal.language.diagnostics import NotC
from ..hal.layout.cost import LayoutGoal
from ..hal.layout.front import FrontPoint, layout_front
from ..hal.layout_choice import chosen_design
from ..hal.lock.lock_file import Lock, lock_text, read_lock
from ..hal.verify import (
    TwinComparison,
    Verification,
    code_sizes_of,
    compare_with_twin,
    load_model,
    missing_tools,
    verify,
)
from ..report.hal_page import hal_page
from .common import console, print_json, shown, working
from .hal_tables import (
    explanation,
    front_table,
    functions_table,
    registers_table,
    summary,
    twin_table,
    verification_table,
)

NAMED = 12  # files named in the message
MOST_ADVICE = 8  # suggestions that save accesses


@dataclass(frozen=True, slots=True)
class HalOptions:
    """The options of `edgewright hal`."""

    files: tuple[Path, ...]
    output: Path | None
    explain: bool
    check: bool
    verify: bool | None  # None: with -o, if the tools are installed
    target: str
    model: Path | None
    twin: Path | None
    max_map: int | None
    minimise: str
    method: str
    bus: str | None
    byte_lanes: bool
    views: bool
    includes: tuple[Path, ...]
    defines: tuple[str, ...]
    addresses: Path | None
    interrupt_routines: tuple[str, ...]
    no_interrupt_routines: tuple[str, ...]
    lock: Path | None
    relock: bool
    pareto: bool
    excluded: Mapping[str, str]  # functions excluded from the comparison, with the reason
    rdl: tuple[str, ...]
    cmsis: bool
    page: Path | None
    as_json: bool

    @property
    def name(self) -> str:
        return self.files[0].stem

    @property
    def has_views(self) -> bool:
        """Whether registers may have aliases, which PeakRDL's RTL generator does not support."""
        return self.views and "regblock" not in self.rdl

    @property
    def declared_bus(self) -> Bus | None:
        """The bus of devices that declare none; None if the options name no bus."""
        if self.bus is None and not self.byte_lanes:
            return None
        width = int(self.bus or 32)
        return Bus(width, 8 if self.byte_lanes else width)

    @property
    def lock_file(self) -> Path | None:
        if self.lock or not self.output:
            return self.lock
        return self.output / f"{self.name}.lock.json"


@dataclass(frozen=True, slots=True)
class HalResult:
    """The design, its files and the result of verification."""

    design: Design
    before: Design
    front: tuple[FrontPoint, ...] = ()
    verification: Verification | None = None
    unverified: str = ""  # why the driver was not run
    comparison: TwinComparison | None = None  # against the user's own driver


def run(asked: HalOptions) -> None:
    """Runs the verb; ends with status 1 if the sources are refused."""
    if asked.addresses:
        macros = address_macros(read_addresses(asked.addresses))
        asked = replace(asked, addresses=None, defines=(*macros, *asked.defines))
    try:
        with working(f"reading {asked.files[0].name}"):
            analysis = analyse(
                asked.files,
                asked.includes,
                asked.defines,
                asked.declared_bus,
                asked.interrupt_routines,
                asked.no_interrupt_routines,
            )
    except (Refused, NotC) as error:
        if isinstance(error, NotC) and not asked.as_json:
            raise
        _show_refused(error, asked.as_json)
        raise click.exceptions.Exit(1) from error
    if asked.check:
        _show_checked(analysis, asked.as_json)
        return
    _check_excluded(analysis, asked.excluded)
    made = _made(analysis, asked)
    verification = made.verification
    is_sound = verification is None or not (verification.differences or verification.unproven(asked.excluded))
    files = _files(made, asked) if is_sound else {}
    _write(files, analysis)
    if asked.as_json:
        print_json(_record(made, asked, list(map(str, files))))
    else:
        _print(made, asked, list(files))
    if verification is not None and not is_sound:
        raise EdgewrightError(_unsound(verification, analysis, asked.excluded))


def _check_excluded(analysis: Analysis, excluded: Mapping[str, str]) -> None:
    known = {function.name for function in analysis.functions}
    if missing := sorted(set(excluded) - known):
        raise InputError(f"--exclude {missing[0]}: the driver has no such function; it has {', '.join(sorted(known))}")


def _unsound(verification: Verification, analysis: Analysis, excluded: Mapping[str, str]) -> str:
    if verification.differences:
        return "the generated code does not do what the source says; nothing was written"
    unproven = verification.unproven(excluded)
    told = "; ".join(_located(analysis, one.function, f"'{one.function}': {one.reason}") for one in unproven[:NAMED])
    more = f" and {len(unproven) - NAMED} more" if len(unproven) > NAMED else ""
    what = "nothing was compared" if verification.is_empty else f"{text.plural(len(unproven), 'function')} not compared"
    return (
        f"{what}; nothing was written. {told}{more}. Give functions parameters that are numbers, pointers or groups, "
        f"or say why one need not be compared: --exclude {unproven[0].function}='tested on the board'"
    )


def _located(analysis: Analysis, function: str, what: object) -> str:
    """A remark on a function of the driver behind the function's place in the source."""
    places = {one.name: f"{one.place}: " for one in analysis.functions}
    return f"{places.get(function, '')}{what}"


def _show_refused(error: Refused | NotC, as_json: bool) -> None:
    if as_json:
        print_json(refused_record(error.refusals))
        return
    for refusal in error.refusals:
        hint = f" ({refusal.hint})" if refusal.hint else ""
        click.echo(f"{refusal.place}: {refusal.what}{hint}", err=True)
    places = text.plural(len(error.refusals), "place")
    click.echo(f"Error: the driver is refused for {places}; nothing was written", err=True)


def _show_checked(analysis: Analysis, as_json: bool) -> None:
    description = analysis.description
    counts = {
        "groups": len(description.groups),
        "fields": sum(len(list(group.fields)) for group in description.groups.values()),
        "devices": len(description.devices),
        "functions": len(analysis.functions),
        "accesses": sum(len(function.accesses) for function in analysis.functions),
    }
    if as_json:
        print_json({"refused": [], **counts, "questions": list(analysis.questions)})
        return
    told = ", ".join(f"{count:,} {name}" for name, count in counts.items())
    console.print(f"nothing to refuse: {told}", style="green")
    _print_questions(analysis)


def _print_questions(analysis: Analysis) -> None:
    for question in analysis.questions:
        console.print(shown(question), style="yellow", soft_wrap=True)


def _made(analysis: Analysis, asked: HalOptions) -> HalResult:
    made = _verified(analysis, asked)
    if asked.twin is None:
        return made
    with working(f"running both on {asked.target}"):
        twin = compare_with_twin(
            made.design,
            asked.twin,
            target=asked.target,
            model=load_model(asked.model) if asked.model else None,
            includes=asked.includes,
            defines=asked.defines,
        )
    return replace(made, comparison=twin)


def _verified(analysis: Analysis, asked: HalOptions) -> HalResult:
    goal = LayoutGoal(asked.max_map, asked.minimise, asked.target, views=asked.has_views)
    measure = partial(code_sizes_of, target=asked.target, includes=asked.includes, defines=asked.defines)
    with working("laying out registers"):
        try:
            design = chosen_design(analysis, asked.method, goal, _lock(asked), measure)
        except Infeasible as error:
            description = analysis.description
            places = [one.place for one in description.devices] or [one.place for one in description.groups.values()]
            raise Infeasible(f"{places[0]}: {error}") from error
        front = _front(analysis, asked) if asked.pareto else ()
    missing = "" if asked.verify else missing_tools(asked.target)
    if asked.verify is False or (asked.verify is None and (not asked.output or missing)):
        return HalResult(
            design, naive(analysis), front, unverified=missing if asked.output and asked.verify is None else ""
        )
    models = load_model(asked.model) if asked.model else None
    with working(f"running both on {asked.target}"):
        verification = verify(
            analysis, design, target=asked.target, model=models, includes=asked.includes, defines=asked.defines
        )
    return HalResult(design, naive(analysis), front, verification)


def _front(analysis: Analysis, asked: HalOptions) -> tuple[FrontPoint, ...]:
    return layout_front(
        analysis.description, analysis.spaces, analysis.joints, target=asked.target, views=asked.has_views
    )


def _lock(asked: HalOptions) -> Lock | None:
    """The lock to obey. A lock in the output folder, or one that is yet to be written there, may be missing."""
    path = asked.lock_file
    if path is None or asked.relock or (asked.output and not exists(path)):
        return None
    return read_lock(path)


def _files(made: HalResult, asked: HalOptions) -> dict[Path, str | bytes]:
    """The contents of all files, before any is written."""
    files: dict[Path, str | bytes] = {}
    page = ""
    if asked.page or asked.output:
        page = hal_page(made.design, made.before, name=asked.name, front=made.front, verification=made.verification)
    if asked.page:
        files[asked.page] = page
    if asked.output is None:
        return files
    out, name = asked.output, asked.name
    documents = exports(made.design, name, asked.rdl, asked.cmsis)
    texts: Mapping[str, str | bytes] = {**generate(made.design, name), **documents}
    files |= {out / file: text for file, text in texts.items()}
    files[out / f"{name}.html"] = page
    if not made.design.layout.is_fixed:  # the map of existing hardware is fixed
        files[asked.lock_file or out / f"{name}.lock.json"] = lock_text(made.design)
    listed = [str(path) for path in (*files, out / f"{name}.json")]
    files[out / f"{name}.json"] = json.dumps(_record(made, asked, listed), indent=1) + "\n"
    return files


def _write(files: Mapping[Path, str | bytes], analysis: Analysis) -> None:
    """Writes all files and their folders, or none."""
    sources = {Path(file).resolve() for file in analysis.source.files}
    if clash := next((path for path in files if path.resolve() in sources), None):
        raise InputError(f"'{clash}' is a source of the driver and would be overwritten. Give another folder with -o.")
    with ExitStack() as folders:
        for folder in sorted({path.parent for path in files}):
            folders.enter_context(output_folder(folder, FolderMode.UNDO))
        write_together(files)


def _record(made: HalResult, asked: HalOptions, files: Sequence[str]) -> dict[str, Any]:
    entry = record(made.design, made.before, files)
    entry["advice"] = [{**asdict(one), "place": str(one.place)} for one in advice_for(made.design)]
    if made.front:
        entry["pareto"] = [{"map_bytes": p.map_bytes, "code": p.code, "accesses": p.accesses} for p in made.front]
    if made.comparison:
        entry["twin"] = asdict(made.comparison)
    if made.verification:
        entry["verification"] = {
            **asdict(made.verification),
            "is_equal": made.verification.is_equal,
            "excluded": dict(asked.excluded),
        }
    return entry


def _print(made: HalResult, asked: HalOptions, written: Sequence[Path]) -> None:
    if asked.explain:
        for function in made.design.analysis.functions:
            console.print(explanation(made.design, function))
    else:
        console.print(registers_table(made.design))
        console.print(functions_table(made.design, made.before))
    console.print(summary(made.design, made.before))
    _print_questions(made.design.analysis)
    for advice in advice_for(made.design)[:MOST_ADVICE]:
        console.print(shown(advice), style="cyan", soft_wrap=True)
    if made.front:
        console.print(front_table(made.front))
    if made.verification:
        console.print(verification_table(made.verification))
        for one in made.verification.uncompared:
            why = f"; excluded: {asked.excluded[one.function]}" if one.function in asked.excluded else ""
            console.print(
                f"not compared: {shown(one.function)}, {shown(one.reason + why)}", style="yellow", soft_wrap=True
            )
        for difference in made.verification.differences:
            console.print(
                shown(_located(made.design.analysis, difference.function, difference)), style="red", soft_wrap=True
            )
    elif made.unverified:
        console.print(f"not verified: {shown(made.unverified)}", style="yellow")
    if made.comparison:
        console.print(twin_table(made.comparison))
        for dear in made.comparison.dearer:
            told = f"{dear.function} makes {dear.ours.accesses:,} accesses, the twin {dear.twin.accesses:,}"
            console.print(shown(told), style="yellow", soft_wrap=True)
    if written:
        named = ", ".join(map(str, written[:NAMED])) + (", …" if len(written) > NAMED else "")
        console.print(f"wrote {text.plural(len(written), 'file')}: {shown(named)}", style="dim", soft_wrap=True)
