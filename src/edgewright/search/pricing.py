"""What a candidate costs on a board under one manner of execution: RAM, flash, instructions, time, energy.

RAM is exact: the plan is the one that `edgewright plan` and `compile` make, and no plan depends on weights. Flash is
that of weights and biases until code is compiled: `compiled_price` has tables and code as linked, and is for the points
of a front. Instructions are those of the cost model where every layer has exact multipliers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from shlex import quote

import onnx

from ..complete_plan import find_complete
from ..errors import InputError
from ..fusion.request import PlanRequest, find
from ..fusion.timing import Timing
from ..mapping.deploy import deployment_of
from ..mapping.exact import MappingLimits
from ..mapping.goal import MappingGoal, map_for
from ..mapping.profiled import problem_of
from ..network import Network
from ..network.read import read
from ..platform import Board
from ..platform.chip_time import ERROR, assumed_instruction_time, board_instruction_time
from ..platform.processor import ProcessorKind
from ..platform.profile import TimeOrigin
from ..platform.target import Architecture, Target, target_of
from ..program import Plan
from ..run.estimated_times import estimate_profile
from .architecture import CnnArchitecture
from .model import default_ranges, onnx_model


class Manner(Enum):
    """How a network is executed."""

    WHOLE = "whole"  # layer by layer
    STREAMED = "streamed"  # row by row wherever that saves RAM; nothing is computed twice
    PULLED = "pulled"  # the same, with an input that comes row by row
    TILED = "tiled"  # the least RAM in about the time of whole layers, with any tiles; takes longer to price
    LANES = "lanes"  # cores of a Linux board share each layer
    PIPELINED = "pipelined"  # cores of a Linux board execute different layers, frame after frame

    @property
    def is_mapped(self) -> bool:
        """Whether it takes several cores."""
        return self in MAPPED


UNLIMITED = 1 << 50  # bytes of RAM: prices are those of the manner, whether it fits or not
REQUESTS: Mapping[Manner, PlanRequest] = {
    Manner.WHOLE: PlanRequest(ram=UNLIMITED),
    Manner.STREAMED: PlanRequest(phases=True),
    Manner.PULLED: PlanRequest(phases=True, pull_rows=True),
    Manner.TILED: PlanRequest(minimise_ram=True),
}
FLAGS: Mapping[Manner, tuple[str, ...]] = {  # of `edgewright compile`, or of `map` on Linux boards
    Manner.WHOLE: (),
    Manner.STREAMED: ("--phases",),
    Manner.PULLED: ("--phases", "--pull-input"),
    Manner.TILED: ("--minimise", "ram"),
    Manner.LANES: ("--stages", "1", "--replicas", "1"),
    Manner.PIPELINED: ("--lanes", "1"),
}
MAPPED: Mapping[Manner, MappingLimits] = {
    Manner.LANES: MappingLimits(stages=1, replicas=1),
    Manner.PIPELINED: MappingLimits(lanes=1),
}
ONE_CORE = MappingLimits(stages=1, replicas=1, lanes=1)
ONE_CORE_FLAGS = ("--stages", "1", "--replicas", "1", "--lanes", "1")


@dataclass(frozen=True, slots=True)
class Price:
    """What one candidate costs."""

    ram_bytes: int  # of all buffers; the stack is added when code is compiled
    flash_bytes: int
    instructions: int  # of one frame, estimated
    seconds: float  # from frame to frame, estimated (`platform/chip_time.py`)
    energy_j: float | None = None  # of one frame; None if the board has no power data


@dataclass(frozen=True)
class CandidatePricer:
    """Prices candidates for a board. `needs_energy` refuses boards without power data at once."""

    board: Board
    manner: Manner = Manner.STREAMED
    needs_energy: bool = False

    def __post_init__(self) -> None:
        if self.needs_energy and self.board.power.active is None:
            raise InputError(
                f"board '{self.board.name}' has no power data, which energy takes; add active = \"0.3 W\" (what the "
                "board draws at work) to the table [power] of a board file of yours, or leave energy out"
            )
        if self.manner.is_mapped and not self.is_linux:
            raise InputError(
                f"the manner '{self.manner.value}' takes a board with Linux, and '{self.board.name}' is none; "
                f"choose one of {', '.join(manner.value for manner in REQUESTS)}"
            )

    @cached_property
    def target(self) -> Target:
        """The target that candidates are compiled for."""
        return target_of(self.board)

    @property
    def is_linux(self) -> bool:
        return self.target.architecture in (Architecture.HOST, Architecture.AARCH64)

    @property
    def is_mapped(self) -> bool:
        """Whether `map` says how the network is executed, and not `compile`."""
        return self.is_linux and self.manner in (*MAPPED, Manner.WHOLE)

    @property
    def request(self) -> PlanRequest:
        """What `plan` and `compile` are asked for; mapped manners run layers whole."""
        return REQUESTS.get(self.manner, PlanRequest())

    @property
    def time_words(self) -> str:
        """What the times of prices are."""
        if self.is_mapped:
            return TimeOrigin.ROOFLINE.value
        if board_instruction_time(self.board) is None:
            return "estimated, one instruction a cycle"
        return f"estimated, ± {ERROR:.0%}"

    def command(self, model: str) -> str:
        """The command that compiles or maps a model file in the manner that was priced."""
        if self.is_mapped:
            gpus = [f"--cores {quote(name)}=0" for name in self._gpus]
            flags = FLAGS[self.manner] or ONE_CORE_FLAGS
            return " ".join(["edgewright map", quote(model), "--board", quote(self.board.name), *gpus, *flags])
        ends = ("--quantised-input", "--quantised-output")
        return " ".join(
            ["edgewright compile", quote(model), "--board", quote(self.board.name), *FLAGS[self.manner], *ends]
        )

    # Networks

    def network(self, model: onnx.ModelProto | bytes, name: str = "model") -> Network:
        """The network of an int8 model as it is priced; `compile` lets it take and give integers."""
        if isinstance(model, bytes):
            model = onnx.load_from_string(model)
            model.graph.name = name
        return read(model, quantised_input=not self.is_mapped, quantised_output=not self.is_mapped)

    def price(self, architecture: CnnArchitecture) -> Price:
        """The price of a candidate."""
        return self.network_price(
            self.network(onnx_model(architecture, None, default_ranges(architecture), is_exact=False))
        )

    def network_price(self, network: Network) -> Price:
        """The price of an int8 network."""
        if self.is_mapped:
            return self._mapped_price(network)
        return self.price_of(find(network, self.request, self.board, self.target, explain=False).plan)

    def compiled_price(self, network: Network) -> Price:
        """The price with flash as linked, code and tables included; it takes a compiler."""
        if self.is_mapped:
            return self._mapped_price(network)
        return self.price_of(find_complete(network, self.request, self.board, self.target).plan)

    def price_of(self, plan: Plan) -> Price:
        """The price of a network with this plan."""
        instructions = self._instructions(plan)
        seconds = instructions * assumed_instruction_time(self.board, plan.network.is_real)
        return Price(plan.peak_bytes, plan.flash_bytes, instructions, seconds, self._energy(seconds))

    def _instructions(self, plan: Plan) -> int:
        """Those of the target, or of its stand-in if the cost model has no samples for it."""
        return round(Timing(self.target).of(plan))

    def _energy(self, seconds: float) -> float | None:
        active = self.board.power.active
        return None if active is None else active * seconds

    # Linux boards

    @property
    def _gpus(self) -> tuple[str, ...]:
        """Processors that int8 networks are not executed on."""
        return tuple(one.name for one in self.board.processors if one.kind is ProcessorKind.GPU)

    def _mapped_price(self, network: Network) -> Price:
        """The price of the fastest mapping, by rooflines: times are the least that the hardware permits."""
        profile = estimate_profile(network, self.board)
        problem = problem_of(network, profile, self.board.name, dict.fromkeys(self._gpus, 0))
        answer = map_for(problem, MappingGoal(limits=MAPPED.get(self.manner, ONE_CORE)), self.board.power)
        deployment = deployment_of(answer, network, self.board.name)
        weights = sum(network.tensors[name].bytes for name in network.constants)
        instructions = self._instructions(find(network, PlanRequest(plain=True), None, self.target).plan)
        return Price(deployment.ram_bytes, weights, instructions, 1 / answer.throughput, answer.energy)
