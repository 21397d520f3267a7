"""The result of planning an application by any method: figures for people and for machines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256

import numpy as np

from .. import text
from ..errors import Infeasible
from ..memory.joint.layout import JointLayout, proven
from ..memory.layout import place_graph
from ..program.deployment import Deployment
from ..program.deployment_check import checked_deployment
from .combinations import JointPlan
from .description import Precision
from .draft import Application
from .quantisation import stored_bytes
from .response_time import (
    CascadeLatency,
    WorstResponse,
    cascade_latencies,
    check_deadlines,
    lateness_notes,
    tasks_of,
)
from .search import JointSearch


@dataclass(frozen=True, slots=True)
class NetworkFigures:
    """The figures of one network of the application."""

    peak_bytes: int  # of its plan alone
    macs: int
    macs_plain: int
    slowdown: float = 0.0  # extra estimated instructions over the fastest plan, as a share


@dataclass(frozen=True)
class AppOutcome:
    """The figures of one arena for all networks. `bound_bytes` is a lower bound for layouts of these plans."""

    application: Application
    method: str
    peak_bytes: int
    bound_bytes: int
    separate_bytes: int  # the same plans, each in a separate arena
    flash_bytes: int
    networks: Mapping[str, NetworkFigures]
    setters: tuple[str, ...] = ()
    ram: int | None = None  # available
    joint: JointPlan | None = None
    next: tuple[tuple[int, JointPlan | None], ...] = ()
    notes: tuple[str, ...] = ()
    responses: tuple[WorstResponse, ...] = ()  # of the networks that have a period
    cascades: tuple[CascadeLatency, ...] = ()  # of networks whose first has a period
    paper: Mapping[str, int] = field(default_factory=dict)  # none_bytes, reuse_bytes, parts_bytes
    phases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # layers that run by parts, of each network

    def __repr__(self) -> str:
        return f"AppOutcome({', '.join(self.networks)}: {self.peak_bytes:,} B of RAM)"

    @property
    def optimal(self) -> bool:
        return self.peak_bytes == self.bound_bytes

    @property
    def quality(self) -> str:
        """How good the memory is, as a phrase."""
        if self.optimal:
            return "proven least for these plans of the networks"
        return f"no layout of these plans needs less than {text.size(self.bound_bytes)}"

    def to_dict(self) -> dict[str, object]:
        """The figures for `--json`."""
        record: dict[str, object] = {
            "method": self.method,
            "peak_bytes": self.peak_bytes,
            "bound_bytes": self.bound_bytes,
            "optimal": self.optimal,
            "separate_bytes": self.separate_bytes,
            "flash_bytes": self.flash_bytes,
            "ram": self.ram,
            "setters": list(self.setters),
            "notes": list(self.notes),
            "networks": {
                name: {
                    "peak_bytes": one.peak_bytes,
                    "macs": one.macs,
                    "macs_plain": one.macs_plain,
                    "slowdown": round(one.slowdown, 4),
                }
                for name, one in self.networks.items()
            },
            **self.paper,
        }
        if self.phases:
            record["by_parts"] = {name: list(layers) for name, layers in self.phases.items()}
        if self.responses:
            record["responses"] = {
                one.task.name: {"worst_s": one.worst, "deadline_s": one.task.deadline, "blocking_s": one.blocking}
                for one in self.responses
            }
        if self.cascades:
            record["cascades"] = [{"networks": list(one.networks), "worst_s": one.worst} for one in self.cascades]
        if self.joint is not None:
            layout = self.joint.layout
            record["buffers"] = [
                {"name": b.name, "memory": layout.home(b.name), "offset": layout.at(b.name), "size": b.size}
                for b in layout.buffers
            ]
            record["arenas"] = dict(layout.arenas)
            if layout.rings:
                record["rings"] = [
                    {
                        "name": ring.name,
                        "rows": ring.rows,
                        "of": ring.frame_rows,
                        "bytes": layout.deployment.slot_size(ring),
                    }
                    for ring in layout.rings
                ]
            record["next"] = [
                {"ram": ram, "payers": list(plan.payers), "slowdown": round(plan.slowdown, 4)} if plan else {"ram": ram}
                for ram, plan in self.next
            ]
        return record


def plan_application(
    application: Application, ram: int | None = None, steps: int = 2, search: JointSearch | None = None
) -> AppOutcome:
    """The joint plan: the least arena without extra MACs, or with `ram` the least slow-down that fits."""
    search = search or JointSearch(application)
    if ram is None and len(application.memories) > 1:
        placed = search.in_memories(application.memories)
        check_flash(application)
        used = [application.memories[name] for name in placed.layout.arenas]
        following = tuple(search.next_steps(placed, steps)) if len(used) == 1 else ()
        return outcome_of(search, placed, sum(used), following)
    there = ram if ram is not None else available_ram(application)
    if ram is not None:
        joint = search.within(ram)
    else:
        joint = search.least
        if there is not None and joint.peak_bytes > there:
            joint = search.within(there)
    joint = replace(joint, layout=proven(joint.layout))
    check_flash(application)
    return outcome_of(search, joint, there, tuple(search.next_steps(joint, steps)))


def outcome_of(
    search: JointSearch,
    joint: JointPlan,
    ram: int | None,
    following: tuple[tuple[int, JointPlan | None], ...] = (),
) -> AppOutcome:
    application, layout = search.application, joint.layout
    deployment = checked_deployment(layout.deployment)  # checked before it is reported
    alone = {owner: _standalone_bytes(layout, owner) for owner in application.networks}
    responses = check_deadlines(application, deployment)
    return AppOutcome(
        application,
        "joint",
        layout.peak_bytes,
        layout.bound_bytes,
        sum(alone.values()),
        flash_bytes(application),
        {
            owner: NetworkFigures(
                alone[owner],
                sum(deployment.plans[part.name].macs for part in deployment.parts_of(owner)),
                network.total_macs,
                max(joint.slowdowns[part.name] for part in deployment.parts_of(owner)),
            )
            for owner, network in application.networks.items()
        },
        layout.setters,
        ram,
        joint,
        following,
        (*_ring_notes(deployment), *flash_notes(application), *lateness_notes(responses)),
        responses,
        cascade_latencies(tasks_of(application, deployment)),
    )


def _ring_notes(deployment: Deployment) -> Iterator[str]:
    for ring in deployment.rings:
        kept, whole = deployment.slot_size(ring), deployment.tensor(ring).bytes
        sizes = f"{text.size(kept)} instead of {text.size(whole)} a frame"
        what = f"'{ring.what.tensor}' crosses in '{ring.what.network}' row by row"
        yield f"{what}: {ring.rows} of {ring.frame_rows} kept, {sizes}"


def _standalone_bytes(layout: JointLayout, owner: str) -> int:
    """Bytes of the network's plan without the others."""
    names = [part.name for part in layout.problem.deployment.parts_of(owner)]
    if len(names) == 1:
        return layout.problem.plans[names[0]].peak_bytes
    own = frozenset(
        b.name
        for b in layout.buffers
        if any(use.part in names for use in b.uses) or (b.fifo and not b.during.isdisjoint(names))
    )
    return place_graph(layout.graph.part(own)).peak


def available_ram(application: Application) -> int | None:
    """The limit in the file, or the largest memory."""
    return application.file.limits.ram or max(application.memories.values(), default=None)


def flash_bytes(application: Application) -> int:
    """Weights and other constants of all networks; equal ones are stored once."""
    seen: dict[str, int] = {}
    for name, network in application.networks.items():
        for values, size in stored_bytes(network, application.file.network(name).quantise).values():
            data = np.ascontiguousarray(values)
            seen[f"{size}:{data.dtype}:{sha256(data.tobytes()).hexdigest()}"] = size
    return sum(seen.values())


def check_flash(application: Application) -> None:
    """Raises an error if weights exceed the limit on flash."""
    limit = application.file.limits.flash
    if limit is not None and flash_bytes(application) > limit:
        raise Infeasible(f"does not fit: {too_much_flash(application, limit)}")


def flash_notes(application: Application) -> tuple[str, ...]:
    """Notes about flash. A board's flash may be too small: the plan for RAM is still useful."""
    notes = [
        f"weights of '{entry.name}' are rounded to fp16 and counted so; the C library stores them as float32"
        for entry in application.file.networks
        if entry.quantise is Precision.FP16
    ]
    limit = application.board.flash_size if application.board is not None else None
    if application.file.limits.flash is None and limit is not None and flash_bytes(application) > limit:
        notes.append(too_much_flash(application, limit))
    return tuple(notes)


def too_much_flash(application: Application, limit: int) -> str:
    """What does not fit, without a full stop."""
    sizes = {name: network.weight_bytes for name, network in application.networks.items()}
    largest = max(sizes, key=sizes.__getitem__)
    return (
        f"the weights of all networks take {text.size(flash_bytes(application))} of flash, and {text.size(limit)} are "
        f"there; '{largest}' alone takes {text.size(sizes[largest])}: quantise it, or leave a network out"
    )
