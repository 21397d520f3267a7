"""C of the parts of a device: each has its own run function, and all have kernels and weights in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..emit.library import LibraryShare, SharedCode, emit
from ..files import write_together
from ..kernels.select import close_plan
from ..platform import load_board
from ..platform.target import Target, target_of
from ..program.deployment import Deployment
from .planning import ClusterPlan

PREFIX = "node"  # of kernels and weights


@dataclass(frozen=True)
class DeviceCode:
    """The C of all parts of a device, for its processor."""

    files: Mapping[str, str | bytes]
    functions: Mapping[str, str]  # of each part; it takes an arena, inputs and outputs
    runs: tuple[str, ...]  # the sources with these functions; the others are kernels and weights
    weights_bytes: int


def device_code(deployment: Deployment, device: str, target: Target) -> DeviceCode:
    """The parts are called part0, part1, ... in the order in which workers have them."""
    shared = SharedCode.called(PREFIX)
    functions: dict[str, str] = {}
    files: dict[str, str | bytes] = {}
    parts = [part for worker in deployment.workers if worker.device == device for part in worker.parts]
    for number, name in enumerate(parts):
        part = deployment.part_named[name]
        assert part.plan is not None
        library = emit(close_plan(part.plan, target, part.network), f"part{number}", LibraryShare(shared))
        assert dict(library.arenas) == dict(part.plan.arenas), "kernels were selected for another target"
        functions[name] = f"{library.name}_run_in"
        files |= library.files
    runs = tuple(name for name in files if name.endswith(".c"))
    return DeviceCode(files | shared.files(), functions, runs, shared.constants.bytes)


def write_libraries(plan: ClusterPlan, folder: Path) -> None:
    """Writes c/DEVICE/ with the code of its parts; devices that are no boards of the catalogue have none."""
    assert plan.deployment is not None
    deployment, files = plan.deployment.deployment, dict[Path, str | bytes]()
    for device in dict.fromkeys(worker.device for worker in deployment.workers):
        if board := plan.cluster.device_named[device].board:
            home = folder / "c" / device
            home.mkdir(parents=True, exist_ok=True)
            code = device_code(deployment, device, target_of(load_board(board)))
            files |= {home / file: content for file, content in code.files.items()}
    write_together(files)
