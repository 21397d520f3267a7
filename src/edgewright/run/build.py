"""Compiles deployments for this machine: a library for each part, and the reduced deployment that names them.

Compiling needs the rooms below; the resulting folder runs without them.
"""

from __future__ import annotations

import os
from collections.abc import Container, Mapping, Sequence
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
from ..program.deployment import OUTSIDE, SLOT_ALIGNMENT, BuiltPart, Deployment, Fifo, Part, Reader, Worker
from ..program.deployment_check import checked_deployment
from ..program.deployment_file import digest_of, save_reduced
from ..program.deployment_memory import laid_out
from .executors.torch_part import write_torch_part
from .machine import architecture, processor_features
from .requirements import check_executable

THIS = "this"  # the device that is this machine


def build_pipeline(deployment: Deployment, folder: Path) -> Deployment:
    """Compiles the parts into `folder` and returns the reduced deployment, which is saved there too."""
    check_executable(checked_deployment(deployment))
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
    built = {
        part.name: _native(part, libraries[part.name], files[part.name], folder)
        if part.name in libraries
        else _of_other_runtime(part, _free_name("part", taken), folder)
        for part in deployment.parts
    }
    reduced = checked_deployment(_reduced(deployment, built))
    save_reduced(reduced, folder)
    return reduced


def plan_for_host(network: Network, lanes: int = 1) -> Plan:
    """The plan with its inputs and outputs in FIFO slots, aligned to cache lines.

    Lanes share whole layers where that pays. On one core some layers run by rows, fused with the following pools.
    """
    whole = plan_in_slots(network, SLOT_ALIGNMENT)
    return with_lanes(network, whole, lanes, target=TARGETS["host"]) if lanes > 1 else with_pools(network, whole)


def whole_network(
    network: Network, plan: Plan | None, cores: Sequence[tuple[int, ...]] = ((),), slots: int = SLOTS
) -> Deployment:
    """The network as one part with this plan: a replica on each group of cores, with frames distributed in turn."""
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


def _native(part: Part, library: Library, path: Path, folder: Path) -> BuiltPart:
    lanes = library.plan.lanes
    return BuiltPart(
        "native",
        path.relative_to(folder.resolve()).as_posix(),
        digest_of(path),
        library.weight_bytes,
        tuple(part.network.by_name),
        f"{library.name}_run_in",
        library.arenas,
        lanes,
        f"{library.name}_lanes_stop" if lanes > 1 else "",
        architecture(),
        processor_features(),
    )


def _of_other_runtime(part: Part, name: str, folder: Path) -> BuiltPart:
    """A part for another runtime: torch takes our network, onnxruntime a model file."""
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
    weights = sum(value.nbytes for value in part.network.constants.values())
    return BuiltPart(part.runtime, file.name, digest_of(file), weights, tuple(part.network.by_name))


def _reduced(deployment: Deployment, built: Mapping[str, BuiltPart]) -> Deployment:
    """The deployment without layers, weights, plans and predictions, as a device needs it."""
    networks = []
    for network in deployment.networks:
        fifos = [fifo for fifo in deployment.fifos if fifo.what.network == network.name]
        brought = {fifo.what.tensor for fifo in fifos if fifo.source == OUTSIDE}
        taken = {fifo.what.tensor for fifo in fifos if OUTSIDE in fifo.reading}
        networks.append(_ends_alone(network, brought, taken, [fifo.what.tensor for fifo in fifos]))
    parts = [
        replace(part, network=_ends_alone(part.network, part.inputs, part.outputs), plan=None, built=built[part.name])
        for part in deployment.parts
    ]
    return replace(deployment, networks=tuple(networks), parts=tuple(parts), predictions=())


def _ends_alone(
    network: Network, inputs: Container[str], outputs: Container[str], others: Sequence[str] = ()
) -> Network:
    """The network without layers and weights: only these inputs, outputs and other tensors."""
    brought = tuple(name for name in network.inputs if name in inputs)
    taken = tuple(name for name in network.outputs if name in outputs)
    tensors = {name: network.tensors[name] for name in (*brought, *taken, *others)}
    layouts = {name: axes for name, axes in network.layouts.items() if name in tensors}
    return Network(network.name, brought, taken, (), tensors, {}, network.arithmetic, layouts)


def _free_name(wanted: str, taken: set[str]) -> str:
    """The name, with a number added if another part has it."""
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    taken.add(name)
    return name
