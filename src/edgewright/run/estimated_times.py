"""Estimated profiles of other boards: by instructions for microcontrollers, by roofline for others.

Instructions of each layer come from the kernels' cost model for the core. By roofline a layer is as fast as its
arithmetic and its traffic allow: the peak is what a core's vector units do per cycle, the traffic each tensor once.
Kernels reach some share of it, so these times are lower bounds. Every time is marked with its origin.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ..board.toolchain import builds_with_zig
from ..fusion.whole import find_whole_layers
from ..kernels.cost.estimate import estimate, modelled
from ..network import DType, Layer, Network
from ..platform import Board, Feature, Processor, ProcessorKind
from ..platform.chip_time import ERROR, instruction_time
from ..platform.profile import LayerTime, Profile, ProfiledProcessor, TimeOrigin, TransferTime
from ..platform.target import target_of_processor
from ..program import structure_digest
from .profiling import layer_profiles

# Vector units that multiply and add at full width every cycle, from the makers' optimisation guides.
_UNITS = {
    ProcessorKind.CORTEX_A76: 2,
    ProcessorKind.CORTEX_A78AE: 2,
    ProcessorKind.DENVER2: 2,
    ProcessorKind.X86_64: 2,
}
_WORD = 32  # bits of a float32
HAND_OVER = 20e-6  # seconds to pass a frame between threads, as measured on a Linux host
_BITS = 8


@dataclass(frozen=True)
class PeakRate:
    """The peak performance of one core."""

    macs_per_s: float  # float32
    int8_macs_per_s: float
    bytes_per_s: float | None  # of its memory; None if the board file does not say


def estimate_profile(network: Network, board: Board) -> Profile:
    """The network's layers on each processor of a board, with 1 up to as many lanes as it has cores."""
    times: dict[str, list[LayerTime]] = {layer.name: [] for layer in network.layers}
    processors, origins, first = [], set[TimeOrigin](), 0
    for processor in board.processors:
        counted = _instruction_times(network, board, processor)
        origin = TimeOrigin.ROOFLINE if counted is None else TimeOrigin.INSTRUCTIONS
        origins.add(origin)
        peak = peak_rate(board, processor)
        for lanes in range(1, processor.count + 1):
            for layer in network.layers:
                times[layer.name].append(
                    LayerTime(
                        processor=processor.name,
                        executor="torch" if processor.kind is ProcessorKind.GPU else "native",
                        lanes=lanes,
                        seconds=_least_time(network, layer, peak, lanes)
                        if counted is None
                        else counted[layer.name] / lanes,
                        origin=origin,
                    )
                )
        is_gpu = processor.kind is ProcessorKind.GPU
        cores = () if is_gpu else tuple(range(first, first + processor.count))
        first += len(cores)
        processors.append(
            ProfiledProcessor(name=processor.name, kind=processor.kind.value, cores=cores, clock=processor.clock)
        )
    return Profile(
        board=board.name,
        machine=None,
        model=network.name,
        model_digest=structure_digest(network),
        processors=tuple(processors),
        layers=layer_profiles(network, times),
        transfers=_transfers(board),
        notes=tuple(_notes(board, origins)),
    )


def _instruction_times(network: Network, board: Board, processor: Processor) -> dict[str, float] | None:
    """Seconds of each layer by its instructions; None if these or the core's cycles are unknown."""
    target, time = target_of_processor(processor), instruction_time(board, processor, network.is_real)
    if target is None or time is None or target.name not in modelled():
        return None
    plan = find_whole_layers(network, board, target=target).plan
    seconds = dict.fromkeys((layer.name for layer in network.layers), 0.0)  # some layers execute nothing
    stages = estimate(plan, target, zig=builds_with_zig(target)).stages
    for stage, instructions in zip(plan.program.stages, stages, strict=True):
        seconds[stage.layers[-1]] = instructions * time
    return seconds


def _least_time(network: Network, layer: Layer, peak: PeakRate, lanes: int) -> float:
    """Seconds of a layer by roofline."""
    inputs = [network.tensors[name] for name in dict.fromkeys(layer.inputs)]
    moved = sum(tensor.bytes for tensor in (*inputs, network.tensors[layer.output]))
    is_int8 = inputs[0].dtype in (DType.INT8, DType.UINT8)
    rate = peak.int8_macs_per_s if is_int8 else peak.macs_per_s
    work = max(network.macs(layer), network.tensors[layer.output].size)  # at least one operation per element
    traffic = moved / peak.bytes_per_s if peak.bytes_per_s else 0.0
    return max(work / (rate * lanes), traffic)


def peak_rate(board: Board, processor: Processor) -> PeakRate:
    """The peak of one core, or of the whole GPU."""
    if processor.kind is ProcessorKind.GPU:
        per_cycle = float(processor.lanes)
    else:
        per_cycle = max(1.0, _UNITS.get(processor.kind, 1) * processor.simd_bits / _WORD)
    macs = per_cycle * processor.clock
    has_dot = Feature.DOT in processor.features or ProcessorKind.GPU is processor.kind
    faster = 4 if has_dot else 2 if processor.simd_bits else 1  # bytes rather than words in one vector
    bandwidths = [memory.bandwidth for memory in board.memories_of(processor.name) if memory.bandwidth]
    return PeakRate(macs, faster * macs, max(bandwidths) / _BITS if bandwidths else None)


def _transfers(board: Board) -> tuple[TransferTime, ...]:
    """Through the memory that both sides share: written once and read once."""
    transfers = []
    for source in board.processors:
        for target in board.processors:
            rates = [peak_rate(board, one).bytes_per_s for one in (source, target)]
            known = [rate for rate in rates if rate]
            transfers.append(
                TransferTime(
                    source=source.name,
                    target=target.name,
                    latency=HAND_OVER,
                    bytes_per_second=min(known) / 2 if known else 1e9,
                    origin=TimeOrigin.ROOFLINE,
                )
            )
    return tuple(transfers)


def _notes(board: Board, origins: Collection[TimeOrigin]) -> list[str]:
    notes = []
    if TimeOrigin.INSTRUCTIONS in origins:
        notes.append(f"estimated by instructions and the cycles that each takes, ± {ERROR:.0%}")
    if TimeOrigin.ROOFLINE not in origins:
        return notes
    notes.append("estimated by roofline: the least times that the hardware permits, not what kernels reach")
    if not any(memory.bandwidth for memory in board.memories):
        notes.append(f"the file of board '{board.name}' tells no memory bandwidth: arithmetic alone is counted")
    return notes
