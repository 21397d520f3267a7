"""One concept, one name: no class name, public or private, is defined in two files of the package."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import edgewright

ROOT = Path(edgewright.__file__).parent


def class_names(file: Path) -> Iterator[str]:
    """Those of all statements; expressions are not looked into, which would take five times as long."""
    left: list[ast.AST] = [ast.parse(file.read_text())]
    while left:
        node = left.pop()
        if isinstance(node, ast.ClassDef):
            yield node.name
        left += [each for each in ast.iter_child_nodes(node) if not isinstance(each, ast.expr)]


def homes(root: Path) -> Mapping[str, set[str]]:
    """The files that define each class name."""
    found = defaultdict(set)
    for file in sorted(root.rglob("*.py")):
        for name in class_names(file):
            found[name].add(str(file.relative_to(root)))
    return found


def test_every_class_name_is_defined_in_one_file():
    twice = {name: sorted(files) for name, files in homes(ROOT).items() if len(files) > 1}
    assert twice == {}


def test_the_check_sees_private_and_nested_classes(tmp_path):
    (tmp_path / "room").mkdir()
    (tmp_path / "one.py").write_text("class _Walk: ...\nclass Plan:\n    class Entry: ...\n")
    (tmp_path / "room" / "two.py").write_text("def f():\n    class _Walk: ...\nclass Entry: ...\n")
    assert {name for name, files in homes(tmp_path).items() if len(files) > 1} == {"_Walk", "Entry"}
