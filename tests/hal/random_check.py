"""A random driver through the whole tool: laid out in several ways, generated, run against what its source means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from subprocess import SubprocessError
from tempfile import TemporaryDirectory

from edgewright.errors import EdgewrightError
from edgewright.hal.analysis.inlining import inlinable
from edgewright.hal.analysis.spaces import Joint
from edgewright.hal.design import Analysis, Design
from edgewright.hal.design_flow import analyse, designed, naive, real_joints
from edgewright.hal.generate import generate
from edgewright.hal.layout.cost import LayoutGoal
from edgewright.hal.layout.judge import faults
from edgewright.hal.layout.layout import Layout
from edgewright.hal.layout.optimal import lay_out_optimal
from edgewright.hal.layout.packing import side_by_side, with_spare_bits
from edgewright.hal.layout.paper import lay_out_paper
from edgewright.hal.layout_choice import loose_slots
from edgewright.hal.verify.verification import Fault, Verification
from edgewright.hal.verify.verifier import compare_variants, variant_of
from edgewright.hal.verify.written import written_source
from tests.hal.host_machine import apart
from tests.hal.random_drivers import Program, draw_program, shrunk
from tests.hal.runs import HOST, Board, Outcome, differences, draw_calls, run_source

METHODS = ("paper", "balanced", "code", "accesses", "map", "limited", "roomy")
TARGETS = ("rv32imc", "cortex-m0plus", "cortex-m4")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a driver with one layout; `story` is empty where all agree."""

    seed: int
    method: str
    target: str
    functions: int
    merges: int
    merged: int  # accesses that became part of a merge
    accesses: tuple[int, int]  # on the bus, in all calls: naive, optimised
    events: int  # side effects compared with the source
    story: tuple[str, ...] = ()


def methods_of(seed: int, thorough: bool) -> tuple[str, ...]:
    """The ways to lay out a driver; all in turn where there is no time for all at once."""
    return METHODS if thorough else (METHODS[seed % len(METHODS)],)


def target_of(seed: int) -> str:
    return TARGETS[0] if seed % 4 else TARGETS[1 + seed // 4 % 2]


def check(program: Program, methods: Sequence[str], target: str, calls: int = 4) -> Iterator[Verdict]:
    """A verdict for every layout: judged, compared with the naive design, and with the source on this machine.

    Where the target is this machine, nothing runs on the virtual prototype: generated code is compared with the source.
    """
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "driver.c").write_text(str(program))
        analysis = analyse([folder / "driver.c"])
        plain = naive(analysis)
        asked = draw_calls(program, program.seed)
        means = run_source(program, plain, asked, folder, program.seed)
        is_host = target == HOST
        variant = None if is_host else variant_of(plain, target, measure=False)
        written = None if is_host else written_source(analysis, target, (), (), ())
        for method in methods:
            made = designed(analysis, partial(lay_out, analysis, method, program.seed))
            if method == "roomy":
                made = replace(made, inlined=frozenset(f.name for f in inlinable(analysis.functions)))
            checked: Verification | None = None
            if variant:
                try:
                    optimised = variant_of(made, target, measure=False)
                except EdgewrightError as error:
                    yield _verdict(program, method, target, made, means, None, [f"the generated code: {error}"])
                    continue
                checked = compare_variants(analysis, variant, optimised, (), calls, 1, written)
            differing = map(str, checked.differences) if checked else ()
            story = [*judged(made), *differing, *against_source(program, made, means, target)]
            yield _verdict(program, method, target, made, means, checked, story)


def _verdict(
    program: Program,
    method: str,
    target: str,
    made: Design,
    means: Outcome,
    checked: Verification | None,
    story: list[str],
) -> Verdict:
    counts = [(one.naive.accesses, one.optimised.accesses) for one in (checked.functions if checked else ())]
    merges = [merge for merging in made.merging.values() for merge in merging.merges]
    return Verdict(
        program.seed,
        method,
        target,
        len(made.analysis.functions),
        len(merges),
        sum(len(merge.uses) for merge in merges),
        (sum(one for one, _ in counts), sum(other for _, other in counts)),
        len(means.events),
        tuple(story),
    )


def lay_out(analysis: Analysis, method: str, seed: int, joints: Sequence[Joint]) -> Layout:
    known = analysis.description, analysis.spaces, joints
    if method == "paper":
        return lay_out_paper(*known)
    if method == "roomy":
        spaces = with_spare_bits(analysis.spaces, loose_slots(analysis))
        return side_by_side(lay_out_optimal(analysis.description, spaces, joints, LayoutGoal()), spaces)
    if method != "limited":
        return lay_out_optimal(*known, LayoutGoal(minimise=method))
    least = lay_out_optimal(*known, LayoutGoal(minimise="map")).map_bytes(analysis.description)
    return lay_out_optimal(*known, LayoutGoal(max_map=Random(seed).randint(least, 2 * least)))


def judged(made: Design) -> list[str]:
    analysis = made.analysis
    return faults(analysis.description, analysis.spaces, made.layout, real_joints(made))


def against_source(program: Program, made: Design, means: Outcome, target: str) -> list[str]:
    """How the generated code differs from the source itself."""
    calls = draw_calls(program, program.seed)

    def run() -> Outcome:
        return Board(made, generate(made, "driver"), target, program.seed, program.has_snapshots).run(calls)

    if target != HOST:
        return differences(calls, means, run())
    try:
        return differences(calls, means, apart(run))
    except Fault as fault:
        return [str(fault)]


def smallest(program: Program, method: str, target: str) -> Program:
    """The failing driver without all that it can fail without."""

    def fails(smaller: Program) -> bool:
        try:
            return any(verdict.story for verdict in check(smaller, (method,), target))
        except (EdgewrightError, SubprocessError, StopIteration, IndexError):
            return False  # what is left is no driver

    return shrunk(program, fails)


def told(verdict: Verdict, functions: int = 20) -> str:
    """A failure for a person: the smallest driver that shows it, and what differs."""
    program = smallest(draw_program(verdict.seed, functions), verdict.method, verdict.target)
    again = next(check(program, (verdict.method,), verdict.target))
    return "\n".join((f"seed {verdict.seed}, {verdict.method}, {verdict.target}", *again.story, str(program)))
