"""What fits where: every model of some folders against boards, as the table in docs/models.md.

    python benchmarks/zoo.py FOLDER [FOLDER ...] [--results zoo.jsonl] [--limit 180] [--page docs/models.md]
                             [--operators docs/mediapipe/operators.py]

Models are .onnx and .tflite files, those inside Python wheels (.whl) and packages of npm (.tgz) included. Each is
read, and planned three times: whole layers, `--minimise ram`, and that with `--pull-input` where an input's rows can be
pulled. A model gets `--limit` seconds of processor time; what it has come to by then counts. Results are added to a
file one by one, and files that are there with their content are not worked on again, so that a run which was stopped
goes on. Sizes that a file leaves open are those that its error suggests. Times are estimates (docs/time.md) of the plan
that fits, with its stack and code not counted.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from edgewright import text
from edgewright.errors import EdgewrightError, OpenSizes
from edgewright.fusion.request import PlanRequest, find
from edgewright.kernels.cost.estimate import estimate, modelled
from edgewright.memory.row_windows import pullable
from edgewright.network import Network
from edgewright.network.operators.custom import load_operators
from edgewright.network.read import read_bytes
from edgewright.platform import Board, load_board
from edgewright.platform.chip_time import assumed_instruction_time
from edgewright.platform.target import chosen_target
from edgewright.platform.units import parse_size
from edgewright.program import Plan

BOARDS = ("raspberry-pi-pico", "nucleo-f446re", "nrf52840-dk", "esp32-c3", "nucleo-l4r5zi", "nucleo-h743zi")
SUFFIXES = (".onnx", ".tflite")
MOST_BYTES = 1 << 28  # of a file: larger ones are no models for boards
KINDS = ("whole", "least", "pulled")
BEGIN, END = "<!-- table: zoo -->", "<!-- end of the table -->"

console = Console()


def models(folders: Sequence[Path]) -> Iterator[tuple[str, bytes]]:
    """Name and content of every model, the smallest first and equal ones once; a wheel's are named after it."""
    found = sorted(one for folder in folders for path in sorted(folder.rglob("*")) for one in _in_file(path))
    seen = set()
    for size, name, path, inside in found:
        if size < MOST_BYTES:
            content = _content(path, inside)
            digest = hashlib.sha256(content).hexdigest()
            if digest not in seen:
                seen.add(digest)
                yield name, content


def _content(path: Path, inside: str) -> bytes:
    """The bytes of a file, or of a model inside it."""
    if not inside:
        return path.read_bytes()
    if path.suffix == ".whl":
        return zipfile.ZipFile(path).read(inside)
    with tarfile.open(path) as package:
        member = package.extractfile(inside)
        assert member is not None, inside
        return member.read()


def _in_file(path: Path) -> Iterator[tuple[int, str, Path, str]]:
    """Size, name, file, and name within the file of each model that it holds."""
    if path.suffix in SUFFIXES and path.is_file():
        yield path.stat().st_size, path.name, path, ""
    elif path.suffix == ".whl":
        package = path.name.split("-")[0]
        for one in zipfile.ZipFile(path).infolist():
            if one.filename.endswith(SUFFIXES):
                yield one.file_size, f"{package}: {Path(one.filename).name}", path, one.filename
    elif path.suffix == ".tgz":
        with tarfile.open(path) as packed:
            for member in packed:
                if member.name.endswith(SUFFIXES):
                    yield member.size, f"{path.stem}: {Path(member.name).name}", path, member.name


def row(name: str, content: bytes, limit: int, operators: Path | None) -> dict[str, Any]:
    """What a process of its own finds out about a model; after the limit, what it had found out."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model"
        file.write_bytes(content)
        command = [sys.executable, __file__, "--one", str(file), "--limit", str(limit)]
        command += ["--operators", str(operators)] if operators else []
        run = subprocess.run(command, capture_output=True, text=True, check=False)
    found: dict[str, Any] = {"name": name, "digest": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    for line in run.stdout.splitlines():
        found |= json.loads(line)
    if run.returncode and "refused" not in found:
        last = (run.stderr.strip().splitlines() or ["killed"])[-1]
        found["stopped"] = f"after {limit} s" if run.returncode < 0 else last[:200]
    return found


def one(path: Path, limit: int) -> None:
    """Prints what is found out, step by step."""
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
    content = path.read_bytes()
    try:
        try:
            network = read_bytes(content, "model")
        except OpenSizes as error:
            network = read_bytes(content, "model", shapes=error.shapes)
    except EdgewrightError as error:
        _tell({"refused": str(error)})
        return
    _tell({"layers": len(network.layers), "weights": network.weight_bytes, "macs": network.total_macs})
    _tell({"input": [list(network.tensors[name].shape) for name in network.inputs], "real": network.is_real})
    requests = {"whole": PlanRequest(), "least": PlanRequest(minimise_ram=True)}
    if pullable(network):
        requests["pulled"] = PlanRequest(minimise_ram=True, pull_rows=True)
    for kind, request in requests.items():
        try:
            plan = find(network, request, explain=False).plan
        except EdgewrightError as error:
            _tell({f"{kind}_refused": str(error)[:200]})
            continue
        _tell({kind: plan.peak_bytes, f"{kind}_times": _times(network, plan)})


def _times(network: Network, plan: Plan) -> dict[str, float | None]:
    """Estimated seconds on the boards on which the plan fits; None where the core's costs are not known."""
    found: dict[str, float | None] = {}
    instructions: dict[str, int] = {}
    for board in map(load_board, BOARDS):
        core = chosen_target(board, None)
        if core is None or not _fits(plan, board):
            continue
        if core.name not in modelled():
            found[board.name] = None
            continue
        if core.name not in instructions:
            instructions[core.name] = estimate(plan, core.name).instructions
        found[board.name] = instructions[core.name] * assumed_instruction_time(board, network.is_real)
    return found


def _fits(plan: Plan, board: Board) -> bool:
    in_flash = board.flash_size is None or plan.weights_bytes <= board.flash_size
    return in_flash and plan.peak_bytes <= max(memory.usable for memory in board.ram)


def _tell(values: Mapping[str, Any]) -> None:
    print(json.dumps(values), flush=True)


def table(rows: Sequence[Mapping[str, Any]], before: str = "") -> str:
    """Markdown: one line for each model that is read, the smallest first; then those that are not.

    Models that only the table `before` has keep their lines.
    """
    boards = [load_board(name) for name in BOARDS]
    sizes = [f"{board.name} ({text.size(max(m.usable for m in board.ram))} RAM)" for board in boards]
    head = ["model", "input", "weights", "MACs", "RAM whole", "least", "pulled", *sizes]
    read = {f"`{found['name']}`": _cells(found, boards) for found in rows if "whole" in found}
    others = {f"`{found['name']}`": _why(found) for found in rows if "whole" not in found}
    for line in before.splitlines():
        if line.startswith("| `"):
            name, *cells = line.removeprefix("| ").removesuffix(" |").split(" | ")
            if name not in others:
                read.setdefault(name, cells)
        elif line.startswith("- `"):
            name, _, why = line.removeprefix("- ").partition("`: ")
            if f"{name}`" not in read:
                others.setdefault(f"{name}`", why)
    lines = ["| " + " | ".join(head) + " |", "|---|---|" + "---:|" * (len(head) - 2)]
    lines += ["| " + " | ".join([name, *cells]) + " |" for name, cells in sorted(read.items(), key=_least)]
    fits = [sum(cells[at - len(boards)] != "–" for cells in read.values()) for at in range(len(boards))]
    lines += ["", f"{len(read)} models; " + ", ".join(f"{n} fit a {b.name}" for n, b in zip(fits, boards, strict=True))]
    lines[-1] += "."
    if others:
        lines += ["", f"{len(others)} more files are no networks for boards, or not read:", ""]
        lines += [f"- {name}: {why}" for name, why in sorted(others.items())]
    return "\n".join(lines)


def _cells(found: Mapping[str, Any], boards: Sequence[Board]) -> list[str]:
    """The line of a model that is read, without its name."""
    shape = "; ".join("×".join(map(str, size)) for size in found["input"][:2])
    shape += " …" if len(found["input"]) > 2 else ""
    cells = [shape, text.size(found["weights"]), text.rounded_count(found["macs"])]
    cells += [text.size(found[kind]) if kind in found else "–" for kind in KINDS]
    return cells + [_cell(found, board) for board in boards]


def _least(line: tuple[str, Sequence[str]]) -> tuple[float, str]:
    """The least RAM of a line, by which the table is sorted, and the model's name."""
    name, (_, _, _, whole, least, *_) = line
    return parse_size((whole if least == "–" else least).replace(",", "")), name


def _why(found: Mapping[str, Any]) -> str:
    why = found.get("refused") or f"no plan {found.get('stopped', '')}"
    return text.shortened(" ".join(why.split()), 160)


def _cell(found: Mapping[str, Any], board: Board) -> str:
    """The estimated time of the first kind of plan that fits the board, with the kind where layers are not whole."""
    for kind in KINDS:
        times = found.get(f"{kind}_times", {})
        if board.name in times:
            seconds = times[board.name]
            return ("fits" if seconds is None else text.duration(seconds)) + ("" if kind == "whole" else f" ({kind})")
    return "–"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--results", type=Path, default=Path("zoo.jsonl"))
    parser.add_argument("--limit", type=int, default=180, help="seconds of processor time for each model")
    parser.add_argument(
        "--page", type=Path, help="put the table between its marks in this page; the lines of other models stay"
    )
    parser.add_argument("--operators", type=Path, help="a Python file that describes operators of the models' own")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.operators:
        load_operators(given.operators)
    if given.one:
        one(given.one, given.limit)
        return
    lines = given.results.read_text().splitlines() if given.results.exists() else []
    done: dict[str, dict[str, Any]] = {found["digest"]: found for found in map(json.loads, lines)}
    rows = []
    for name, content in models(given.folders):
        digest = hashlib.sha256(content).hexdigest()
        if digest not in done:
            console.print(name)
            done[digest] = row(name, content, given.limit, given.operators)
            with given.results.open("a") as file:
                file.write(json.dumps(done[digest]) + "\n")
        rows.append({**done[digest], "name": name})
    if given.page is None:
        print(table(rows))
        return
    before, _, rest = given.page.read_text().partition(BEGIN)
    old, _, after = rest.partition(END)
    given.page.write_text(f"{before}{BEGIN}\n\n{table(rows, old)}\n\n{END}{after}")


if __name__ == "__main__":
    main()
