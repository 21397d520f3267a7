"""`edgewright.plan`: the plan that the command line would make, as a function."""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict, Unpack

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
    """A plan, complete if its target is known, with the results of the search."""

    plan: Plan
    search_result: FoundPlan
    not_counted: str = ""  # why code and stack are missing; empty if they are known


def planned(
    network: Network,
    request: PlanRequest,
    board: Board | None = None,
    target: Target | str | None = None,
    *,
    explain: bool = True,
) -> PlannedNetwork:
    """The plan for the request; complete if the target is known."""
    core = chosen_target(board, target)
    not_counted = "they depend on the --board or --target"
    if core is not None:
        try:
            completed = find_complete(network, request, board, core, compare=explain)
        except Unsupported as error:
            not_counted = f"there is no code: {error}"
        else:
            assert completed.search_result is not None
            return PlannedNetwork(completed.plan, completed.search_result, completed.not_counted)
    answer = find(network, request, board, core, explain=explain)
    plan = with_cheaper(answer.plan, request, board, core) if explain else answer.plan
    return PlannedNetwork(plan, answer, not_counted)


@contextmanager
def advising(
    network: Network, request: PlanRequest, board: Board | None = None, target: Target | str | None = None
) -> Iterator[None]:
    """If the block raises Infeasible and the network would fit with quantised inputs, adds that to the error."""
    try:
        yield
    except Infeasible as error:
        with suppress(EdgewrightError):  # no quantisation at the beginning, or it does not fit either
            quantised = with_quantised_interface(network)
            made = planned(quantised, request, board, target, explain=False).plan
            verdict = fit(made, board, request.ram)
            if verdict.fits:
                needed = f"{text.count(verdict.ram_needed)} B of RAM"
                error.add_note(f"with --quantised-input, where the caller quantises the input, it fits: {needed}")
        raise


class RequestKeywords(TypedDict, total=False):
    """The options of `plan` that are fields of a `PlanRequest`."""

    max_overhead: float | None
    max_slowdown: float | None
    plain: bool
    phases: bool | Collection[str]
    schedules: Sequence[FusionSchedule] | None
    pull_rows: bool
    lanes: int
    alignment: int | None


class PlanKeywords(RequestKeywords, total=False):
    """The options of `plan` that say what the plan should be like."""

    ram: int | str | None
    minimise: str | None


def request_of(
    *, ram: int | str | None = None, minimise: str | None = None, **fields: Unpack[RequestKeywords]
) -> PlanRequest:
    """The request that the options of `plan` describe."""
    if unknown := fields.keys() - RequestKeywords.__annotations__.keys():
        raise TypeError(f"plan() got an unexpected keyword argument '{min(unknown)}'")
    if minimise not in (None, MINIMISED):
        raise InputError(f'minimise="{minimise}" is not known; write minimise="{MINIMISED}", or leave it out')
    fields["schedules"] = tuple(fields.get("schedules") or ()) or None
    if not isinstance(phases := fields.get("phases", False), bool):
        fields["phases"] = tuple(phases)
    return PlanRequest(ram=None if ram is None else parse_size(ram), minimise_ram=minimise is not None, **fields)


def plan(
    model: Network | str | os.PathLike[str] | bytes | onnx.ModelProto,
    board: str | Path | Board | None = None,
    *,
    target: str | None = None,
    techniques: Techniques | None = None,
    explain: bool = True,
    progress: Listener | None = None,
    **options: Unpack[PlanKeywords],
) -> Plan:
    """The plan that `edgewright plan` makes with the same options; raises Infeasible if it does not fit.

    A board whose flash is too small is a warning here, and an error of `compile_model`.

    Without limits layers are whole and the RAM is the least. `ram` is a limit such as 65536 or "64K"; minimise="ram"
    and the limits on extra work (0.05 for 5 %) ask for layers in parts. `phases` and `schedules` say by hand which ones
    run in parts, and `plain` that nothing but order and layout is used (S 4.3.1, 4.3.2). `techniques` switches single
    techniques of whole layers; `explain` adds what each one saved. `progress` is called with a description of each
    step, and with the share of it that is done or None.

    >>> from edgewright import samples, read_model
    >>> plan(read_model(samples.build("stahl_running_example")), plain=True).peak_bytes  # S fig. 4.9
    24576
    """
    network = model if isinstance(model, Network) else read(model)
    hardware = board if isinstance(board, Board) or board is None else load_board(board)
    request = request_of(**options)
    if techniques is not None:
        if request.is_search or request.lanes > 1:
            raise InputError("techniques are those of whole layers: leave minimise, limits on extra work and lanes out")
        made = plan_network(network, hardware, request, techniques=techniques, explain=explain)
    else:
        with listening(progress), advising(network, request, hardware, target):
            made = planned(network, request, hardware, target, explain=explain).plan
    verdict = fit(made, hardware, request.ram)
    if not verdict.ram_fits:
        with advising(network, request, hardware, target):
            raise Infeasible(refusal(made, verdict, critical_buffers(made)))
    if not verdict.fits:  # a plan is about RAM, and useful while flash is still too small
        warnings.warn(refusal(made, verdict, critical_buffers(made)), stacklevel=2)
    return made
