"""Deployments compiled for this machine: a library for each part, and the specification that executes them.

This compiles, and takes the rooms below; what it writes into a folder runs without them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from ..board.toolchain import end_compilers
from ..emit.library import Library, emit
from ..emit.names import library_name
from ..emit.native import build_shared
from ..errors import InputError
from ..files import make_folder
from ..fusion.lanes import with_lanes
from ..fusion.pooling import with_pools
from ..interrupts import interruptible
from ..memory.deploy import SLOTS, plan_in_slots
from ..network import Network, Region
from ..network.onnx_writer import to_onnx
from ..network.parts import TensorRegion
from ..platform.target import TARGETS
from ..program import Plan
from ..program.deployment import OUTSIDE, SLOT_ALIGNMENT, Deployment, Fifo, Part, Reader, Worker
from ..program.deployment_check import checked_deployment
from ..program.deployment_memory import laid_out
from .executors.torch_part import write_torch_part
from .machine import architecture, processor_features
from .specification import (
    FifoSpec,
    MemorySpec,
    PartSpec,
    PipelineSpec,
    PortSpec,
    TensorSpec,
    WorkerSpec,
    digest_of,
    save_specification,
    specification_faults,
)

THIS = "this"  # the device that is this machine


def build_pipeline(deployment: Deployment, folder: Path) -> PipelineSpec:
    """The parts compiled into `folder`, with the file that tells a pipeline how they belong together."""
    devices = dict.fromkeys(worker.device for worker in deployment.workers)
    if len(devices) > 1:
        raise InputError(
            f"this deployment is for {len(devices)} devices ({', '.join(devices)}); a pipeline runs on one"
        )
    checked_deployment(deployment)
    make_folder(folder)
    taken: set[str] = set()
    libraries: dict[str, Library] = {}
    for part in deployment.parts:
        if part.plan is not None:
            if any(part.plan.views[each].window for each in part.network.inputs):
                raise InputError(f"part '{part.name}' pulls rows of its input; a pipeline hands over whole frames")
            name = _free_name(library_name(part.network, None), taken)
            libraries[part.name] = emit(part.plan, TARGETS["host"], part.network, name)

    def compiled() -> dict[str, Path]:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            natives = pool.map(lambda library: build_shared(library, folder / library.name), libraries.values())
            return dict(zip(libraries, natives, strict=True))

    files = interruptible(compiled, end_compilers)
    parts = tuple(
        _native(deployment, part, libraries[part.name], files[part.name], folder)
        if part.name in libraries
        else _other_runtime_part(deployment, part, _free_name("part", taken), folder)
        for part in deployment.parts
    )
    spec = PipelineSpec(
        "+".join(network.name for network in deployment.networks),
        architecture() if libraries else "",
        processor_features() if libraries else (),
        _ends(deployment, is_input=True),
        _ends(deployment, is_input=False),
        parts,
        tuple(WorkerSpec(w.name, w.cores, w.parts, w.replica) for w in deployment.workers),
        tuple(_fifo(deployment, fifo) for fifo in deployment.fifos),
    )
    fault = next(specification_faults(spec), None)
    assert fault is None, fault
    save_specification(spec, folder)
    return spec


def plan_for_host(network: Network, lanes: int = 1) -> Plan:
    """The plan with its ends in FIFO slots, all of it in whole cache lines.

    Lanes share whole layers where that pays. One core takes some layers by rows, with the pools behind them.
    """
    whole = plan_in_slots(network, SLOT_ALIGNMENT)
    return with_lanes(network, whole, lanes, target=TARGETS["host"]) if lanes > 1 else with_pools(network, whole)


def whole_network(
    network: Network, plan: Plan | None, cores: Sequence[tuple[int, ...]] = ((),), slots: int = SLOTS
) -> Deployment:
    """The network as one part by this plan: a replica on each group of cores, frames dealt out in turn."""
    ends = dict.fromkeys((*network.inputs, *network.outputs))
    whole = {name: TensorRegion(network.name, name, Region.whole(network.tensors[name].shape)) for name in ends}
    part = Part(
        "all",
        network,
        plan,
        {name: whole[name] for name in network.inputs},
        {name: whole[name] for name in network.outputs},
    )
    workers = tuple(
        Worker(f"worker{i}", THIS, "cpu", group, (part.name,), (i, len(cores))) for i, group in enumerate(cores)
    )
    depth = max(slots, len(cores) + 1)
    fifos = [Fifo(whole[name], OUTSIDE, (Reader(part.name),), depth) for name in network.inputs]
    fifos += [Fifo(whole[name], part.name, (Reader(OUTSIDE),), depth) for name in dict.fromkeys(network.outputs)]
    draft = Deployment((network,), (part,), workers, tuple(fifos), {})
    return replace(draft, arenas=laid_out(draft))


def _native(deployment: Deployment, part: Part, library: Library, path: Path, folder: Path) -> PartSpec:
    lanes = library.plan.lanes
    return PartSpec(
        part.name,
        "native",
        path.relative_to(folder.resolve()).as_posix(),
        digest_of(path),
        _ports(deployment, part, deployment.reads[part.name], part.network.inputs),
        _ports(deployment, part, deployment.writes[part.name], dict.fromkeys(part.network.outputs)),
        f"{library.name}_run_in",
        tuple(MemorySpec(memory, size) for memory, size in library.arenas.items()),
        library.weight_bytes,
        _layers(part),
        lanes,
        f"{library.name}_lanes_stop" if lanes > 1 else "",
    )


def _other_runtime_part(deployment: Deployment, part: Part, name: str, folder: Path) -> PartSpec:
    """A part that another runtime executes: torch takes it as we have it, onnxruntime as a model file."""
    is_torch = part.runtime == "torch"
    if not is_torch and part.runtime != "onnxruntime":
        raise InputError(
            f"part '{part.name}' is for the runtime '{part.runtime[:40]}'; known are onnxruntime and torch"
        )
    file = folder / f"{name}.{'npz' if is_torch else 'onnx'}"
    if is_torch:
        write_torch_part(part.network, file)
    else:
        file.write_bytes(to_onnx(part.network).SerializeToString())
    outputs = dict.fromkeys(part.network.outputs)
    return PartSpec(
        part.name,
        part.runtime,
        file.name,
        digest_of(file),
        _ports(deployment, part, deployment.reads[part.name], part.network.inputs, has_layout=not is_torch),
        _ports(deployment, part, deployment.writes[part.name], outputs, has_layout=not is_torch),
        weights_bytes=sum(value.nbytes for value in part.network.constants.values()),
        layers=_layers(part),
    )


def _ports(
    deployment: Deployment, part: Part, joined: Mapping[str, Fifo], names: Iterable[str], has_layout: bool = False
) -> tuple[PortSpec, ...]:
    """The ports of a part in the order of its own tensors."""
    index = {id(fifo): i for i, fifo in enumerate(deployment.fifos)}
    found = []
    for name in names:
        layout = part.network.layouts.get(name, ()) if has_layout else ()
        found.append(PortSpec(name, index[id(joined[name])], tuple(layout)))
    return tuple(found)


def _fifo(deployment: Deployment, fifo: Fifo) -> FifoSpec:
    tensor = deployment.tensor(fifo)
    return FifoSpec(
        _name(deployment, fifo.what),
        tensor.shape,
        tensor.dtype.numpy.name,
        fifo.slots,
        fifo.source,
        fifo.reading,
        deployment.slot_bytes(fifo),
        tuple(low for low, _ in fifo.what.region.bounds),
    )


def _ends(deployment: Deployment, is_input: bool) -> tuple[TensorSpec, ...]:
    """The inputs, or the outputs, of all networks that frames are given for or results come from."""
    used = {
        fifo.what.network + "/" + fifo.what.tensor
        for fifo in deployment.fifos
        if (fifo.source == OUTSIDE if is_input else OUTSIDE in fifo.reading)
    }
    found = []
    for network in deployment.networks:
        for name in dict.fromkeys(network.inputs if is_input else network.outputs):
            if f"{network.name}/{name}" in used:
                tensor = network.tensors[name]
                what = TensorRegion(network.name, name, Region.whole(tensor.shape))
                found.append(TensorSpec(_name(deployment, what), tensor.shape, tensor.dtype.numpy.name))
    return tuple(found)


def _name(deployment: Deployment, what: TensorRegion) -> str:
    """A tensor as the caller names it: with its network where there are several."""
    return what.tensor if len(deployment.networks) == 1 else f"{what.network}/{what.tensor}"


def _layers(part: Part) -> tuple[str, ...]:
    return tuple(layer.name for layer in part.network.layers)


def _free_name(wanted: str, taken: set[str]) -> str:
    """The name, or with a number behind it, that no other part has."""
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    taken.add(name)
    return name
