"""Stages with their counts, to which the cost model is fitted: a fixed set of plans, run on the virtual board.

The set holds each shape of network of `cost_networks` in each format. Chains of layers are planned whole, and in three
of six other ways, in turns: by rows, each layer by rows, without sharing memory, in parts of all kinds. Networks of
layers beside each other, each a stage, come with several seeds; so do chains of real numbers, whose loops a compiler
sees whole. Nothing of it is a real network.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from hashlib import sha256
from itertools import product
from pathlib import Path

import click
from rich.console import Console
from rich.progress import track

import edgewright
from cost_fit import Sample
from cost_networks import BESIDE, FORMATS, ODD, SHAPES, Shape, elements, network, parts, products, rows_alone, single
from edgewright.board.machine import machine_for
from edgewright.board.toolchain import toolchain
from edgewright.emit import Library, Options, emit
from edgewright.emit.firmware import Emulator
from edgewright.emit.firmware.glue import Probes
from edgewright.emit.firmware.image import STACK, build_firmware
from edgewright.emit.firmware.measurement import packed, run_firmware
from edgewright.errors import EdgewrightError
from edgewright.kernels.cost.estimate import works_of
from edgewright.kernels.cost.work import KernelWork
from edgewright.kernels.select import close_plan
from edgewright.network import Network, random_inputs
from edgewright.platform.target import Target
from edgewright.program import FusionSchedule, Plan

SEEDS, REAL_SEEDS = 5, 3  # of networks of layers beside each other, and of chains of real numbers


def _seeds(shape: Shape, form: str) -> int:
    """How many networks of a shape: unsigned bytes are computed as signed ones are, and need few."""
    if form == "uint8" or (form != "float" and shape not in BESIDE):
        return 1
    return SEEDS if shape in (products, elements, single, *ODD) else REAL_SEEDS


def case_plans(index: int) -> Iterator[tuple[str, Plan]]:
    """The plans of a network of the set, each with a name."""
    shape, form, seed = CASES[index]
    grown = network(form, shape, seed)
    if shape in BESIDE:
        yield f"{grown.name} apart", edgewright.plan(grown, explain=False, plain=True)
        return
    yield f"{grown.name} whole", edgewright.plan(grown, explain=False)
    for turn in (0, 2, 4) if form != "uint8" and not seed else ():
        name, way = WAYS[(index + turn) % len(WAYS)]
        if planned := way(grown):
            yield f"{grown.name} {name}", planned


def _scheduled(find: Callable[[Network], list[FusionSchedule]], grown: Network) -> Plan | None:
    schedules = find(grown)
    return edgewright.plan(grown, explain=False, schedules=schedules) if schedules else None


WAYS: tuple[tuple[str, Callable[[Network], Plan | None]], ...] = (
    ("rows", partial(edgewright.plan, explain=False, phases=True)),
    ("alone", partial(_scheduled, rows_alone)),
    ("apart", partial(edgewright.plan, explain=False, plain=True)),
    *((f"parts {turn}", partial(_scheduled, partial(parts, turn=turn))) for turn in range(3)),
)
CASES = [  # later shapes behind all others, so that those are planned as before
    (shape, form, seed)
    for shapes in (SHAPES[:17], SHAPES[17:22], SHAPES[22:])
    for form in FORMATS
    for shape in shapes
    for seed in range(_seeds(shape, form))
]


def counted(plan: Plan, target: Target, zig: bool, known: Path | None = None) -> list[int]:
    """The instructions of each stage, from one run on the virtual board, or as `known`: a folder of earlier runs."""
    return counted_library(plan, emit(close_plan(plan, target), "net"), zig, known)


def counted_library(plan: Plan, library: Library, zig: bool, known: Path | None = None) -> list[int]:
    """The same of what was emitted for the plan."""
    target = library.target
    tools, flag = toolchain(target, zig), Options().optimise_flag(target)
    seen = sha256(repr((tools.name, target.name, flag)).encode())
    for name, text in sorted(library.files.items()):
        if name.endswith((".c", ".h", ".S")):
            seen.update(name.encode() + (text if isinstance(text, bytes) else text.encode()))
    file = known / f"{seen.hexdigest()[:24]}.json" if known else None
    if file and file.exists():
        return [int(count) for count in json.loads(file.read_text())]
    with tempfile.TemporaryDirectory() as folder:
        firmware = build_firmware(
            library, machine_for(target), tools, Path(folder), optimise=flag, probes=Probes.STAMPS, stack=4 * STACK
        )
        inputs = packed(plan.network, random_inputs(plan.network, seed=1))
        stages = [*run_firmware(library, firmware, machine_for(target), Emulator.QEMU, inputs, 120.0).stages]
    if file:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(stages))
    return stages


Fitted = tuple[str, bool]  # target and whether Zig builds


def training(targets: Sequence[Target], known: Path | None, jobs: int, console: Console) -> dict[Fitted, list[Sample]]:
    """For each target and compiler the stages of all plans; earlier runs of the same C are taken from `known`."""
    found: dict[Fitted, list[Sample]] = {(target.name, zig): [] for target in targets for zig in (False, True)}
    with ProcessPoolExecutor(jobs) as pool:
        cases = pool.map(partial(_sampled, targets, known), range(len(CASES)))
        for samples in track(cases, "counting", len(CASES), console=console):
            for fitted, stages in samples:
                found[fitted] += stages
    return found


def _sampled(targets: Sequence[Target], known: Path | None, index: int) -> list[tuple[Fitted, list[Sample]]]:
    """The stages of a network's plans; a plan whose firmware fails is named, and left out."""
    found: list[tuple[Fitted, list[Sample]]] = []
    for (name, plan), target in product(case_plans(index), targets):
        library, works = emit(close_plan(plan, target), "net"), stage_works(plan, target)
        for zig in (False, True):
            try:
                counts = counted_library(plan, library, zig, known)
            except EdgewrightError as error:
                click.echo(f"{name} on {target.name}: {error}", err=True)
                continue
            pairs = zip(works, counts, strict=True)
            found.append(((target.name, zig), [Sample(name, work, count) for work, count in pairs]))
    return found


def sample_stages(plan: Plan, target: Target, counts: Sequence[int], name: str) -> list[Sample]:
    """A sample for each stage that was counted."""
    return [Sample(name, work, count) for work, count in zip(stage_works(plan, target), counts, strict=True)]


def stage_works(plan: Plan, target: Target) -> list[tuple[KernelWork, ...]]:
    """The work of each stage, one of each kind."""
    return [_joined([(work, often) for _, work, often in works]) for works in works_of(plan, target)]


def _joined(works: Sequence[tuple[KernelWork, int]]) -> tuple[KernelWork, ...]:
    """Work of one kind taken together: amounts add up."""
    sums: dict[str, dict[str, float]] = {}
    for work, count in works:
        kept = sums.setdefault(work.kind, {})
        for key, amount in work.amounts.items():
            kept[key] = kept.get(key, 0.0) + count * amount
    return tuple(KernelWork(kind, amounts) for kind, amounts in sums.items())
