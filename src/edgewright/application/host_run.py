"""Runs an application on this machine: the C library of `--compile`, built for the host, driven by threads.

Each partition of a pipeline has a thread, and so has each network that runs beside another. Networks that pass tensors
to each other run together: the library refuses a reader until its tensor is ready. All results are compared with the
reference.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from itertools import combinations, product, starmap
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

import numpy as np

from ..emit.deployment.interface import call_order
from ..emit.native import build_shared
from ..errors import EdgewrightError, Infeasible
from ..kernels.printing.constants import C_TYPES
from ..kernels.printing.source import CWriter
from ..memory.joint.layout import JointLayout
from ..network import Array, Network, random_inputs
from ..network.kernels import execute
from ..network.reference import difference
from ..platform.target import TARGETS
from ..program.deployment import OUTSIDE, Part, RelationKind
from ..run.measurement import WARM_UP, combine_rounds
from ..run.statistics import FrameLog, MemoryUse, RunStatistics
from .draft import Application
from .handover import End, joined
from .library import AppLibrary, emit_application

ROUNDS = 3  # of all networks in turns
VARIETY = 2  # different frames


@dataclass(frozen=True)
class MeasuredNetwork:
    """The measured rate of a network, and the networks that ran beside it."""

    name: str
    statistics: RunStatistics
    wanted: float | None  # frames per second required by the file
    beside: tuple[str, ...] = ()

    @property
    def is_met(self) -> bool:
        return self.wanted is None or self.statistics.frames_per_s >= self.wanted

    def to_dict(self) -> dict[str, object]:
        return {
            "frames_per_s": self.statistics.frames_per_s,
            "latency_s": self.statistics.latency_s,
            "wanted": self.wanted,
            "beside": list(self.beside),
        }


def run_application(application: Application, layout: JointLayout, frames: int) -> tuple[MeasuredNetwork, ...]:
    """The rates of all networks over `frames` frames of each; an error if a result is wrong."""
    library = emit_application(replace(application, target=TARGETS["host"]), layout)
    with TemporaryDirectory(prefix="edgewright-") as folder:
        running = HostApplication(library, Path(folder))
        rounds = [running.measure(turn, max(1, -(-frames // ROUNDS))) for turn in running.turns * ROUNDS]
    return tuple(
        MeasuredNetwork(
            entry.name,
            combine_rounds([measured[entry.name] for measured in rounds if entry.name in measured]),
            entry.throughput or (1 / entry.period if entry.period else None),
            running.beside(entry.name),
        )
        for entry in application.file.networks
    )


def check_throughput(measured: Sequence[MeasuredNetwork]) -> None:
    """Raises an error that names the first network below its required rate."""
    for one in measured:
        if not one.is_met:
            raise Infeasible(
                f"'{one.name}' is to run {one.wanted:g} times a second, and {one.statistics.frames_per_s:.3g} were "
                "measured here; ask for fewer, give it more RAM, or quantise it"
            )


class HostApplication:
    """The compiled library, loaded, and the frames for its trial."""

    def __init__(self, library: AppLibrary, folder: Path) -> None:
        self.library, self.deployment = library, library.deployment
        self.parts, self.order = library.deployment.parts, call_order(library.code)
        owners = {part.name: part.owner for part in self.parts}
        links = [[owners[end] for end in fifo.ends if end != OUTSIDE] for fifo in self.deployment.fifos]
        groups = joined([*([owner] for owner in owners.values()), *links])
        self.turns: list[list[str]] = []  # networks that run together, because they pass tensors to each other
        for group in groups:
            free = (turn for turn in self.turns if all(starmap(self._are_parallel, product(turn, group))))
            if (turn := next(free, None)) is None:
                self.turns.append(turn := [])
            turn += group
        self.ends: list[list[Array]] = []  # of each frame and part: arguments of the run function
        self.checks: list[tuple[Network, str, Array, Array]] = []  # outputs: as computed, as expected
        for seed in range(VARIETY):
            self._add_frame(self._values(seed))
        loaded = ctypes.CDLL(str(build_shared(_driven(library, groups), folder)))
        self._drive = loaded[f"{library.name}_host_drive"]

    def beside(self, name: str) -> tuple[str, ...]:
        """The networks that run at the same time as this one."""
        (turn,) = (turn for turn in self.turns if name in turn)
        return tuple(other for other in turn if other != name and self._are_parallel(name, other))

    def measure(self, networks: Sequence[str], count: int) -> Mapping[str, RunStatistics]:
        """Measures networks that run together, over `count` frames of each; an error if any result is wrong."""
        checks = [check for check in self.checks if check[0].name in networks]
        for _, _, output, _ in checks:
            output.fill(0)
        times = [np.zeros((WARM_UP + count, 2)) for _ in self.parts]
        failed: list[int] = []

        def work(parts: Sequence[Part]) -> None:  # continues after an interrupt, and keeps the arrays that C writes to
            tables = [*map(_pointers, self.ends)]
            ends = (ctypes.c_void_p * len(tables))(*map(ctypes.addressof, tables))
            numbers = (ctypes.c_int32 * len(parts))(*map(self.parts.index, parts))
            failed.append(self._drive(numbers, len(parts), WARM_UP + count, ends, _pointers(times)))

        order = [part for part in self.order if part.owner in networks]
        is_one = not any(starmap(self._may_overlap, combinations(order, 2)))
        parts_of_threads = [order] if is_one else [[part] for part in order]
        threads = [Thread(target=work, args=(parts,), daemon=True) for parts in parts_of_threads]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for network, name, computed, expected in checks:
            if any(failed) or not difference(network, name, computed, expected).passes:
                raise EdgewrightError(f"network '{network.name}' computes something wrong here; please report this")
        return {name: self._statistics(name, times) for name in networks}

    def _statistics(self, name: str, times: Sequence[Array]) -> RunStatistics:
        runs = np.array([times[n][WARM_UP:] for n, part in enumerate(self.parts) if part.owner == name])
        taken, done = runs[:, :, 0].min(0), runs[:, :, 1].max(0)
        if len(runs) == 1:  # the network's clock stops while others use the thread
            done, taken = np.cumsum(done - taken), np.cumsum(done - taken) - (done - taken)
        log = FrameLog()
        for pair in zip(taken.tolist(), done.tolist(), strict=True):
            log.add(*pair)
        memory = MemoryUse(sum(self.library.arenas.values()), 0, self.library.weight_bytes)
        return log.statistics(float(done[-1] - taken[0]), {}, memory)

    def _are_parallel(self, a: str, b: str) -> bool:
        first = {part.owner: part for part in self.parts}
        return self._may_overlap(first[a], first[b])

    def _may_overlap(self, a: Part, b: Part) -> bool:
        return self.deployment.concurrency(a.name, b.name).kind is RelationKind.PARALLEL

    def _values(self, seed: int) -> Mapping[End, Array]:
        """Inputs and outputs of all networks for one frame. A passed tensor has its writer's value."""
        values: dict[End, Array] = {}
        for part in self.order:
            network = self.deployment.network_named[part.owner]
            if (part.owner, network.outputs[0]) not in values:
                handed = {x: (what.network, what.tensor) for x, what in part.inputs.items()}
                inputs = random_inputs(network, seed) | {x: values[y] for x, y in handed.items() if y in values}
                values |= {(part.owner, x): y for x, y in {**inputs, **execute(network, inputs)}.items()}
        return values

    def _add_frame(self, values: Mapping[End, Array]) -> None:
        for part in self.parts:
            network = self.deployment.network_named[part.owner]
            inputs, outputs = self.library.code.given(part)
            read, made = [part.inputs[x] for x in inputs], [part.outputs[x].tensor for x in outputs]
            given = [np.ascontiguousarray(values[x.network, x.tensor][x.region.slices]) for x in read]
            arrays = [np.empty(network.tensors[x].shape, network.tensors[x].dtype.numpy) for x in made]
            self.ends.append([*given, *arrays])
            self.checks += [(network, x, array, values[part.owner, x]) for x, array in zip(made, arrays, strict=True)]


def _driven(library: AppLibrary, groups: Sequence[Sequence[str]]) -> AppLibrary:
    """The library with `c/host_drive.c` around its own C."""
    name, text = library.name, (resources.files(__package__) / "c" / "host_drive.c").read_text(encoding="utf-8")
    text = text.replace("APP_", f"{name.upper()}_").replace("app_", f"{name}_")
    text = text.replace('#include "app.c"', str(library.files[f"{name}.c"]) + _calls(library, groups))
    return replace(library, files={**library.files, f"{name}.c": text})


def _calls(library: AppLibrary, groups: Sequence[Sequence[str]]) -> str:
    """The application-specific C code: calls by number, and parts that run in step."""
    name, parts, c = library.name, library.deployment.parts, CWriter()
    group = {owner: frozenset(one) - {owner} for one in groups for owner in one}
    mates = [sum((other.owner in group[part.owner]) << n for n, other in enumerate(parts)) for part in parts]
    c.line(f"enum {{ {name.upper()}_PARTS = {len(parts)}, {name.upper()}_VARIETY = {VARIETY} }};")
    c.line(f"static const uint32_t {name}_host_mates[] = {{{', '.join(f'{mask:#x}u' for mask in mates)}}};")
    cases = []
    for number, part in enumerate(parts):
        inputs, outputs = library.code.given(part)
        arguments = [f"ends[{at}]" for at in range(len(inputs) + len(outputs))]
        for at, tensor in enumerate(inputs):
            if tensor in library.deployment.plans[part.name].pulled:
                row, ctype = part.network.tensors[tensor].strides[1], C_TYPES[part.network.tensors[tensor].dtype.value]
                with c.block(f"static void pull_{number}_{at}(void *context, int32_t row, {ctype} *target)"):
                    c.line(f"memcpy(target, (const uint8_t *)context + row * {row}, {row});")
                arguments[at] = f"pull_{number}_{at}, ends[{at}]"
        cases.append(f"case {number}: return {library.code.function(part)}({', '.join(arguments)});")
    with c.block(f"static int32_t {name}_host_run(int32_t part, void *const *ends)"), c.block("switch (part)"):
        c.add([*cases, f"default: return {name.upper()}_WRONG;"])
    return c.text()


def _pointers(arrays: Sequence[Array]) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
