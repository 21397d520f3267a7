"""C of the parts of a plan whose devices are boards: a library for each part, for the board's own processor."""

from __future__ import annotations

from pathlib import Path

from ..emit import emit
from ..files import write_together
from ..platform import load_board
from ..platform.target import target_of
from .planning import ClusterPlan


def write_libraries(plan: ClusterPlan, folder: Path) -> None:
    """Writes c/DEVICE/ with the libraries of its parts; devices that are no boards of the catalogue have none."""
    planned, files = plan.deployment, dict[Path, str | bytes]()
    assert planned is not None
    for worker in planned.deployment.workers:
        board = plan.cluster.device_named[worker.device].board
        if not board:
            continue
        target, home = target_of(load_board(board)), folder / "c" / worker.device
        home.mkdir(parents=True, exist_ok=True)
        for name in worker.parts:
            part = planned.deployment.part_named[name]
            assert part.plan is not None
            library = emit(part.plan, target, part.network, name=name.replace(".", "_"))
            files |= {home / file: content for file, content in library.files.items()}
    write_together(files)
