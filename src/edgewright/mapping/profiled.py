"""Makes a MappingProblem from a network and its profile; refuses a profile of another model, or an incomplete one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf

from .. import text
from ..errors import InputError
from ..network import Network
from ..platform.profile import Profile, ProfiledProcessor, TimeOrigin
from ..program import structure_digest
from .problem import CorePool, Execution, JoiningTensor, MappingProblem, MoveCost

GPU = "gpu"  # a processor of this kind needs a core to drive it


def problem_of(
    network: Network, profile: Profile, board: str, cores: Mapping[str, int] | None = None
) -> MappingProblem:
    """The problem with this many cores of each processor; all cores of processors that are not named."""
    _check(network, profile, board)
    pools = tuple(_pool(profile, processor, cores or {}) for processor in profile.processors)
    pools = tuple(pool for pool in pools if pool.cores)
    if not any(not pool.is_gpu for pool in pools):
        raise InputError("a mapping needs at least one core, also to drive a GPU; give --cores more than 0")
    drivers = [pool.name for pool in pools if not pool.is_gpu]
    executions = tuple(
        Execution(pool.name, lanes, executor, seconds, driver)
        for pool in pools
        for (lanes, executor), seconds in _columns(profile, pool.name).items()
        if lanes <= pool.cores
        for driver in (drivers if pool.is_gpu else (None,))
    )
    layers = tuple(layer.name for layer in network.layers)
    origins = {time.origin for layer in profile.layers for time in layer.times}
    origin = next((one for one in reversed(TimeOrigin) if one in origins), TimeOrigin.MEASURED)
    tensors = tuple(joining_tensors(network))
    return MappingProblem(network.name, layers, tensors, pools, executions, profile.notes, board, origin)


def _check(network: Network, profile: Profile, board: str) -> None:
    if profile.board != board:
        raise InputError(
            f"these times were taken for board '{profile.board}', not for '{board}'; profile it there, "
            f"or ask for --board {profile.board}"
        )
    if missing := profile.missing(layer.name for layer in network.layers):
        names = ", ".join(f"'{name}'" for name in missing)
        raise InputError(
            f"these times of '{profile.model}' miss {text.plural(len(missing), 'layer')} of '{network.name}': {names}; "
            "profile this model"
        )
    if profile.model_digest and profile.model_digest != structure_digest(network):
        raise InputError(
            f"these times belong to another model ('{profile.model}', by its structure); "
            f"profile '{network.name}' itself"
        )


def _pool(profile: Profile, processor: ProfiledProcessor, cores: Mapping[str, int]) -> CorePool:
    there = len(processor.cores) or 1
    wanted = cores.get(processor.name, there)
    if wanted > there:
        raise InputError(
            f"{wanted} cores of '{processor.name}' are asked for, but there {'is' if there == 1 else 'are'} {there}"
        )
    is_gpu = processor.kind == GPU
    name = processor.name
    reading, writing = MoveCost(), MoveCost()
    if is_gpu:
        others = [other.name for other in profile.processors if other.kind != GPU]
        reading = _move(profile, [(other, name) for other in others])
        writing = _move(profile, [(name, other) for other in others])
    else:
        reading = _move(profile, [(name, name)])
    return CorePool(name, wanted, is_gpu, processor.slowdown, reading, writing, processor.cores[:wanted])


def _move(profile: Profile, ways: list[tuple[str, str]]) -> MoveCost:
    """The slowest of some transfers; zero if none was measured."""
    known = [transfer for way in ways if (transfer := profile.transfer(*way))]
    return max(
        (MoveCost(transfer.latency, 1 / transfer.bytes_per_second) for transfer in known),
        key=lambda cost: cost.seconds(1, 1 << 16),
        default=MoveCost(),
    )


def _columns(profile: Profile, processor: str) -> Mapping[tuple[int, str], tuple[float, ...]]:
    """The times of all layers for each number of lanes and each executor, scaled to the time of a whole frame.

    Layers are timed one by one; the whole network in one call may take more or less, and that counts.
    """
    keys = dict.fromkeys(
        (time.lanes, time.executor) for layer in profile.layers for time in layer.times if time.processor == processor
    )
    frames = {(one.processor, one.lanes, one.executor): one.seconds for one in reversed(profile.frames)}
    columns: dict[tuple[int, str], tuple[float, ...]] = {}
    for lanes, executor in keys:
        times = [profile.time(layer.name, processor, lanes, executor) for layer in profile.layers]
        seconds = tuple(time.seconds if time else inf for time in times)
        whole = frames.get((processor, lanes, executor))
        total = sum(seconds)
        factor = whole / total if whole and 0 < total < inf else 1.0
        columns[lanes, executor] = tuple(one * factor for one in seconds)
    return columns


def joining_tensors(network: Network) -> Iterator[JoiningTensor]:
    """Inputs, outputs and tensors between layers, without constants."""
    for name, tensor in network.tensors.items():
        if name in network.constants:
            continue
        maker = network.producers.get(name)
        yield JoiningTensor(
            name,
            tensor.bytes,
            network.position[maker.name] if maker else None,
            tuple(network.position[layer.name] for layer in network.readers[name]),
            name in network.outputs,
            tensor.shape,
        )
