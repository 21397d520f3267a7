"""An application run on this machine: all networks in one arena, those that may run in parallel at the same time.

Networks that exclude or interrupt each other run one after the other. A tensor that is handed over becomes the next
network's frame. Results are compared with the reference before and after the measurement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from graphlib import TopologicalSorter
from pathlib import Path
from tempfile import TemporaryDirectory

from ..errors import EdgewrightError, Infeasible
from ..memory.joint.layout import JointLayout, lay_out_jointly
from ..network import Array, Network, random_inputs
from ..network.kernels import execute
from ..network.parts import TensorRegion
from ..network.reference import compare
from ..network.region import Region
from ..platform.target import TARGETS
from ..program.deployment import OUTSIDE, Deployment, Fifo, Reader, Worker, aligned
from ..program.deployment_check import checked_deployment
from ..program.deployment_memory import laid_out
from ..run.build import THIS, build_pipeline
from ..run.executors import executor_of
from ..run.measurement import FrameStream, combine_rounds, measured
from ..run.pipeline import Pipeline
from ..run.ring import MemoryBlock
from ..run.statistics import RunStatistics
from .draft import Application
from .library import emit_application, with_selected_plans
from .ring_run import RingPipeline, build_threaded

ROUNDS = 3  # of all networks in turns
VARIETY = 2  # different frames
DOUBLE = 2  # slots of a FIFO: this runtime gives one back when a run has ended

Frames = list[Mapping[str, Array]]


@dataclass(frozen=True)
class MeasuredNetwork:
    """The measured rate of a network, and the networks that ran beside it."""

    name: str
    statistics: RunStatistics
    wanted: float | None  # frames in a second, as the file asks for them
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


@dataclass(frozen=True)
class HostApplication:
    """The networks compiled for this machine, with the inputs that they are tried with."""

    application: Application
    pipelines: Mapping[str, FrameStream]

    def measure(self, frames: int) -> tuple[MeasuredNetwork, ...]:
        """All networks in turns, so many frames of each; an error where one computes something wrong."""
        inputs = self._inputs()
        self._check(inputs)
        found: dict[str, list[RunStatistics]] = {name: [] for name in self.pipelines}
        beside: dict[str, tuple[str, ...]] = {}
        count = max(1, -(-frames // ROUNDS))
        for _ in range(ROUNDS):
            for turn in self.turns():
                with ThreadPoolExecutor(len(turn)) as pool:
                    runs = {name: pool.submit(measured, self.pipelines[name], inputs[name], count) for name in turn}
                for name, run in runs.items():
                    found[name].append(run.result())
                    beside[name] = tuple(other for other in turn if other != name)
        self._check(inputs)
        entries = {entry.name: entry for entry in self.application.file.networks}
        return tuple(
            MeasuredNetwork(
                name,
                combine_rounds(rounds),
                entries[name].throughput or (1 / period if (period := entries[name].period) else None),
                beside[name],
            )
            for name, rounds in found.items()
        )

    def turns(self) -> list[list[str]]:
        """Groups of networks that run at the same time, all parallel to each other."""
        draft = self.application.deployment
        first = {name: draft.parts_of(name)[0].name for name in self.pipelines}
        found: list[list[str]] = []
        for name in self.pipelines:
            others = [turn for turn in found if all(draft.are_parallel(first[name], first[other]) for other in turn)]
            if others:
                others[0].append(name)
            else:
                found.append([name])
        return found

    def _inputs(self) -> dict[str, Frames]:
        """Random frames; what is handed over is what the network before it makes, or reads."""
        draft, networks = self.application.deployment, self.application.networks
        found: dict[str, Frames] = {
            name: [random_inputs(network, seed) for seed in range(VARIETY)] for name, network in networks.items()
        }
        # Who makes or brings it, and where.
        first = {fifo: (fifo.writer, draft.part_named[fifo.writer].own(fifo)) for fifo in draft.shared}
        makers = {name: {first[fifo][0] for fifo in first if name in fifo.reading} - {name} for name in networks}
        for name in TopologicalSorter(makers).static_order():
            for fifo, (maker, tensor) in first.items():
                if name in fifo.reading and name != maker:
                    given = found[maker]
                    made = [execute(networks[maker], x) for x in given] if fifo.source != OUTSIDE else given
                    own = draft.part_named[name].own(fifo)
                    found[name] = [{**x, own: values[tensor]} for x, values in zip(found[name], made, strict=True)]
        return found

    def _check(self, inputs: Mapping[str, Frames]) -> None:
        for name, pipeline in self.pipelines.items():
            network = self.application.networks[name]
            for frame, result in zip(inputs[name], pipeline(iter(inputs[name])), strict=True):
                if not compare(network, result, execute(network, frame)).passes:
                    raise EdgewrightError(f"network '{name}' computes something wrong here; please report this")


def run_application(application: Application, layout: JointLayout, frames: int) -> tuple[MeasuredNetwork, ...]:
    """The networks of a joint plan compiled for this machine, and run in one arena."""
    here = replace(application, target=TARGETS["host"])
    planned = layout.problem.deployment
    rings = {ring.what.network for ring in planned.rings}
    if planned.queues:  # a partition runs whenever it finds a frame: none may use what another keeps for it
        double = tuple(
            replace(x, slots=max(DOUBLE, x.slots)) if x in planned.queues and x.what.network not in rings else x
            for x in planned.fifos
        )
        layout = lay_out_jointly(replace(planned, fifos=double))
    arenas = {memory: MemoryBlock(aligned(size)).piece(0, aligned(size)) for memory, size in layout.arenas.items()}
    with TemporaryDirectory(prefix="edgewright-") as name, ExitStack() as open_ones:
        pipelines: dict[str, FrameStream] = {}
        selected = checked_deployment(with_selected_plans(layout, here.target))
        if rings:  # in the arena of the library
            library = emit_application(here, layout)
            shared = build_threaded(library, Path(name, "rings"))
            pipelines |= {owner: RingPipeline(library, shared, owner) for owner in rings}
        for owner in (each for each in here.networks if each not in rings):
            folder = Path(name, owner)
            spec = build_pipeline(_deployment(selected, owner), folder)
            executors = {
                (worker.name, part): executor_of(spec.part_named[part], folder, arenas, 1)
                for worker in spec.workers
                for part in worker.parts
            }
            pipelines[owner] = open_ones.enter_context(Pipeline(spec, folder, executors=executors))
        return HostApplication(here, pipelines).measure(frames)


def check_throughput(found: Sequence[MeasuredNetwork]) -> None:
    """An error that names the first network that was slower than it has to be."""
    for one in found:
        if not one.is_met:
            raise Infeasible(
                f"'{one.name}' is to run {one.wanted:g} times a second, and {one.statistics.frames_per_s:.3g} were "
                "measured here; ask for fewer, give it more RAM, or quantise it"
            )


def _deployment(selected: Deployment, owner: str) -> Deployment:
    """A network as the runtime takes it: a worker for each partition, and slots between them."""
    network, own = selected.network_named[owner], selected.parts_of(owner)
    parts = []
    for part in own:  # what another network hands over comes from the outside here
        inputs = {x: what if what.network == owner else _whole(network, x) for x, what in part.inputs.items()}
        parts.append(replace(part, inputs=inputs))
    workers = tuple(Worker(f"worker{n}", THIS, "cpu", (), (part.name,)) for n, part in enumerate(parts))
    readers: dict[str, list[str]] = {}
    for part in parts:
        for tensor in dict.fromkeys(what.tensor for what in part.inputs.values()):
            readers.setdefault(tensor, []).append(part.name)
    fifos = [Fifo(_whole(network, x), OUTSIDE, tuple(map(Reader, readers.get(x, ()))), DOUBLE) for x in network.inputs]
    for part in parts:
        for what in part.outputs.values():
            results = (OUTSIDE,) if what.tensor in network.outputs else ()
            ends = (*readers.get(what.tensor, ()), *results)
            fifos.append(Fifo(what, part.name, tuple(map(Reader, ends)), max(DOUBLE, len(parts))))
    draft = Deployment((network,), tuple(parts), workers, tuple(fifos), {})
    return replace(draft, arenas=laid_out(draft))


def _whole(network: Network, tensor: str) -> TensorRegion:
    return TensorRegion(network.name, tensor, Region.whole(network.tensors[tensor].shape))
