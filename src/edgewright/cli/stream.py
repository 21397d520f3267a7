"""`edgewright run --frames`: runs a model, or a pipeline in a folder, for many frames on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from .. import text
from ..emit.inputs import load_inputs
from ..emit.library import check_plan
from ..errors import InputError
from ..fusion.request import PlanRequest, make_plan, plan_notes
from ..network import Array, Network, Shape, Tensor, random_inputs
from ..network.interface import file_inputs, stored_inputs
from ..network.reference import to_file_layout
from ..platform.target import TARGETS
from ..program import Deployment, Plan, load_plan
from ..program.deployment import SLOT_ALIGNMENT
from ..run.build import plan_for_host, whole_network
from ..run.machine import usable_cores
from ..run.measurement import CompetitorFigures, compared, measured, onnxruntime_session
from ..run.pipeline import Pipeline, pipeline
from ..run.statistics import RunStatistics
from .common import console, facts, print_json, print_notes, read_model, shown, table, working
from .options import ROUNDINGS
from .plan_options import PlanOptions

FRAMES = 100  # for a folder, if no number is given
VARIETY = 4  # random frames, used in turn


def stream(
    model: Path,
    frames: int | None,
    compare: bool,
    asked: PlanOptions,
    as_json: bool,
    plan_file: Path | None,
    inputs: tuple[Path, ...],
    shapes: dict[str, Shape],
    **other: Any,
) -> None:
    _check(model, frames, compare, other)
    if model.is_dir():
        if compare or inputs or plan_file or shapes or any(asked.given.values()):
            raise InputError(
                f"'{model}' is a pipeline that was built before: of the options only --frames and --json apply"
            )
        with pipeline(model) as running, working(f"running {running.deployment.name}"):
            statistics = measured(running, _random_frames(running.inputs), frames or FRAMES)
            _print(running, statistics, None, as_json)
        return
    assert frames is not None
    asked.check(plan=plan_file is not None)
    network = read_model(model, shapes, other["quantised_input"], other["quantised_output"])
    samples = load_inputs(network, inputs) if inputs else [random_inputs(network, seed) for seed in range(VARIETY)]
    stored = [stored_inputs(network, sample) for sample in samples]
    with working(f"compiling and running {network.name}"):
        plan = _plan(network, asked, plan_file)
        lanes = plan.lanes
        with pipeline(whole_network(network, plan, (usable_cores()[:lanes],))) as running:
            if not compare:
                _print(running, measured(running, stored, frames), None, as_json)
                _print_notes(plan, None if plan_file else asked.request(network), as_json)
                return
            feed = _feed(network, samples[0])
            load = partial(onnxruntime_session, model, feed, lanes)
            _print(running, *compared(running, stored, frames, load), as_json)
            _print_notes(plan, None if plan_file else asked.request(network), as_json)


def _check(model: Path, frames: int | None, compare: bool, other: Mapping[str, Any]) -> None:
    """Raises an error for options that do not apply to many frames on this machine."""
    if compare and frames is None:
        raise InputError("--compare is about many frames: give their number with --frames")
    if other["board"] is not None or other["target"] not in (None, "host"):
        raise InputError("--frames runs on this machine: leave --board and --target out, or --frames")
    if other["output"] is not None:
        raise InputError("-o writes the outputs of one run: leave it out, or --frames")
    if other["rounding"] != ROUNDINGS[0] or other["fixed_point"] is not None or other["optimise"]:
        raise InputError("--rounding, --fixed-point and --optimise are about one run: leave them out, or --frames")
    if compare and model.suffix == ".tflite":
        raise InputError("--compare runs the model in onnxruntime, which reads .onnx alone")


def _plan(network: Network, asked: PlanOptions, plan_file: Path | None) -> Plan:
    if plan_file is not None:
        plan = load_plan(plan_file)
        check_plan(plan, network, None)
        return plan
    request = asked.request(network)
    if request.pull_rows:
        raise InputError("--pull-input hands rows to one run: leave it out, or --frames")
    if replace(request, lanes=1) == PlanRequest():
        return plan_for_host(network, request.lanes)
    if request.alignment is None:
        request = replace(request, alignment=SLOT_ALIGNMENT)
    return make_plan(network, request, None, TARGETS["host"])


def _feed(network: Network, sample: Mapping[str, Array]) -> dict[str, Array]:
    """A sample in the layout of the model file."""
    theirs = file_inputs(network, sample)
    return {name: np.ascontiguousarray(to_file_layout(network, name, value)) for name, value in theirs.items()}


def _random_frames(inputs: Mapping[str, Tensor]) -> list[dict[str, Array]]:
    """Seeded values for the inputs of a pipeline: normal for floats, small for integers."""
    rng, frames = np.random.default_rng(0), []
    for _ in range(VARIETY):
        frame = {}
        for name, tensor in inputs.items():
            values = rng.standard_normal(tensor.shape) if tensor.dtype.is_float else rng.integers(0, 2, tensor.shape)
            frame[name] = np.asarray(values, tensor.dtype.numpy)
        frames.append(frame)
    return frames


def _print(running: Pipeline, statistics: RunStatistics, theirs: CompetitorFigures | None, as_json: bool) -> None:
    deployment, memory = running.deployment, running.memory
    lanes = max(part.built.lanes for part in deployment.parts if part.built)
    if as_json:
        print_json(_figures(deployment, statistics, memory.estimated_bytes, lanes, theirs))
        return
    grid = facts()
    grid.add_row("throughput", f"{statistics.frames_per_s:.4g} frames/s", text.plural(statistics.frames, "frame"))
    spread = f"± {text.duration(statistics.latency_spread_s)}"
    grid.add_row("latency", text.duration(statistics.latency_s), f"{spread}, from taking a frame to its result")
    workers = text.plural(len(deployment.workers), "worker")
    grid.add_row("cores busy", f"{_busy(statistics, lanes):.2f}", f"{workers}, {text.plural(lanes, 'lane')} each")
    grid.add_row("arenas", text.size(memory.arena_bytes), "of all workers")
    grid.add_row("slots", text.size(memory.slot_bytes), "of all FIFOs, inputs and results among them")
    grid.add_row("weights", text.size(memory.weights_bytes), "once, however many replicas there are")
    if memory.estimated_bytes:
        grid.add_row("onnxruntime", text.size(memory.estimated_bytes), "estimate, by how the process grew")
    console.print(grid)
    if len(deployment.workers) > 1:
        console.print(_workers(deployment, statistics))
    if theirs:
        ratio = statistics.frames_per_s / theirs.frames_per_s
        console.print(
            f"onnxruntime, {text.plural(lanes, 'thread')}: {theirs.frames_per_s:.4g} frames/s, latency "
            f"{text.duration(theirs.latency_s)}, about {text.size(theirs.grown_bytes)} of memory; "
            f"ours gives {ratio:.2f} x its frames"
        )


def _print_notes(plan: Plan, request: PlanRequest | None, as_json: bool) -> None:
    """Notes how many stages run in lanes, and the cost if there are more lanes than cores."""
    if not as_json:
        print_notes(plan_notes(plan, request))


def _busy(statistics: RunStatistics, lanes: int) -> float:
    """The number of cores that were busy; lanes that take turns on a core count once."""
    return min(statistics.cores_busy * lanes, float(len(usable_cores())))


def _figures(
    deployment: Deployment, statistics: RunStatistics, estimated: int, lanes: int, theirs: CompetitorFigures | None
) -> dict[str, object]:
    figures: dict[str, object] = {
        "model": deployment.name,
        "frames": statistics.frames,
        "frames_per_s": statistics.frames_per_s,
        "latency_s": statistics.latency_s,
        "latency_spread_s": statistics.latency_spread_s,
        "lanes": lanes,
        "cores_busy": _busy(statistics, lanes),
        "arena_bytes": statistics.memory.arena_bytes,
        "slot_bytes": statistics.memory.slot_bytes,
        "weights_bytes": statistics.memory.weights_bytes,
        "estimated_bytes": estimated,
        "workers": [
            {
                "name": worker.name,
                "cores": list(worker.cores),
                "is_pinned": statistics.workers[worker.name].is_pinned,
                "frames": statistics.workers[worker.name].frames,
                "busy_s": statistics.workers[worker.name].busy,
                "waiting_s": statistics.workers[worker.name].waiting,
                "blocked_s": statistics.workers[worker.name].blocked,
            }
            for worker in deployment.workers
        ],
    }
    if theirs:
        figures["onnxruntime_frames_per_s"] = theirs.frames_per_s
        figures["onnxruntime_latency_s"] = theirs.latency_s
        figures["onnxruntime_grown_bytes"] = theirs.grown_bytes
    return figures


def _workers(deployment: Deployment, statistics: RunStatistics) -> Table:
    """How each worker spent its time."""
    made = table("workers", "worker", ">cores", "parts", ">frames", ">busy", ">waiting", ">blocked")
    for worker in deployment.workers:
        times = statistics.workers[worker.name]
        shares = [f"{100 * value / statistics.seconds:.0f} %" for value in (times.busy, times.waiting, times.blocked)]
        cores = ", ".join(map(str, worker.cores)) or "any"
        made.add_row(shown(worker.name), cores, shown(", ".join(worker.parts)), str(times.frames), *shares)
    return made
