"""The code blocks of README and docs as programs: what each is, and how it is carried out in a folder of its page."""

from __future__ import annotations

import doctest
import json
import os
import re
import shlex
import shutil
import subprocess
import textwrap
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from glob import glob
from pathlib import Path

from click.testing import CliRunner

from edgewright import load_board
from edgewright.adaptive.description import AdaptiveFile
from edgewright.cli import main
from edgewright.cluster.description import read_cluster
from edgewright.flow.description import read_flow
from edgewright.hal import examples
from edgewright.platform.schema import parse_toml

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-fsyntax-only")
# What stands before a block: a file that its text is (or goes on with), a file that it is part of, why it is not run.
_ESTIMATE = re.compile(r" +≈ [\d.,]+")  # of instructions: it depends on the compiler that is there
_MARK = re.compile(r"<!-- (file|part of|not run|help): (.+) -->")
_KINDS = ("console", "python", "c", "toml", "json", "text")


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    kind: str
    text: str
    mark: str = ""
    about: str = ""  # what the mark says

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks(page: Path) -> Iterator[Block]:
    """All blocks between fences, in order."""
    lines = page.read_text().split("\n")
    start: int | None = None
    for number, line in enumerate(lines):
        if not line.startswith("```"):
            continue
        if start is None:
            start = number
            continue
        mark = _MARK.fullmatch(lines[start - 1]) if start else None
        text = "\n".join(lines[start + 1 : number]) + "\n"
        yield Block(page, start + 1, lines[start][3:], text, mark[1] if mark else "", mark[2] if mark else "")
        start = None
    assert start is None, f"{page.name}: the block at line {start} does not end"


def commands(block: Block) -> Iterator[tuple[list[str], str]]:
    """The commands of a console, as words, each with what is printed below it."""
    for part in re.split(r"^\$ ", block.text, flags=re.M)[1:]:
        line, _, output = part.partition("\n")
        yield shlex.split(line, comments=True), output


@dataclass
class Desk:
    """A folder in which a page is followed; when `quick`, without running what was compiled."""

    folder: Path
    quick: bool = True
    begun: set[str] = field(default_factory=set)  # files that blocks of the page hold
    extras: set[str] | None = None  # as installed by a line of the page

    def follow(self, block: Block) -> None:
        assert block.mark or block.kind in _KINDS, f"{block}: '{block.kind}' says nothing about what to do with it"
        match block.mark:
            case "help":
                return  # compared with the command's own by another test
            case "not run":
                assert len(block.about) > 10, f"{block}: say why"
                return
            case "file":
                self._write(block)
            case "part of":
                self._compare(block)
                return
        match block.kind:
            case "console":
                for words, output in commands(block):
                    self._run(block, words, output)
            case "python" if ">>>" not in block.text and not block.mark:  # examples of sessions are doctests
                exec(compile(block.text, str(block), "exec"), {})
            case "c":
                self._compile(block)
            case "toml":
                tomllib.loads(block.text)
                if block.mark and "[[network]]" in block.text:
                    assert parse_toml(block.text, block.about, AdaptiveFile, "an application").networks
                elif block.mark and "[[selection]]" in block.text:
                    assert read_flow(self.folder / block.about).selections
                elif block.mark and "[[device]]" in block.text:
                    assert read_cluster(self.folder / block.about).devices
                elif block.mark:
                    assert load_board(self.folder / block.about).memories
            case "json":
                json.loads(block.text)

    def _write(self, block: Block) -> None:
        path = self.folder / block.about
        before = path.read_text() + "\n" if block.about in self.begun else ""
        self.begun.add(block.about)
        path.write_text(before + block.text)

    def _compare(self, block: Block) -> None:
        """Every paragraph of the block stands in the file, here or in this repository; comments may be left out."""
        path = self.folder / block.about
        whole = _squeezed((path if path.exists() else ROOT / block.about).read_text())
        for paragraph in block.text.split("\n\n"):
            assert _squeezed(paragraph) in whole, f"{block}: not in {block.about}:\n{paragraph}"

    def _compile(self, block: Block) -> None:
        path = self.folder / (block.about if block.mark else "block.c")
        if not block.mark:
            path.write_text(block.text)
        if shutil.which("cc") is None:
            return
        headers = {path.parent for path in self.folder.glob("*/*.h")}
        includes = [f"-I{folder}" for folder in sorted({*self.folder.glob("*/src"), *headers})]
        hal = f"-I{Path(examples.__file__).parent.parent / 'include'}"
        done = subprocess.run(["cc", *STRICT, *includes, hal, str(path)], capture_output=True, text=True)
        assert done.returncode == 0, f"{block}: does not compile\n{done.stderr}"
        if "edgewright_hal.h" in block.text and ")\n{" in block.text:  # a driver, and all of it
            self._run(block, ["edgewright", "hal", str(path), "--check"], "")

    def _run(self, block: Block, words: list[str], expected: str) -> None:
        match words[0]:
            case "edgewright":
                self._call(block, words[1:], expected)
            case "pip":
                self.extras = set(re.findall(r"\w+", words[-1]))
                assert self.extras <= set(_extras()), f"{block}: no such extras"
            case "cat":
                if not (self.folder / words[1]).exists():
                    (self.folder / words[1]).write_text(expected)
                assert (self.folder / words[1]).read_text() == expected, f"{block}: {words[1]}"
            case program:
                self._start(block, program, words[1:])

    def _call(self, block: Block, words: list[str], expected: str) -> None:
        """The command in this process. Printed errors mean status 1; what is printed is compared where it is shown.

        EDGEWRIGHT_UPDATE_DOCS=1 rewrites what is shown in full.
        """
        if self.extras is not None:
            needed = {"hal": {"hal"}, "compile": {"board"}, "run": {"board"}}.get(words[0], set())
            assert needed <= self.extras, f"{block}: `{words[0]}` needs {needed}, which the page does not install"
        if self.quick and (words[0] == "run" or "--verify" in words):
            return
        if self.quick:
            words = _without_runs(words)
        done = CliRunner().invoke(main, words)
        status = 1 if expected.startswith("Error:") else 0
        assert done.exit_code == status, f"{block}: {shlex.join(words)}\n{done.output}{done.exception!r}"
        shown, printed = (_ESTIMATE.sub(" ≈", text) for text in (expected, done.output))
        if not expected or doctest.OutputChecker().check_output(shown, printed, FLAGS):
            return
        if os.environ.get("EDGEWRIGHT_UPDATE_DOCS") and "..." not in expected:
            block.page.write_text(block.page.read_text().replace(expected, _wrapped(done.output)))
            return
        raise AssertionError(f"{block}: {shlex.join(words)} prints\n{done.output}")

    def _start(self, block: Block, program: str, words: list[str]) -> None:
        if shutil.which(program) is None:
            return
        include = f"-I{Path(examples.__file__).parent.parent / 'include'}"
        text = shlex.join([program, *words]).replace("'$(edgewright hal --include)'", include)
        text = text.replace("'$(edgewright' hal '--include)'", include)
        found = [name for word in shlex.split(text) for name in (glob(word) or [word])]
        done = subprocess.run(found, capture_output=True, text=True)
        assert done.returncode == 0, f"{block}: {text}\n{done.stdout}{done.stderr}"


def _without_runs(words: list[str]) -> list[str]:
    """The command as it is followed quickly: what it compiles is not run, or as seldom as can be."""
    match words[0]:
        case "compile":
            return [*words, "--no-verify"]
        case "hal" if "-o" in words:
            return [*words, "--no-verify"]
        case "cluster" if words[1] == "try":
            return [*words, "--devices", "2"]
        case "adapt" | "app" if "--compile" in words:
            return [*words, "--no-verify"]
        case "map":
            return [word for word in words if word != "--run"]
        case "profile" if "--board" not in words:
            return [*words, "--repeats", "1", "--most-lanes", "1"]
    return words


def _wrapped(output: str) -> str:
    """What was printed, as it stands in a page."""
    lines = (line.rstrip() for line in output.splitlines())
    return "".join(f"{textwrap.fill(line, 135) if line.startswith('Error') else line}\n" for line in lines)


def _extras() -> dict[str, list[str]]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def _squeezed(code: str) -> str:
    """C without comments and with single spaces."""
    return " ".join(re.sub(r"/\*.*?\*/", " ", code, flags=re.S).split())
