"""Docs that cannot go stale: examples run, and the help text is the command's own."""

import doctest
import os
import re
import textwrap
from importlib import import_module
from pathlib import Path

import pytest
from click.testing import CliRunner

import edgewright
from edgewright.cli import main
from edgewright.network.onnx_format.table import MICROSOFT, STANDARD
from edgewright.network.tflite.importers import IMPORTERS

DOCS = Path(__file__).parents[2] / "docs"
HELP = re.compile(r"<!-- help: ([\w ]+) -->\n```\n(.*?)```\n", re.DOTALL)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.stem)
def test_examples_in_the_docs_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    failed, _ = doctest.testfile(str(page), module_relative=False, optionflags=FLAGS)
    assert failed == 0


def modules_with_examples():
    root = Path(edgewright.__file__).parent
    files = sorted(path for path in root.rglob("*.py") if ">>> " in path.read_text())
    return [".".join(("edgewright", *path.relative_to(root).with_suffix("").parts)) for path in files]


@pytest.mark.parametrize("name", modules_with_examples())
def test_examples_in_docstrings_run(name):
    failed, _ = doctest.testmod(import_module(name), optionflags=FLAGS)
    assert failed == 0


def help_text(words: str) -> str:
    return CliRunner().invoke(main, [*words.split(), "--help"], prog_name="edgewright", terminal_width=100).output


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.stem)
def test_help_in_the_docs_is_current(page):
    """EDGEWRIGHT_UPDATE_DOCS=1 rewrites it."""
    text = page.read_text()
    current = HELP.sub(lambda m: f"<!-- help: {m[1]} -->\n```\n{help_text(m[1])}```\n", text)
    if os.environ.get("EDGEWRIGHT_UPDATE_DOCS"):
        page.write_text(current)
    assert page.read_text() == current


@pytest.mark.parametrize("verb", sorted(main.commands))
def test_each_verb_has_a_page_with_its_help(verb):
    text = (DOCS / f"{verb}.md").read_text()
    assert verb in [name for name, _ in HELP.findall(text)], f"{verb}.md shows no help text"


def test_links_in_the_docs_lead_somewhere():
    for page in [*DOCS.glob("*.md"), DOCS.parent / "README.md", DOCS.parent / "CONTRIBUTING.md"]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize(
    ("name", "operators"),
    [("onnx", STANDARD), ("microsoft", MICROSOFT), ("tflite", IMPORTERS)],
    ids=["onnx", "microsoft", "tflite"],
)
def test_the_list_of_operators_is_current(name, operators):
    """EDGEWRIGHT_UPDATE_DOCS=1 rewrites it."""
    page = DOCS / "operators.md"
    names = sorted(operator.removeprefix("custom operator ").strip("'") for operator in operators)
    listed = textwrap.fill(", ".join(f"`{operator}`" for operator in names), 118)
    current = re.sub(
        rf"<!-- list: {name} -->\n.*?(?=\n\n|\Z)",
        f"<!-- list: {name} -->\n{listed}",
        page.read_text(),
        flags=re.DOTALL,
    )
    if os.environ.get("EDGEWRIGHT_UPDATE_DOCS"):
        page.write_text(current)
    assert page.read_text() == current
