"""Plans that are complete for their target: kernels selected, weights packed, code size and stack as linked.

If a plan fits the RAM but its stack does not fit beside it, the search is repeated with the stack reserved.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from . import text
from .board.toolchain import toolchain
from .emit.firmware import link
from .emit.library import Library, emit
from .emit.packaging import calls_cmsis_nn
from .errors import EdgewrightError, Infeasible
from .fusion.cheaper import with_cheaper
from .fusion.choice import FoundPlan
from .fusion.request import PlanRequest, find
from .kernels.select import close_plan
from .memory import fit
from .network import Network
from .platform import Board
from .platform.target import Architecture, Target
from .program import Plan
from .program.options import Options
from .progress import tell

ROUNDS = 4  # plans linked at most until arenas and stack fit together


@dataclass(frozen=True)
class CompletePlan:
    """A library with its complete plan, and the results of the search."""

    library: Library
    not_counted: str = ""  # why code and stack are missing; empty if they are known
    search_result: FoundPlan | None = None  # the result of the search, if there was one

    @property
    def plan(self) -> Plan:
        return self.library.plan


def complete(
    plan: Plan, network: Network, target: Target, options: Options | None = None, name: str | None = None
) -> CompletePlan:
    """Completes the plan with the results of emission and linking."""
    library = emit(close_plan(plan, target, network, options), name)
    obstacle = _obstacle(library)
    if not obstacle:
        tell(f"linking for {target.name}")
    linked = None if obstacle else link(library)
    return CompletePlan(replace(library, plan=replace(library.plan, linked=linked)), obstacle)


def find_complete(
    network: Network,
    request: PlanRequest,
    board: Board | None,
    target: Target,
    options: Options | None = None,
    name: str | None = None,
    *,
    compare: bool = False,
) -> CompletePlan:
    """A complete plan for the request, which fits the RAM together with its stack if such a plan is found.

    With `compare`, a plan of whole layers also says what layers in parts would need.
    """
    stack = 0
    for _ in range(ROUNDS):
        answer = _find_beside(network, request, board, target, stack)
        plan = with_cheaper(answer.plan, request, board, target) if compare else answer.plan
        completed = replace(complete(plan, network, target, options, name), search_result=answer)
        verdict = fit(completed.plan, board, request.ram)
        needed = verdict.stack or 0
        if verdict.ram_fits or verdict.arenas > (verdict.ram or 0) or needed <= stack or not request.may_be_fitted:
            break
        stack = needed
    return completed


def _find_beside(network: Network, request: PlanRequest, board: Board | None, target: Target, stack: int) -> FoundPlan:
    """A plan that leaves this many bytes of RAM to the stack."""
    if not stack:
        return find(network, request, board, target)
    if request.ram is not None:
        request = replace(request, ram=max(1, request.ram - stack))
    elif board is not None:
        board = _with_stack(board, stack)
    try:
        return find(network, request, board, target)
    except Infeasible as error:
        raise Infeasible(f"{error} ({text.size(stack)} of the RAM are left to the stack)") from error


def _with_stack(board: Board, stack: int) -> Board:
    """The board with the stack's bytes taken from the smallest memory that holds it."""
    able = [memory for memory in board.ram if memory.usable > stack]
    if not able:
        return board
    home = min(able, key=lambda memory: memory.usable)
    taken = home.model_copy(update={"reserved": home.reserved + stack})
    return board.model_copy(
        update={"memories": tuple(taken if memory is home else memory for memory in board.memories)}
    )


def _obstacle(library: Library) -> str:
    """Why the library cannot be linked for its target; empty if it can."""
    if calls_cmsis_nn(library.files):
        return "the code calls CMSIS-NN, which the project brings"
    if library.target.is_portable:
        return "the board's own compiler decides"
    if library.target.architecture in (Architecture.HOST, Architecture.AARCH64):
        return f"{library.target.name} runs programs, whose code and stack are the system's to place"
    try:
        toolchain(library.target)
    except EdgewrightError as error:
        return str(error)
    return ""
