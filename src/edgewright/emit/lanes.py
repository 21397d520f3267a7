"""Lanes in C: the functions that a library for several cores has in addition.

All cores run one function, each its share, with barriers between stages. Who provides the cores, and how they wait at a
barrier, is in a file that the user can replace.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ..kernels.printing.source import CWriter, designated
from ..platform.target import Architecture, Target
from ..program import Plan
from .files import own_source
from .storage import LANE

LANES = "lanes"  # the parameter that says how many share the run
LANED = (f"int32_t {LANE}", f"int32_t {LANES}")  # parameters of the function that a lane runs, before all others


def has_barrier(plan: Plan, index: int) -> bool:
    """Whether the lanes meet at a barrier before a stage: always, unless one lane alone runs the stage and the one
    before it.

    Copies of inputs count as a stage before the first one, copies of outputs as one after the last.
    """
    stages = plan.program.stages
    around = [stages[at].schedule.lanes if 0 <= at < len(stages) else 1 for at in (index - 1, index)]
    return max(around) > 1


def turn_count(plan: Plan) -> int:
    """The number of pieces into which barriers divide a run."""
    return 1 + sum(has_barrier(plan, index) for index in range(len(plan.program.stages) + 1))


def write_barrier(c: CWriter) -> None:
    c.line(f"ew_lanes_meet({LANE}, {LANES});")


@contextmanager
def lane_loop(c: CWriter, variable: str, count: int, lanes: int, most: int) -> Iterator[None]:
    """A loop whose iterations are divided among `lanes` of the `most` lanes that run the function."""
    if lanes == most:
        with c.block(f"for (int32_t {variable} = {LANE}; {variable} < {count}; {variable} += {LANES})"):
            yield
        return
    step = f"{LANES} < {lanes} ? {LANES} : {lanes}"
    with c.block(f"for (int32_t {variable} = {LANE}; {LANE} < {lanes} && {variable} < {count}; {variable} += {step})"):
        yield


def write_run(c: CWriter, returns: str, prefix: str, signature: Sequence[str], missing: Sequence[str]) -> None:
    """NAME_run_in: the same arguments for every lane; refused where a function is missing that hands out rows."""
    names = [declaration.rpartition(" ")[2].lstrip("*") for declaration in signature]
    with c.block("typedef struct"):
        for declaration in signature:
            c.line(f"{declaration};")
    c.lines[-1] = "} ew_frame;"
    c.line()
    with c.block(f"static void ew_run_frame(void *context, {', '.join(LANED)})"):
        c.line("const ew_frame *const frame = context;")
        given = [LANE, LANES, *(f"frame->{name}" for name in names)]
        c.line(f"{'(void)' if missing else ''}{prefix}_run_lane({', '.join(given)});")
    c.line()
    with c.block(f"{returns} {prefix}_run_in({', '.join(signature)})"):
        c.line(f"ew_frame frame = {designated({name: name for name in names})};")
        if missing:
            with c.block(f"if ({' || '.join(missing)})"):
                c.line("return 1;")
        c.line("ew_lanes_run(ew_run_frame, &frame);")
        if missing:
            c.line("return 0;")


def has_threads(target: Target) -> bool:
    """Whether lanes are threads of a system, and not tasks of a microcontroller."""
    return target.architecture in (Architecture.HOST, Architecture.AARCH64)


def declarations(prefix: str, target: Target, returns: str, parameters: Sequence[str]) -> list[str]:
    """What the header says about lanes."""
    count = f"{prefix.upper()}_LANE_COUNT"
    lines = [
        f"/* The share of one lane, 0 to {count} - 1: each on a core of its own, all with the same arguments and",
        f" * {LANES} = {count}; or all of it on one core, with {LANE} = 0 and {LANES} = 1. */",
        f"{returns} {prefix}_run_lane({', '.join([*LANED, *parameters])});",
        "",
        f"/* {prefix}_run_in and {prefix}_run do this on all lanes, by means of two functions. Yours take their place",
        f" * where {prefix.upper()}_CALLER_BRINGS_LANES is defined: the first calls `work` with lanes 0 to",
        f" * {count} - 1 at the same time, and returns when all are done; the second returns when all lanes have",
        " * called it. */",
        f"typedef void (*{prefix}_lane_work)(void *context, {', '.join(LANED)});",
        f"void {prefix}_lanes_run({prefix}_lane_work work, void *context);",
        f"void {prefix}_lanes_meet({', '.join(LANED)});",
    ]
    if has_threads(target):
        lines += [
            "",
            "/* Ends the threads that wait for the next run, which starts them again. */",
            f"void {prefix}_lanes_stop(void);",
        ]
    return [*lines, ""]


def lanes_file(prefix: str, target: Target) -> str:
    """NAME_lanes.c: threads, or tasks."""
    head, _, body = own_source("lanes_posix" if has_threads(target) else "lanes_tasks", prefix).partition("*/\n")
    system = "#define _POSIX_C_SOURCE 200809L\n" if has_threads(target) else ""
    return f'{head}*/\n{system}#include "{prefix}.h"\n{body}'
