"""No function takes so many parameters that a call cannot be read: options travel as one value."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"
MOST = 9


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """The names that a caller can pass; `self` and `cls` are not among them."""
    given = function.args
    names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def functions() -> Iterator[tuple[Path, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield path, node


def test_functions_take_few_parameters() -> None:
    long = [
        f"{path.relative_to(SOURCE)}:{node.lineno} {node.name} takes {len(parameters(node))}"
        for path, node in functions()
        if len(parameters(node)) > MOST
    ]
    assert not long, f"more than {MOST} parameters; pass one value with fields instead: {long}"
