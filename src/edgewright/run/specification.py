"""What a pipeline is at run time: files, sizes, who reads and writes what; a Deployment less what is for planning.

`build` writes it beside the compiled parts; a device reads it with the standard library alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from functools import cached_property
from hashlib import file_digest, sha256
from itertools import combinations
from math import gcd, lcm, prod
from pathlib import Path, PurePosixPath
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np

from ..errors import InputError
from ..files import write_atomic

FORMAT = 2
SEAL = "seal"  # the key of the digest of everything else
FILE = "pipeline.json"
DEPLOYMENT_FILE = "deployment.json"  # of the deployment that a pipeline is built from
OUTSIDE = ""  # the source of frames, and the reader of results
ALIGNMENT = 64  # of slots and arenas: a cache line, so that two workers never write to one
_TYPES = frozenset({"float32", "int8", "uint8", "int16", "int32", "int64", "bool", "float64", "uint16", "uint32"})
_MOST = 1 << 48


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """An input or output of the whole."""

    name: str
    shape: tuple[int, ...]
    dtype: str  # as numpy names it


@dataclass(frozen=True, slots=True)
class FifoSpec:
    """Slots that carry one tensor, or a region of one, from one part to all that read it."""

    tensor: str  # of the whole network
    shape: tuple[int, ...]
    dtype: str  # as numpy names it
    slots: int
    source: str  # a part, or OUTSIDE
    readers: tuple[str, ...]  # parts, or OUTSIDE
    bytes: int  # from one slot to the next
    begin: tuple[int, ...] = ()  # where the region begins in its tensor; empty: at its beginning

    @property
    def size(self) -> int:
        """Bytes of the region."""
        return prod(self.shape) * np.dtype(self.dtype).itemsize

    @property
    def slices(self) -> tuple[slice, ...]:
        """Where the region lies in its tensor."""
        begin = self.begin or (0,) * len(self.shape)
        return tuple(slice(low, low + size) for low, size in zip(begin, self.shape, strict=True))


@dataclass(frozen=True, slots=True)
class PortSpec:
    """An input or output of a part: its own name for the tensor, and the FIFO that it lies in."""

    tensor: str
    fifo: int
    layout: tuple[int, ...] = ()  # axes as the part's own runtime wants them; empty: as they are


@dataclass(frozen=True, slots=True)
class MemorySpec:
    """A memory that a native part wants a pointer for: an arena, which the parts of a worker share."""

    name: str
    bytes: int


@dataclass(frozen=True, slots=True)
class PartSpec:
    """One part: what executes it, and between which FIFOs."""

    name: str
    executor: str  # native, onnxruntime
    file: str  # in the pipeline's folder
    digest: str  # SHA-256 of the file
    inputs: tuple[PortSpec, ...]
    outputs: tuple[PortSpec, ...]
    function: str = ""  # native: the run function, which takes memories, inputs, outputs
    memories: tuple[MemorySpec, ...] = ()
    weights_bytes: int = 0
    layers: tuple[str, ...] = ()  # for messages
    lanes: int = 1
    lanes_stop: str = ""  # native: the function that ends the threads of its lanes

    @property
    def where(self) -> str:
        """The part as a message names it."""
        if not self.layers:
            return f"part '{self.name}'"
        ends = dict.fromkeys((self.layers[0], self.layers[-1]))
        return f"part '{self.name}' (layers {' to '.join(ends)})" if len(ends) > 1 else f"layer '{self.layers[0]}'"


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """A thread that fires parts in this order for the frames f with f mod n = i, where `replica` is (i, n)."""

    name: str
    cores: tuple[int, ...]  # it is pinned to; empty: wherever the system likes
    parts: tuple[str, ...]
    replica: tuple[int, ...] = (0, 1)


@dataclass(frozen=True)
class PipelineSpec:
    """Everything that executing a deployment on one machine takes."""

    name: str
    architecture: str  # of the native parts; empty where there are none
    features: tuple[str, ...]  # of the processor that they were compiled for
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    parts: tuple[PartSpec, ...]
    workers: tuple[WorkerSpec, ...]
    fifos: tuple[FifoSpec, ...]
    format: int = FORMAT
    deployment: str = ""  # SHA-256 of the deployment's file beside it; empty: there was none

    @cached_property
    def part_named(self) -> Mapping[str, PartSpec]:
        return {part.name: part for part in self.parts}

    @property
    def sources(self) -> tuple[int, ...]:
        """The FIFOs that bring frames from outside."""
        return tuple(i for i, fifo in enumerate(self.fifos) if fifo.source == OUTSIDE)

    @property
    def results(self) -> tuple[int, ...]:
        """The FIFOs that carry results outside."""
        return tuple(i for i, fifo in enumerate(self.fifos) if OUTSIDE in fifo.readers)

    @property
    def slot_bytes(self) -> int:
        """Bytes of all slots of all FIFOs."""
        return sum(fifo.slots * fifo.bytes for fifo in self.fifos)

    @property
    def weights_bytes(self) -> int:
        """Bytes of weights: parts and replicas that use one file share them."""
        return sum({part.digest: part.weights_bytes for part in self.parts}.values())

    def arenas(self, worker: WorkerSpec) -> Mapping[str, int]:
        """Bytes of each arena of a worker, in whole lines: its parts run one at a time, and overlay each other."""
        sizes: dict[str, int] = {}
        for name in worker.parts:
            for memory in self.part_named[name].memories:
                sizes[memory.name] = max(sizes.get(memory.name, 0), aligned(memory.bytes))
        return sizes

    @property
    def arena_bytes(self) -> int:
        """Bytes of all arenas of all workers."""
        return sum(size for worker in self.workers for size in self.arenas(worker).values())


def aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def save_specification(spec: PipelineSpec, folder: Path) -> None:
    write_atomic(folder / FILE, json.dumps(sealed(asdict(spec)), indent=1) + "\n")


def save_beside_deployment(spec: PipelineSpec, folder: Path) -> None:
    """Writes the file anew, bound to the deployment in the same folder: neither is changed without the other."""
    save_specification(replace(spec, deployment=digest_of(folder / DEPLOYMENT_FILE)), folder)


def sealed(data: Mapping[str, Any]) -> dict[str, Any]:
    """The data with their digest: what native code is handed must be just what it was compiled for."""
    rest = {key: value for key, value in data.items() if key != SEAL}
    return {**rest, SEAL: sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()}


def load_specification(folder: Path) -> PipelineSpec:
    """The pipeline in a folder; one whose pieces do not fit together is refused.

    The deployment that it was built from may be missing, since only the pipeline runs; a damaged one is refused.
    """
    path = folder / FILE
    try:
        data = json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(
            f"cannot read '{path}': {error.strerror}; a pipeline's folder is written by `edgewright map -o`"
        ) from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"'{path}' is damaged: it is not JSON; build the pipeline anew") from error
    if isinstance(data, dict) and data.get("format") != FORMAT:
        raise InputError(f"'{path}' has another format than this edgewright reads; build the pipeline anew")
    try:
        given = {key: value for key, value in data.items() if key != SEAL} if isinstance(data, dict) else data
        spec: PipelineSpec = _decoded(PipelineSpec, given, "")
        problem = next(specification_faults(spec), None)
        if problem is None and sealed(given) != data:
            problem = "something in it was changed"
    except ValueError as error:
        problem = str(error)
    if problem:
        raise InputError(f"'{path}' is damaged: {problem}; build the pipeline anew")
    source = folder / DEPLOYMENT_FILE
    if spec.deployment and source.exists() and digest_of(source) != spec.deployment:
        raise InputError(f"'{source}' is damaged, or not what '{FILE}' was built from; map the model anew")
    return spec


def digest_of(path: Path) -> str:
    """The digest of a file, which is read in pieces: a library that is checked takes no memory beside its mapping."""
    try:
        with path.open("rb") as file:
            return file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"cannot read '{path}': {error.strerror}; build the pipeline anew") from error


def specification_faults(spec: PipelineSpec) -> Iterator[str]:
    """What does not fit together, each as a sentence."""
    parts = [part.name for part in spec.parts]
    for kind, names in (("part", parts), ("worker", [worker.name for worker in spec.workers])):
        if len(set(names)) < len(names):
            yield f"two of its {kind}s have one name"
    for worker in spec.workers:
        if unknown := set(worker.parts) - set(parts):
            yield f"worker '{worker.name}' runs '{min(unknown)}', which is no part"
        if len(worker.replica) != 2 or not 0 <= worker.replica[0] < worker.replica[1]:
            yield f"worker '{worker.name}' is replica {list(worker.replica)}, which is none"
    for part in spec.parts:
        turns = [worker.replica for worker in spec.workers if part.name in worker.parts]
        if turns and all(len(turn) == 2 and turn[1] > 0 for turn in turns) and not _takes_every_frame(turns):
            yield f"part '{part.name}' is not run for every frame, or twice for some"
    for index, fifo in enumerate(spec.fifos):
        yield from _fifo_faults(index, fifo, parts)
    if not spec.sources or not spec.results:
        yield "no FIFO comes from outside, or none goes there"
    for indices, tensors in ((spec.sources, spec.inputs), (spec.results, spec.outputs)):
        yield from _end_faults([spec.fifos[i] for i in indices], tensors)
    for part in spec.parts:
        file = PurePosixPath(part.file)
        if file.is_absolute() or ".." in file.parts:
            yield f"part '{part.name}' names a file outside the folder"
        if not any(part.name in worker.parts for worker in spec.workers):
            yield f"no worker runs part '{part.name}'"
        yield from _port_faults(spec, part)


def _takes_every_frame(turns: Sequence[tuple[int, ...]]) -> bool:
    """Whether replicas (i, n), which take the frames f with f mod n = i, take each frame once."""
    frames = lcm(*(step for _, step in turns))
    is_enough = sum(frames // step for _, step in turns) == frames
    return is_enough and all((a - b) % gcd(m, n) for (a, m), (b, n) in combinations(turns, 2))


def _fifo_faults(index: int, fifo: FifoSpec, parts: list[str]) -> Iterator[str]:
    name = f"FIFO {index} ('{fifo.tensor}')"
    if fifo.dtype not in _TYPES:
        yield f"{name} carries '{fifo.dtype}', which is no type of tensors"
    elif any(not 0 <= n < _MOST for n in (*fifo.shape, *fifo.begin)) or not 0 <= fifo.size <= fifo.bytes < _MOST:
        yield f"{name} has slots of {fifo.bytes} bytes, too few for its tensor"
    elif fifo.bytes % ALIGNMENT:
        yield f"{name} has slots of {fifo.bytes} bytes, which are no whole lines"
    if not 1 <= fifo.slots < _MOST or not fifo.readers or len(set(fifo.readers)) < len(fifo.readers):
        yield f"{name} has no slot, no reader, or one reader twice"
    if unknown := {fifo.source, *fifo.readers} - {OUTSIDE, *parts}:
        yield f"{name} is joined to '{min(unknown)}', which is no part"
    if fifo.source in fifo.readers:
        yield f"{name} is read by its own source"


def _end_faults(fifos: list[FifoSpec], tensors: tuple[TensorSpec, ...]) -> Iterator[str]:
    """Whether FIFOs from or to the outside carry regions of these tensors, each of them."""
    known = {tensor.name: tensor for tensor in tensors}
    for fifo in fifos:
        tensor = known.pop(fifo.tensor, None) or next((t for t in tensors if t.name == fifo.tensor), None)
        ranks = {len(fifo.shape), len(fifo.begin or fifo.shape), *((len(tensor.shape),) if tensor else ())}
        if tensor is None or tensor.dtype != fifo.dtype or len(ranks) > 1:
            yield f"'{fifo.tensor}' goes through the outside and is no input or output"
        elif any(not 0 <= s.start <= s.stop <= n for s, n in zip(fifo.slices, tensor.shape, strict=True)):
            yield f"a FIFO carries more of '{fifo.tensor}' than there is"
    if known:
        yield f"no FIFO carries '{min(known)}'"


def _port_faults(spec: PipelineSpec, part: PartSpec) -> Iterator[str]:
    read = {i for i, fifo in enumerate(spec.fifos) if part.name in fifo.readers}
    written = {i for i, fifo in enumerate(spec.fifos) if part.name == fifo.source}
    if {port.fifo for port in part.inputs} != read or {port.fifo for port in part.outputs} != written:
        yield f"part '{part.name}' does not read and write the FIFOs that are joined to it"
        return
    if any(not 0 <= memory.bytes < _MOST for memory in part.memories):
        yield f"part '{part.name}' has a memory of impossible size"
    for port in (*part.inputs, *part.outputs):
        axes = len(spec.fifos[port.fifo].shape)
        if port.layout and sorted(port.layout) != list(range(axes)):
            yield f"part '{part.name}' has a layout of '{port.tensor}' that is no order of its axes"


def _decoded(kind: Any, data: Any, where: str) -> Any:
    """The value of this type that JSON data stands for."""
    if is_dataclass(kind):
        if not isinstance(data, dict):
            raise ValueError(f"{where or 'the file'} should be an object")
        make: Callable[..., Any] = kind  # type: ignore[assignment]
        hints = get_type_hints(kind)
        given = {field.name for field in fields(kind)}
        if unknown := set(data) - given:
            raise ValueError(f"{where} has an unknown key '{str(min(unknown))[:40]}'".strip())
        try:
            return make(**{key: _decoded(hints[key], value, f"{where}.{key}") for key, value in data.items()})
        except TypeError:
            raise ValueError(f"{where or 'the file'} lacks a key") from None
    if get_origin(kind) is tuple:
        if not isinstance(data, list):
            raise ValueError(f"{where} should be a list")
        return tuple(_decoded(get_args(kind)[0], value, f"{where}[{i}]") for i, value in enumerate(data))
    if type(data) is not kind:
        raise ValueError(f"{where} should be {'a number' if kind is int else 'a text'}")
    return data
