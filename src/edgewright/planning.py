"""`edgewright.plan`: the plan that the command line would make, as a function."""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import onnx

from . import text
from .complete_plan import find_complete
from .errors import EdgewrightError, Infeasible, InputError, Unsupported
from .fusion.cheaper import with_cheaper
from .fusion.choice import FoundPlan
from .fusion.request import PlanRequest, find
from .memory import Techniques, critical_buffers, fit
from .memory import plan as plan_network
from .network import Network
from .network.passes.interface import with_quantised_interface
from .network.read import read
from .platform import Board, load_board
from .platform.target import Target, chosen_target
from .platform.units import parse_size
from .program import FusionSchedule, Plan, load_plan
from .progress import Listener, listening
from .report import memory_map_svg, refusal

__all__ = ["PlannedNetwork", "load_plan", "plan", "planned"]

MINIMISED = "ram"


Plan.picture = memory_map_svg


@dataclass(frozen=True)
class PlannedNetwork:
    """A plan, with its code where there is a target, and what the search found besides."""

    plan: Plan
    found: FoundPlan
    not_counted: str = ""  # why code and stack are not; empty where they are


def planned(
    network: Network,
    request: PlanRequest,
    board: Board | None = None,
    target: Target | str | None = None,
    *,
    explain: bool = True,
) -> PlannedNetwork:
    """The plan that was asked for: complete, where it is known for which target."""
    core = chosen_target(board, target)
    not_counted = "they depend on the --board or --target"
    if core is not None:
        try:
            completed = find_complete(network, request, board, core, compare=explain)
        except Unsupported as error:
            not_counted = f"there is no code: {error}"
        else:
            assert completed.found is not None
            return PlannedNetwork(completed.plan, completed.found, completed.not_counted)
    found = find(network, request, board, core, explain=explain)
    plan = with_cheaper(found.plan, request, board, core) if explain else found.plan
    return PlannedNetwork(plan, found, not_counted)


@contextmanager
def advising(
    network: Network, request: PlanRequest, board: Board | None = None, target: Target | str | None = None
) -> Iterator[None]:
    """Adds to an Infeasible from inside that inputs which come quantised would make the network fit, where they do."""
    try:
        yield
    except Infeasible as error:
        with suppress(EdgewrightError):  # nothing is quantised at its beginning, or it does not fit either
            quantised = with_quantised_interface(network)
            made = planned(quantised, request, board, target, explain=False).plan
            verdict = fit(made, board, request.ram)
            if verdict.fits:
                needed = f"{text.count(verdict.ram_needed)} B of RAM"
                error.add_note(f"with --quantised-input, where the caller quantises the input, it fits: {needed}")
        raise


def plan(
    model: Network | str | os.PathLike[str] | bytes | onnx.ModelProto,
    board: str | Path | Board | None = None,
    *,
    target: str | None = None,
    ram: int | str | None = None,
    minimise: str | None = None,
    max_overhead: float | None = None,
    max_slowdown: float | None = None,
    plain: bool = False,
    phases: bool | Collection[str] = False,
    schedules: Sequence[FusionSchedule] = (),
    pull_rows: bool = False,
    lanes: int = 1,
    alignment: int | None = None,
    techniques: Techniques | None = None,
    explain: bool = True,
    progress: Listener | None = None,
) -> Plan:
    """The plan that `edgewright plan` makes with the same options; Infeasible where it needs more RAM than there is.

    A board whose flash is too small is a warning here, and an error of `compile_model`.

    Without limits layers are whole and the RAM is the least. `ram` is a limit such as 65536 or "64K"; minimise="ram"
    and the limits on extra work (0.05 for 5 %) ask for layers in parts. `phases` and `schedules` say by hand which ones
    run in parts, and `plain` that nothing but order and layout is used (S 4.3.1, 4.3.2). `techniques` switches single
    techniques of whole layers; `explain` adds what each one saved. `progress` is called with what is being done, and
    with the share that is done or None.

    >>> from edgewright import samples, read_model
    >>> plan(read_model(samples.build("stahl_running_example")), plain=True).peak_bytes  # S fig. 4.9
    24576
    """
    network = model if isinstance(model, Network) else read(model)
    hardware = board if isinstance(board, Board) or board is None else load_board(board)
    if minimise not in (None, MINIMISED):
        raise InputError(f'minimise="{minimise}" is not known; write minimise="{MINIMISED}", or leave it out')
    limit = parse_size(ram) if ram is not None else None
    request = PlanRequest(
        ram=limit,
        plain=plain,
        alignment=alignment,
        pull_rows=pull_rows,
        phases=phases if isinstance(phases, bool) else tuple(phases),
        schedules=tuple(schedules),
        minimise_ram=minimise is not None,
        max_overhead=max_overhead,
        max_slowdown=max_slowdown,
        lanes=lanes,
    )
    if techniques is not None:
        if request.is_search or lanes > 1:
            raise InputError("techniques are those of whole layers: leave minimise, limits on extra work and lanes out")
        made = plan_network(
            network, hardware, plain=plain, techniques=techniques, alignment=alignment, explain=explain,
            pull_rows=pull_rows, phases=phases, schedules=schedules or None,
        )  # fmt: skip
    else:
        with listening(progress), advising(network, request, hardware, target):
            made = planned(network, request, hardware, target, explain=explain).plan
    verdict = fit(made, hardware, limit)
    if not verdict.ram_fits:
        with advising(network, request, hardware, target):
            raise Infeasible(refusal(made, verdict, critical_buffers(made)))
    if not verdict.fits:  # a plan is of RAM: it is worth having before the flash is there
        warnings.warn(refusal(made, verdict, critical_buffers(made)), stacklevel=2)
    return made
