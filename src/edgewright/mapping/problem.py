"""MappingProblem: layers, the tensors between them, and the time of each layer for every execution on the board.

Plain data; `profiled` makes it from a profile, `exact` and `genetic` solve it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import inf, isinf

from ..network import Shape
from ..platform.profile import TimeOrigin


@dataclass(frozen=True, slots=True)
class MoveCost:
    """Seconds to receive or send one tensor, beyond execution in the same stage."""

    latency: float = 0.0
    per_byte: float = 0.0

    def seconds(self, tensors: float, size: float) -> float:
        return self.latency * tensors + self.per_byte * size

    @property
    def is_free(self) -> bool:
        return not self.latency and not self.per_byte


@dataclass(frozen=True)
class CorePool:
    """Equal processors of a board: the cores of one kind, or GPUs.

    A GPU pays for transfers in both directions, including the network's inputs and outputs. A core reads what another
    core wrote.
    """

    name: str
    cores: int
    is_gpu: bool = False
    slowdown: tuple[float, ...] = (1.0,)  # factor when n processors are busy: [0] for one
    reading: MoveCost = MoveCost()
    writing: MoveCost = MoveCost()
    numbers: tuple[int, ...] = ()  # core numbers of the operating system; empty if unknown

    def slowed(self, busy: int) -> float:
        return self.slowdown[min(busy, len(self.slowdown)) - 1]


@dataclass(frozen=True)
class Execution:
    """One way to execute layers: a kind of processor, a number of lanes, a runtime."""

    pool: str
    lanes: int
    executor: str
    seconds: tuple[float, ...]  # of each layer; infinite if impossible
    driver: str | None = None  # for a GPU, the pool of the core that it keeps busy

    def cores(self, replicas: int) -> Mapping[str, int]:
        """The cores of each pool that n replicas occupy."""
        taken = {self.pool: self.lanes * replicas}
        return taken | {self.driver: replicas} if self.driver else taken


@dataclass(frozen=True, slots=True)
class JoiningTensor:
    """A tensor between the layer that computes it (or the outside) and its readers."""

    name: str
    bytes: int
    producer: int | None  # None: an input of the network
    readers: tuple[int, ...]
    is_output: bool = False
    shape: Shape = ()


@dataclass(frozen=True)
class MappingProblem:
    name: str
    layers: tuple[str, ...]  # in a valid order
    tensors: tuple[JoiningTensor, ...]
    pools: tuple[CorePool, ...]
    executions: tuple[Execution, ...]
    notes: tuple[str, ...] = ()  # about the times
    board: str = ""
    origin: TimeOrigin = TimeOrigin.MEASURED  # of the least reliable times

    @cached_property
    def pool(self) -> Mapping[str, CorePool]:
        return {pool.name: pool for pool in self.pools}

    @cached_property
    def bytes_of(self) -> Mapping[str, int]:
        return {tensor.name: tensor.bytes for tensor in self.tensors}

    @cached_property
    def edges(self) -> tuple[tuple[int, int, int], ...]:
        """Producer, reader and bytes of each tensor that joins two layers."""
        return tuple(
            (tensor.producer, reader, tensor.bytes)
            for tensor in self.tensors
            if tensor.producer is not None
            for reader in tensor.readers
        )

    @cached_property
    def before(self) -> tuple[frozenset[int], ...]:
        """The layers whose outputs each layer reads."""
        predecessors: list[set[int]] = [set() for _ in self.layers]
        for producer, reader, _ in self.edges:
            predecessors[reader].add(producer)
        return tuple(map(frozenset, predecessors))

    @cached_property
    def working_bytes(self) -> tuple[int, ...]:
        """Inputs and output of each layer: the memory that it needs while it runs."""
        working = [0] * len(self.layers)
        for tensor in self.tensors:
            for layer in {tensor.producer, *tensor.readers} - {None}:
                working[layer] += tensor.bytes  # type: ignore[index]
        return tuple(working)

    @property
    def has_moves(self) -> bool:
        return any(not (pool.reading.is_free and pool.writing.is_free) for pool in self.pools)

    def impossible(self) -> tuple[str, ...]:
        """Layers that no processor can run."""
        return tuple(
            layer
            for index, layer in enumerate(self.layers)
            if all(isinf(execution.seconds[index]) for execution in self.executions)
        )

    def slowed(self, busy: Mapping[str, int]) -> MappingProblem:
        """The times when this many cores of each pool are busy; those of lanes were measured with all lanes busy."""
        executions = []
        for execution in self.executions:
            pool = self.pool[execution.pool]
            factor = 1.0
            if not pool.is_gpu and busy.get(pool.name, 0) > execution.lanes:
                factor = max(1.0, pool.slowed(busy[pool.name]) / pool.slowed(execution.lanes))
            scaled = tuple(seconds * factor for seconds in execution.seconds)
            executions.append(replace(execution, seconds=scaled))
        return replace(self, executions=tuple(executions))

    def loads_worth_trying(self) -> Iterator[Mapping[str, int]]:
        """The numbers of busy cores of each pool that affect the times; the whole board first."""
        choices = [
            [n for n in range(pool.cores, 0, -1) if n == pool.cores or pool.slowed(n) < pool.slowed(n + 1)]
            for pool in self.pools
        ]
        for counts in product(*choices):
            yield {pool.name: count for pool, count in zip(self.pools, counts, strict=True)}

    def time(self, layers: Sequence[int], execution: Execution) -> float:
        """Total seconds of the layers, without transfers."""
        return sum(execution.seconds[layer] for layer in layers)

    def moving(self, layers: Sequence[int], execution: Execution) -> float:
        """Seconds that transfers to and from these layers add."""
        pool, inside = self.pool[execution.pool], set(layers)
        total = 0.0
        for tensor in self.tensors:
            is_read = any(reader in inside for reader in tensor.readers)
            is_made = tensor.producer in inside
            leaves = any(reader not in inside for reader in tensor.readers)
            if is_read and not is_made and (tensor.producer is not None or pool.is_gpu):
                total += pool.reading.seconds(1, tensor.bytes)
            if is_made and (leaves or (tensor.is_output and pool.is_gpu)):
                total += pool.writing.seconds(1, tensor.bytes)
        return total

    def with_cores(self, cores: Mapping[str, int]) -> MappingProblem:
        """The problem with this many cores of some pools; pools without cores are dropped, with their executions."""
        pools = [replace(pool, cores=cores.get(pool.name, pool.cores)) for pool in self.pools]
        kept = {pool.name for pool in pools if pool.cores > 0}
        executions = tuple(
            execution
            for execution in self.executions
            if execution.pool in kept
            and (execution.driver is None or execution.driver in kept)
            and execution.lanes <= cores.get(execution.pool, inf)
        )
        return replace(self, pools=tuple(pool for pool in pools if pool.cores > 0), executions=executions)
