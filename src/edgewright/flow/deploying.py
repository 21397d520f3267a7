"""The application of the selected points, and its firmware: scenarios, several networks, or a library for each."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ..adaptive.compiled import compile_switching
from ..adaptive.deploying import SwitchingApplication
from ..adaptive.scenarios import load_adaptive
from ..application.compiled import compile_outcome
from ..application.draft import load_application
from ..application.outcome import plan_application
from ..compiling import compile_model
from ..emit.packaging import write_folder
from ..files import make_folder
from ..search.front import MODELS, DesignPoint
from ..search.pricing import Manner
from .augmenting import plan_path
from .description import ApplicationKind, FlowFile, adaptive_tables, application_tables
from .manners import ENDS, ENTRIES
from .toml_text import toml_text

APPLICATION_FILE = "app.toml"
BOARD_FILE = "board.toml"


def kind_of(file: FlowFile, points: Sequence[DesignPoint]) -> ApplicationKind:
    """The kind of application: a single point is compiled alone, since it can neither switch nor share memory."""
    if file.application is ApplicationKind.NONE or len({one.name for one in points}) > 1:
        return file.application
    return ApplicationKind.COMPILE


def write_application(
    folder: Path, file: FlowFile, board: str, selected: Sequence[tuple[str, DesignPoint]], source: Path
) -> None:
    """The application's file with its models; `selected` are points with the names of their selections.

    `source` is the folder from which points name their models. A board file comes along.
    """
    make_folder(folder / MODELS)
    if board.endswith(".toml"):
        shutil.copyfile(board, folder / BOARD_FILE)
        board = BOARD_FILE
    owners: dict[str, str] = {}  # of each point, the selection that is first
    for name, point in selected:
        if owners.setdefault(point.name, name) == name:
            shutil.copyfile(source / point.model, folder / MODELS / f"{name}.onnx")
    networks = [
        {
            "name": name,
            "file": f"{MODELS}/{name}.onnx",
            **ENTRIES[Manner(point.manner)],
            **ENDS,
        }
        for name, point in selected
        if owners[point.name] == name
    ]
    scenarios = [{"name": name, "network": owners[point.name], "accuracy": point.accuracy} for name, point in selected]
    tables = application_tables(file, networks)
    if file.application is ApplicationKind.ADAPT:
        tables |= adaptive_tables(file, scenarios)
    (folder / APPLICATION_FILE).write_text(toml_text({"board": board, **tables}))


def write_libraries(
    folder: Path, board: str, selected: Sequence[tuple[str, DesignPoint]], source: Path, verify: bool
) -> dict[str, Any]:
    """A library for each selected point that has a plan, in a folder named like the first selection of it."""
    found: dict[str, Any] = {}
    first = {point.name: name for name, point in reversed(selected)}
    for name, point in selected:
        if first[point.name] != name:
            continue
        plan = plan_path(point)
        if plan is None:
            found[name] = {"note": f"runs as a pipeline, which is built on the board itself: {point.command}"}
            continue
        compiled = compile_model(
            source / point.model,
            folder / name,
            board=board,
            plan=source / plan,
            name=name,
            check=verify,
            quantised_input=True,
            quantised_output=True,
        )
        found[name] = compiled.figures.to_dict()
    return {"libraries": found}


def write_firmware(application: Path, folder: Path, kind: ApplicationKind, verify: bool) -> dict[str, Any]:
    """Compiles the application, verifies it if `verify` is set, and returns its figures."""
    if kind is ApplicationKind.ADAPT:
        adaptive = load_adaptive(application)
        compiled = compile_switching(SwitchingApplication(adaptive, adaptive.file.adapt.policy), verify)
        about = {"edgewright": version("edgewright"), "name": adaptive.file.name, "target": adaptive.target.name}
        write_folder(folder, compiled.files, about)
        return {**compiled.to_dict(), "sentence": compiled.sentence}
    draft = load_application(application)
    together = compile_outcome(plan_application(draft), verify)
    about = {"edgewright": version("edgewright"), "name": draft.file.name, "target": draft.target.name}
    write_folder(folder, together.files, about)
    return {**together.to_dict(), "sentence": together.sentence}
