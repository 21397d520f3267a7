"""Measures profiles on this machine: each layer on each kind of core, with 1 to k lanes, by one or several executors.

Native code is measured in instrumented builds; other runtimes report their own times.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path
from platform import system
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np

from .. import text
from ..board.toolchain import toolchain
from ..emit.library import emit
from ..emit.probes import TimedLibrary, build_timed
from ..errors import EdgewrightError
from ..kernels.select import close_plan
from ..network import DType, Network, Tensor, random_inputs
from ..platform.profile import (
    NATIVE,
    Fingerprint,
    FrameTime,
    LayerProfile,
    LayerTime,
    Profile,
    ProfiledProcessor,
    TransferTime,
)
from ..platform.target import TARGETS
from ..program import Plan, checked, structure_digest
from ..program.deployment import aligned
from . import session_times, torch_times
from .machine import CoreKind, architecture, core_kinds, on_cores, pin, processor_model, usable_cores
from .ring import FrameSlot, MemoryBlock, StreamEnd, StreamState
from .statistics import call_times, median_and_spread

THIS = "this"
REPEATS = 15  # of every measurement; the median is used
_LEAST = 0.002  # minimum seconds of one sample: shorter frames are repeated
_TAKEN = 5  # frames of lanes per sample; the median is used
_MOVED = 4 << 20  # bytes transferred to measure the rate
_HANDED = 300  # transfers of a frame to measure the latency


def measure_profile(
    network: Network,
    plans: Mapping[int, Plan],
    repeats: int = REPEATS,
    kinds: Sequence[CoreKind] | None = None,
    executors: Sequence[str] = (NATIVE,),
    lanes: Sequence[int] = (),
) -> Profile:
    """The network's layers on each kind of core of this machine, by each of these executors; torch uses the GPU.

    `plans`, by number of lanes, are for native code; onnxruntime uses as many threads as lanes.
    """
    chosen = tuple(kinds or core_kinds())
    named = dict(zip(processor_names(chosen), chosen, strict=True))
    measured = _Measured({layer.name: [] for layer in network.layers}, [], {}, list(_transfers(named)))
    if NATIVE in executors:
        _measure_native(measured, network, plans, named, repeats)
    if session_times.EXECUTOR in executors:
        measured.add(*session_times.session_times(network, named, lanes or tuple(plans) or (1,), repeats))
        for name, kind in named.items():
            if name not in measured.slowdowns and any(frame.processor == name for frame in measured.frames):
                measured.slowdowns[name] = _slowdowns(lambda: session_times.session_run(network), kind, repeats)
    processors = [
        ProfiledProcessor(
            name=name,
            kind=kind.kind,
            cores=kind.cores,
            clock=kind.clock,
            slowdown=measured.slowdowns.get(name, (1.0,)),
        )
        for name, kind in named.items()
    ]
    if torch_times.EXECUTOR in executors:
        gpu = torch_times.gpu_times(network, tuple(named), repeats)
        measured.add(gpu.layers, gpu.frames)
        measured.transfers.extend(gpu.transfers)
        processors.append(ProfiledProcessor(name=torch_times.GPU, kind=torch_times.GPU, cores=()))
    return Profile(
        board=THIS,
        machine=fingerprint(),
        model=network.name,
        model_digest=structure_digest(network),
        processors=tuple(processors),
        layers=layer_profiles(network, measured.layers),
        frames=tuple(measured.frames),
        transfers=tuple(measured.transfers),
        notes=_notes(plans, chosen) if plans else (),
    )


@dataclass
class _Measured:
    """The measurements so far."""

    layers: dict[str, list[LayerTime]]
    frames: list[FrameTime]
    slowdowns: dict[str, tuple[float, ...]]
    transfers: list[TransferTime]

    def add(self, layers: Mapping[str, Sequence[LayerTime]], frames: Sequence[FrameTime]) -> None:
        for name, times in layers.items():
            self.layers[name].extend(times)
        self.frames.extend(frames)


def _measure_native(
    measured: _Measured, network: Network, plans: Mapping[int, Plan], kinds: Mapping[str, CoreKind], repeats: int
) -> None:
    """Native code, in an instrumented build for each number of lanes."""
    with TemporaryDirectory(prefix="edgewright-") as folder:
        for lanes, plan in plans.items():
            library = emit(close_plan(checked(plan), TARGETS["host"], network))
            timed = build_timed(library, Path(folder) / f"lanes{lanes}", lanes)
            for name, kind in kinds.items():
                if lanes > len(kind.cores):
                    continue
                bench = _Bench(timed, network)
                samples, whole = on_cores(kind.cores[:lanes], partial(bench.sample, repeats, lanes))
                _add_layers(measured.layers, plan, name, lanes, samples)
                timed.stop_lanes()  # the next lanes run on other cores
                seconds, spread = median_and_spread(whole)
                measured.frames.append(FrameTime(processor=name, lanes=lanes, seconds=seconds, spread=spread))
                if lanes == 1:
                    timed.probe(False)
                    measured.slowdowns[name] = _slowdowns(partial(_loaded, timed, network), kind, repeats)


def fingerprint() -> Fingerprint:
    """The properties of this machine that affect times."""
    return Fingerprint(
        architecture=architecture(),
        system=system(),
        model=processor_model(),
        cores=len(usable_cores()),
        compiler=_compiler(),
    )


def _compiler() -> str:
    """The compiler's name; None if there is no compiler, so that native code cannot be built."""
    try:
        return toolchain(TARGETS["host"]).name
    except EdgewrightError:
        return ""


def layer_profiles(network: Network, times: Mapping[str, Sequence[LayerTime]]) -> tuple[LayerProfile, ...]:
    """The layers of the network with their description and times."""
    return tuple(
        LayerProfile(
            name=layer.name,
            operator=type(layer.op).__name__,
            macs=network.macs(layer),
            bytes=sum(network.tensors[name].bytes for name in (*dict.fromkeys(layer.inputs), layer.output)),
            times=tuple(times[layer.name]),
        )
        for layer in network.layers
    )


@dataclass
class _Bench:
    """A timed library with its own memory, ready to run."""

    timed: TimedLibrary
    network: Network

    def __post_init__(self) -> None:
        tensors = [self.network.tensors[name] for name in (*self.network.inputs, *dict.fromkeys(self.network.outputs))]
        arenas = self.timed.library.arenas.values()
        *starts, end = accumulate(map(aligned, (*arenas, *(tensor.bytes for tensor in tensors))), initial=0)
        self._block = MemoryBlock(end)
        slots = [self._block.slot(*each) for each in zip(starts[len(arenas) :], tensors, strict=True)]
        for value, slot in zip(random_inputs(self.network).values(), slots, strict=False):
            slot.array[...] = value
        base = self._block.piece(0, end).ctypes.data
        self._arguments = [ctypes.c_void_p(base + start) for start in starts]

    def run(self) -> None:
        self.timed.function(*self._arguments)

    def sample(self, repeats: int, lanes: int) -> tuple[list[Sequence[float]], list[float]]:
        """Seconds of each stage and of the whole frame, `times` times.

        One lane is measured by its thread's CPU time. Several lanes wait for each other, which needs wall-clock time:
        the median of a few frames is used, since other load disturbs some of them, and the fastest frame would be too
        optimistic.
        """
        clock: Callable[[], float] = time.perf_counter if lanes > 1 else time.thread_time
        together = np.median if lanes > 1 else np.mean
        self.run()
        count = max(self._count(clock), _TAKEN if lanes > 1 else 1)
        stages: list[Sequence[float]] = []
        whole: list[float] = []
        for _ in range(repeats):
            self.timed.probe(True)
            times = []
            for _ in range(count):
                self.run()
                times.append(self.timed.stage_seconds())
            stages.append(together(times, axis=0).tolist())
            self.timed.probe(False)
            whole.append(float(together(call_times(self.run, count, clock))))
        return stages, whole

    def _count(self, clock: Callable[[], float]) -> int:
        """The frames of one sample, so that it is long enough to be timed."""
        (seconds,) = call_times(self.run, 1, clock)
        return max(1, min(100, round(_LEAST / max(seconds, 1e-6))))


def _loaded(timed: TimedLibrary, network: Network) -> Callable[[], object]:
    """One frame in its own memory."""
    return _Bench(timed, network).run


def _add_layers(
    times: dict[str, list[LayerTime]], plan: Plan, processor: str, lanes: int, samples: list[Sequence[float]]
) -> None:
    """Adds the times of stages as times of their layers; layers that execute nothing take no time."""
    for index, stage in enumerate(plan.program.stages):
        seconds, spread = median_and_spread([sample[index] for sample in samples])
        work = [max(1, plan.network.macs(plan.network.by_name[name])) for name in stage.layers]
        for name, share in zip(stage.layers, work, strict=True):
            part = share / sum(work)
            times[name].append(
                LayerTime(processor=processor, lanes=lanes, seconds=seconds * part, spread=spread * part)
            )
    for name in plan.free:
        times[name].append(LayerTime(processor=processor, executor=NATIVE, lanes=lanes, seconds=0.0))


def _slowdowns(load: Callable[[], Callable[[], object]], kind: CoreKind, repeats: int) -> tuple[float, ...]:
    """How much longer a frame takes when n cores process one each, by the number of frames they finish together.

    They share caches, memory, and on some boards power, or as two threads the units of a core.
    """
    rates = [_frames_per_s(load, kind.cores[:count], repeats) for count in range(1, len(kind.cores) + 1)]
    return tuple(max(1e-3, count * rates[0] / rate) for count, rate in enumerate(rates, start=1))


def _frames_per_s(load: Callable[[], Callable[[], object]], cores: Sequence[int], repeats: int) -> float:
    """The joint rate of all these cores while all of them are busy."""
    barrier, over = threading.Barrier(len(cores)), threading.Event()
    rates: list[float] = []

    def work(core: int) -> None:
        pin((core,))
        run = load()
        run()
        barrier.wait()
        start, count = time.perf_counter(), 0
        while count < repeats or not over.is_set():
            run()
            count += 1
            if count == repeats:
                ready.release()
        rates.append(count / (time.perf_counter() - start))

    ready = threading.Semaphore(0)
    threads = [threading.Thread(target=work, args=(core,), daemon=True) for core in cores]
    for thread in threads:
        thread.start()
    for _ in threads:
        ready.acquire()
    over.set()
    for thread in threads:
        thread.join()
    return sum(rates)


def _transfers(kinds: Mapping[str, CoreKind]) -> list[TransferTime]:
    """Transfers of a frame through a ring, between cores of each pair of kinds."""
    transfers = []
    for source_name, source in kinds.items():
        for target_name, target in kinds.items():
            others = [core for core in target.cores if core != source.cores[0]] or list(target.cores)
            latency, rate = hand_over(source.cores[0], others[0])
            transfers.append(
                TransferTime(source=source_name, target=target_name, latency=latency, bytes_per_second=rate)
            )
    return transfers


def hand_over(source: int, target: int) -> tuple[float, float]:
    """Seconds until one core sees a frame that the other put into a ring, and bytes per second of reading it there."""
    state = StreamState()
    block, moved = MemoryBlock(2 * aligned(_MOVED)), Tensor("moved", (_MOVED,), DType.UINT8)
    there, back = (state.ring([block.slot(n * aligned(_MOVED), moved)], 1) for n in range(2))
    waits: list[float] = []
    reads: list[float] = []

    def answer() -> None:
        pin((target,))
        own = np.empty(_MOVED, np.uint8)
        try:
            for frame in range(_HANDED + REPEATS):
                with state.lock:
                    slot: FrameSlot = there.wait_for_frame(frame)
                if frame >= _HANDED:
                    start = time.perf_counter()
                    np.copyto(own, slot.array)
                    reads.append(time.perf_counter() - start)
                with state.lock:
                    there.release(frame)
                    back.wait_for_slot(frame)
                    back.put(frame)
        except StreamEnd:
            pass

    def ask() -> None:
        for frame in range(_HANDED + REPEATS):
            with state.lock:
                slot = there.wait_for_slot(frame)
            if frame >= _HANDED:
                slot.array[...] = frame % 251
            start = time.perf_counter()
            with state.lock:
                there.put(frame)
                back.wait_for_frame(frame)
                back.release(frame)
            if frame < _HANDED:
                waits.append((time.perf_counter() - start) / 2)

    other = threading.Thread(target=answer, name="edgewright-profile", daemon=True)
    other.start()
    try:
        on_cores((source,), ask)
    finally:
        state.stop()
        other.join()
    return median(waits), _MOVED / max(median(reads), 1e-9)


def processor_names(kinds: Sequence[CoreKind]) -> tuple[str, ...]:
    """A name for each kind of core: "cpu" for a single kind, else the kind's name, with a number if two share it."""
    if len(kinds) == 1:
        return ("cpu",)
    names: list[str] = []
    for kind in kinds:
        count = sum(name == kind.kind or name.startswith(f"{kind.kind}-") for name in names)
        names.append(f"{kind.kind}-{count + 1}" if count else kind.kind)
    return tuple(names)


def _notes(plans: Mapping[int, Plan], kinds: Sequence[CoreKind]) -> tuple[str, ...]:
    most = max(len(kind.cores) for kind in kinds)
    if most > max(plans):
        return (f"measured with up to {text.plural(max(plans), 'lane')}; there are cores for {most}",)
    return ()
