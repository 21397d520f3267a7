"""Application plans as files: the Deployment without weights, checked on loading and compared with the application."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ..errors import InputError
from ..memory.joint.layout import JointLayout, layout_of
from ..program.deployment import Deployment, Fifo, Reader, Relation, RelationKind
from ..program.deployment_check import checked_deployment, difference
from ..program.deployment_file import load_alone, save_alone
from .draft import Application
from .preemption_points import with_points
from .rings import reading_rows
from .slots import is_live


def save_application_plan(layout: JointLayout, path: Path) -> None:
    save_alone(checked_deployment(layout.deployment), path)


def load_application_plan(application: Application, path: Path) -> JointLayout:
    """The layout in a file, if it agrees with the application on networks, relations and buffers."""
    stored = load_alone(path, application.networks.values())
    try:
        _check_same(stored, application.deployment, is_planned=False)
        layout = layout_of(_planned(application, stored), application.memories)
        _check_same(stored, layout.deployment, is_planned=True)
        if not is_live(layout.deployment):
            raise InputError("its slots and rings let partitions wait for each other for ever; plan it again")
    except InputError as error:
        error.add_note(f"read from {path}")
        raise
    return layout


def _check_same(stored: Deployment, expected: Deployment, is_planned: bool) -> None:
    """Raises an error if the file differs from the draft, or from what follows from the file's plans."""
    if set(stored.part_named) != set(expected.part_named):
        raise InputError("its parts are not the networks and partitions of the application; plan it again")
    own, said = (_statements(each, is_planned) for each in (stored, expected))
    if wrong := [what for what in said if own[what] != said[what]]:
        raise InputError(f"its {wrong[0]} are not those of the application; plan it again")


def _statements(deployment: Deployment, is_planned: bool) -> Mapping[str, object]:
    """The statements of a deployment; those of a draft lack planning decisions."""
    return {
        "networks": [(replace(network, constants={}), set(network.constants)) for network in deployment.networks],
        "parts": {part.name: (dict(part.inputs), dict(part.outputs)) for part in deployment.parts},
        "FIFOs": {fifo if is_planned else _as_drafted(deployment, fifo) for fifo in deployment.fifos},
        "relations": {_unordered(relation, is_planned) for relation in deployment.relations},
        "buffers": set(deployment.buffers),
        "workers": set(deployment.workers),
        "arenas": deployment.arenas if is_planned else None,
    }


def _as_drafted(deployment: Deployment, fifo: Fifo) -> Fifo:
    """The FIFO as in a draft, if it is one between partitions."""
    if fifo not in deployment.queues:
        return fifo
    return replace(fifo, slots=1, rows=0, readers=tuple(map(Reader, fifo.reading)))


def _unordered(relation: Relation, is_planned: bool) -> object:
    """The relation without an order of its parts if it is symmetric. Only planned ones have points."""
    is_ordered = relation.kind in (RelationKind.PREEMPTS, RelationKind.SAME_INPUT, RelationKind.AFTER)
    parts = relation.parts if is_ordered else frozenset(relation.parts)
    return relation.kind, parts, relation.points if is_planned else relation.points is None


def _planned(application: Application, stored: Deployment) -> Deployment:
    """The draft with the plans, slots and points of a file, and the weights of the models."""
    draft, carried, plans = application.deployment, {fifo.what: fifo for fifo in stored.fifos}, {}
    for part in stored.parts:
        if part.plan is None:
            raise InputError(f"part '{part.name}' has no plan; plan it again")
        own = draft.part_named[part.name].network
        for tensor in (mine for mine, what in part.inputs.items() if carried[what].rows):
            own = reading_rows(own, tensor)
        if differing := difference(own, part.network):
            raise InputError(f"part '{part.name}' computes something else than the application: its {differing} differ")
        constants = {**part.network.constants, **draft.part_named[part.name].network.constants}
        network = replace(part.plan.network, constants=constants)
        plans[part.name] = replace(part.plan, program=replace(part.plan.program, network=network))
    fifos = tuple(carried[fifo.what] for fifo in draft.fifos)
    planned = replace(draft, fifos=fifos, arenas=stored.arenas).with_plans(plans)
    return with_points(application, planned, {name: stored.points_of(name) for name in plans})
