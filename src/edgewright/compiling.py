"""Compiles a model to a package: planning, emission, verification and packaging."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TypedDict, Unpack

from .complete_plan import complete, find_complete
from .emit.figures import Figures, verdict
from .emit.inputs import Inputs
from .emit.library import Library, check_plan, emit
from .emit.native import Native, build
from .emit.packaging import check_folder, package_files, write_folder
from .emit.verify import predicted, verify
from .errors import Infeasible, InputError
from .fusion.request import PlanRequest
from .kernels.select import close_plan
from .memory import critical_buffers, fit
from .memory import plan as make_plan
from .network import Network, Shape
from .network.read import read
from .planning import advising, request_of
from .platform import Board, load_board
from .platform.target import TARGETS, Target, chosen_target
from .program import Plan, checked, faults, load_plan, plan_text
from .program.options import Options
from .report import compiled_page, refusal


@dataclass(frozen=True)
class Compiled:
    """A compiled library, its figures, and every file of its package by path."""

    library: Library
    figures: Figures
    files: Mapping[str, str | bytes]

    def __repr__(self) -> str:
        return f"Compiled('{self.library.name}' for {self.library.target.name}, {verdict(self.figures)})"

    def write(self, folder: str | Path, force: bool = False) -> None:
        """Writes the package to `folder`; a folder with other files is refused unless `force` is set."""
        about = {
            "edgewright": version("edgewright"),
            "name": self.library.name,
            "model": self.library.network.name,
            "target": self.library.target.name,
            "board": self.figures.board,
        }
        write_folder(Path(folder), self.files, about, force)


class CompileKeywords(TypedDict, total=False):
    """Keywords of `compile_model` about the hardware, the library and how the model is read."""

    board: str | Path | Board | None
    target: str | Target | None
    name: str | None  # of the library; by default the model's
    options: Options | None  # rounding, kernels, optimisation
    shapes: Mapping[str, Shape] | None  # of inputs whose shape the file leaves open
    quantised_input: bool
    quantised_output: bool
    pull_rows: bool  # images arrive row by row
    phases: bool | Collection[str]  # layers run row by row


def compile_model(
    model: str | os.PathLike[str],
    output: str | Path | None = None,
    *,
    plan: str | Path | Plan | None = None,
    request: PlanRequest | None = None,
    inputs: Sequence[Inputs] = (),
    check: bool = True,
    force: bool = False,
    **keywords: Unpack[CompileKeywords],
) -> Compiled:
    """The model as a C library, compared with the model's own runtime, and written to `output` if one is given.

    The library is for `target`, or for the processor of `board`, or for this machine. `plan` is a finished plan to use;
    otherwise `request` says what the plan should be like, or `pull_rows` and `phases` do. The comparison uses `inputs`
    besides random ones; `check=False` skips it. `force` writes into a folder that holds other files. `quantised_input`
    and `quantised_output` leave the conversions at the model's ends to the caller, as `read_model` does. See
    `CompileKeywords` for the other keywords.
    """
    if unknown := keywords.keys() - CompileKeywords.__annotations__.keys():
        raise TypeError(f"compile_model() got an unexpected keyword argument '{min(unknown)}'")
    if output is not None:
        check_folder(Path(output), force)
    network = read(
        model,
        shapes=keywords.get("shapes"),
        quantised_input=keywords.get("quantised_input", False),
        quantised_output=keywords.get("quantised_output", False),
    )
    pull_rows, phases = keywords.get("pull_rows", False), keywords.get("phases", False)
    if request is None:
        request = request_of(pull_rows=pull_rows, phases=phases)
    elif pull_rows or phases:
        raise InputError("give pull_rows and phases as part of the request, or no request")
    board, target = keywords.get("board"), keywords.get("target")
    library, hardware = make_library(
        network, board, target, plan, keywords.get("name"), keywords.get("options"), request
    )
    figures = verify(library, model, inputs, board=hardware) if check else predicted(library, hardware)
    before = plain_plan(library.plan, network, hardware)
    compiled = package(library, figures, hardware, request.ram, before)
    if output is not None:
        compiled.write(output, force)
    return compiled


def make_library(
    network: Network,
    board: str | Path | Board | None = None,
    target: str | Target | None = None,
    plan: str | Path | Plan | None = None,
    name: str | None = None,
    options: Options | None = None,
    request: PlanRequest | None = None,
) -> tuple[Library, Board | None]:
    """The library and the board it is for; an error if it does not fit there with its code and stack."""
    loaded = load_plan(plan) if isinstance(plan, str | Path) else plan
    hardware = _board(board, loaded)
    of_plan = loaded.target if loaded and board is None else None
    chosen = chosen_target(hardware, target or of_plan) or TARGETS["host"]
    request = request or PlanRequest()
    if loaded is None:
        with advising(network, request, hardware, chosen):
            completed = find_complete(
                network, request, hardware, chosen, options, name, compare=chosen.is_microcontroller
            )
            _check_fit(completed.plan, hardware, request.ram)
        fault = next(faults(completed.plan), None)
        assert fault is None, f"a plan was made that fails its own check: {fault}"
    else:
        check_plan(checked(loaded) if loaded is plan else loaded, network, hardware)
        completed = complete(loaded, network, chosen, options, name)
        _check_fit(completed.plan, hardware, request.ram)
    return completed.library, hardware


def _check_fit(plan: Plan, board: Board | None, ram: int | None) -> None:
    verdict = fit(plan, board, ram)
    if not verdict.fits:
        raise Infeasible(refusal(plan, verdict, critical_buffers(plan)))


def package(
    library: Library,
    figures: Figures,
    board: Board | None = None,
    ram: int | None = None,
    before: Plan | None = None,
) -> Compiled:
    """The library with its build files and the report; the report compares its plan with `before`."""
    plan = library.plan
    limits = fit(plan, board, ram)
    page = compiled_page(
        plan, figures, critical=critical_buffers(plan), ram=limits.ram, flash=limits.flash, before=before
    )
    files = {
        **package_files(library, version("edgewright")),
        "plan.json": plan_text(plan),
        "report.html": page,
        "report.json": json.dumps(figures.to_dict(), indent=1) + "\n",
    }
    return Compiled(library, figures, files)


def plain_plan(plan: Plan, network: Network, board: Board | None = None) -> Plan | None:
    """The baseline of a plan in parts: best order and layout of whole layers. None if layers are whole."""
    if not plan.is_in_parts:
        return None
    return make_plan(network, board, plain=True, explain=False, alignment=plan.alignment)


def load(plan: Plan, network: Network | None = None) -> Native:
    """The plan, compiled for this machine and loaded: `load(plan).run(inputs)`."""
    return build(emit(close_plan(checked(plan), TARGETS["host"], network)))


def _board(board: str | Path | Board | None, plan: Plan | None) -> Board | None:
    """The given board, or the one that the plan was made for."""
    if isinstance(board, Board):
        return board
    name = board if board is not None else plan.board if plan else None
    return load_board(name) if name is not None else None
