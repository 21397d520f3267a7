"""Rooms import downwards only: the folder list is the design document."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import edgewright

ROOT = Path(edgewright.__file__).parent
BELOW_EMIT = ("dataflow", "memory", "kernels", "program", "board", "network", "platform")
BELOW_SEARCH = ("mapping", "run", "fusion", "emit", *BELOW_EMIT, "complete_plan", "samples")
BELOW_REPORT = (
    *("flow", "search", "hal", "adaptive", "cluster", "application", "mapping", "run", "fusion", "emit"),
    *BELOW_EMIT,
)
# Each room with the rooms it may look into, beside what is for everybody.
MAY_IMPORT = {
    "samples": (),
    "network": (),
    "platform": (),
    "board": ("platform",),
    "program": ("network", "platform"),
    "kernels": ("program", "network", "platform"),
    "memory": ("program", "network", "platform"),
    "dataflow": ("memory", "program", "network", "platform"),
    "emit": BELOW_EMIT,
    "fusion": ("emit", *BELOW_EMIT),
    "run": ("fusion", "emit", *BELOW_EMIT),
    "mapping": ("run", "fusion", "emit", *BELOW_EMIT),
    "hal": ("board", "platform"),
    "application": ("run", "fusion", "emit", *BELOW_EMIT, "samples"),  # of samples: how to quantise
    "cluster": ("mapping", "run", "fusion", "emit", *BELOW_EMIT),
    "adaptive": ("application", "mapping", "run", "fusion", "emit", *BELOW_EMIT),
    "search": BELOW_SEARCH,
    "flow": ("search", "adaptive", "application", "compiling", *BELOW_SEARCH),
    "report": BELOW_REPORT,
    "cli": ("compiling", "complete_plan", "planning", "report", *BELOW_REPORT, "samples"),
}
EVERYBODY = {"cpsat", "errors", "files", "interrupts", "lazy", "progress", "text"}


def imports(path: Path) -> set[str]:
    """The rooms that a file imports, whether absolutely or relatively."""
    inside = path.relative_to(ROOT).parent.parts
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            module = (node.module or "").split(".") if node.module else []
            if node.level:
                base = list(inside[: len(inside) - (node.level - 1)])
                target = [*base, *module]
                names = [target[0]] if target else [alias.name for alias in node.names]
            elif module[:1] == ["edgewright"]:
                names = module[1:2] or [alias.name for alias in node.names]
            else:
                names = []
            found.update(names)
        elif isinstance(node, ast.Import):
            parts = [alias.name.split(".") for alias in node.names]
            found.update(p[1] for p in parts if p[0] == "edgewright" and len(p) > 1)
    return found


# Methods of papers are compared with; these files offer them to users, and no other one calls them.
COMPARE_WITH_PAPERS = {
    "adaptive/delays.py",
    "adaptive/outcome.py",
    "cli/adapt_tables.py",
    "cli/app.py",
    "cli/map.py",
    "cluster/strategies.py",
    "fusion/request.py",
}
# A file form that is loaded when pydantic asks for it.
LATE = ("program/deployment.py", "program/deployment_schema.py")


def imported_files(path: Path) -> set[str]:
    """The files of the package that a file imports, whether at once or inside a function."""
    inside = path.relative_to(ROOT).parent.parts
    targets = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.ImportFrom):
            continue
        module = tuple((node.module or "").split(".")) if node.module else ()
        base = (*inside[: len(inside) - node.level + 1], *module) if node.level else module[1:]
        if not node.level and module[:1] != ("edgewright",):
            continue
        for alias in node.names:
            inner = ROOT.joinpath(*base, f"{alias.name}.py")
            targets.add(inner if inner.is_file() else ROOT.joinpath(*base[:-1], f"{base[-1]}.py" if base else ""))
    return {str(target.relative_to(ROOT)) for target in targets if target.is_file() and target != path}


def test_no_files_import_each_other_in_a_circle():
    below = {str(file.relative_to(ROOT)): imported_files(file) for file in ROOT.rglob("*.py")}
    assert sum(map(len, below.values())) > 3000
    below[LATE[0]] -= {LATE[1]}
    TopologicalSorter(below).prepare()  # raises a CycleError that names the files


def test_the_product_does_not_build_on_methods_of_papers():
    users = set()
    for file in ROOT.rglob("*.py"):
        if "paper" not in file.parts and any("/paper/" in name for name in imported_files(file)):
            users.add(str(file.relative_to(ROOT)))
    assert users == COMPARE_WITH_PAPERS


@pytest.mark.parametrize("room", sorted(MAY_IMPORT))
def test_imports_point_downwards(room):
    files = list((ROOT / room).rglob("*.py"))
    assert files
    allowed = {room, *MAY_IMPORT[room], *EVERYBODY}
    wrong = {str(file.relative_to(ROOT)): sorted(imports(file) - allowed) for file in files}
    assert {file: names for file, names in wrong.items() if names} == {}


def test_every_room_is_listed():
    rooms = {path.name for path in ROOT.iterdir() if (path / "__init__.py").exists()}
    assert rooms == set(MAY_IMPORT)


def test_the_check_sees_relative_and_absolute_imports(tmp_path, monkeypatch):
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    (tmp_path / "network" / "deep").mkdir(parents=True)
    file = tmp_path / "network" / "deep" / "bad.py"
    file.write_text("from ...memory import plan\nfrom edgewright.report import page\nimport edgewright.cli.main\n")
    assert imports(file) == {"memory", "report", "cli"}
