"""Damaged files through the whole tool: fifty thousand, without a traceback, 1 GB of memory or 20 s.

    python benchmarks/damaged_files.py [--files 50000] [--first SEED] [--kind NAME] [--seeds FOLDER] [--json FILE]

Models (ONNX, TFLite), plans, boards, dataflow graphs, drivers and every other kind of file that the tool reads are made
by code, damaged, and given to the command that a user would type, in a process that has started before. Only results
and the tool's own errors may come of it. Troubles must be 0; each is printed with the seed that shows it again, and
its files are kept where `--keep` says.
"""

import faulthandler
import json
import multiprocessing as mp
import os
import resource
import signal
import sys
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from time import perf_counter, sleep

import click
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent.parent))

import edgewright.compiling  # noqa: F401  what it loads is no file's doing
from tests.whole.damage_cases import KINDS, draw_case, warm_up
from tests.whole.damage_trials import MEMORY, Verdict, examine

PATIENCE = 120  # seconds of the clock after which a process says where it is, and is ended: it hangs in native code


def work(pipe: Connection, seeds: Sequence[Path], kinds: Sequence[str]) -> None:
    """A process that examines file after file; one that asks for far more memory than allowed is refused it."""
    faulthandler.register(signal.SIGUSR1)
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    most = size + 6 * MEMORY  # emulators reserve addresses that they never fill
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    while (seed := pipe.recv()) is not None:
        pipe.send(examine(seed, seeds, kinds))


class Worker:
    """A process, and the file that it is at."""

    def __init__(self, seeds: Sequence[Path], kinds: Sequence[str]) -> None:
        self.pipe, theirs = mp.Pipe()
        self.process = mp.get_context("fork").Process(target=work, args=(theirs, seeds, kinds), daemon=True)
        self.process.start()
        theirs.close()
        self.seed, self.since = -1, 0.0

    def take(self, seed: int) -> None:
        self.seed, self.since = seed, perf_counter()
        self.pipe.send(seed)

    def verdict(self) -> Verdict | None:
        """What it found; None where it is still at it."""
        try:
            if self.pipe.poll():
                return self.pipe.recv()
        except (EOFError, ConnectionError):
            self.process.join()
            return Verdict(self.seed, "unknown", "crash", f"ended with status {self.process.exitcode}")
        if perf_counter() - self.since > PATIENCE:
            os.kill(self.process.pid, signal.SIGUSR1)
            sleep(1)
            self.process.kill()
            return Verdict(self.seed, "unknown", "time", "hangs")
        return None


def examined(seeds: Sequence[int], jobs: int, files: Sequence[Path], kinds: Sequence[str]) -> Iterator[Verdict]:
    """The verdicts as they come; a process that ended is replaced."""
    waiting, idle, busy = deque(seeds), [Worker(files, kinds) for _ in range(jobs)], list[Worker]()
    while waiting or busy:
        while idle and waiting:
            busy.append(idle.pop())
            busy[-1].take(waiting.popleft())
        wait([worker.pipe for worker in busy], timeout=5)
        for worker in list(busy):
            if (found := worker.verdict()) is not None:
                busy.remove(worker)
                idle.append(Worker(files, kinds) if found.outcome == "crash" or found.trouble == "hangs" else worker)
                yield found
    for worker in idle:
        worker.pipe.send(None)


def keep(seed: int, seeds: Sequence[Path], folder: Path, kinds: Sequence[str]) -> None:
    """The files of a case, and what was typed, where somebody can look at them."""
    case = draw_case(seed, seeds, kinds)
    for name, content in case.files.items():
        path = folder / str(seed) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    lines = (" ".join(("edgewright", *command)) for command in case.commands)
    (folder / str(seed) / "commands").write_text("\n".join(lines) + "\n")


def table_of(verdicts: Sequence[Verdict]) -> Table:
    """What became of each kind of files."""
    table = Table(title="damaged files", title_justify="left")
    for heading in ("kind", "files", "taken", "refused", "troubles", "slowest", "most memory"):
        table.add_column(heading, justify="left" if heading == "kind" else "right")
    for kind in sorted({verdict.kind for verdict in verdicts}):
        own = [verdict for verdict in verdicts if verdict.kind == kind]
        counts = Counter("troubles" if verdict.trouble else verdict.outcome for verdict in own)
        figures = (len(own), counts["taken"], counts["refused"], counts["troubles"])
        slowest, most = max(verdict.seconds for verdict in own), max(verdict.memory for verdict in own)
        table.add_row(kind, *(f"{figure:,}" for figure in figures), f"{slowest:.1f} s", f"{most >> 20} MiB")
    return table


@click.command()
@click.option("--files", default=50_000, show_default=True, help="How many.")
@click.option("--first", default=0, show_default=True, help="The first seed.")
@click.option("--jobs", default=2, show_default=True, help="Processes.")
@click.option(
    "--seeds", type=click.Path(exists=True, path_type=Path), help="A folder of sound files to damage as well."
)
@click.option("--kind", "kinds", multiple=True, type=click.Choice([*KINDS]), help="Only files of these kinds.")
@click.option("--keep", "kept", type=click.Path(path_type=Path), help="A folder for the files that made trouble.")
@click.option("--json", "output", type=click.Path(path_type=Path), help="Where all figures go.")
def main(
    files: int,
    first: int,
    jobs: int,
    seeds: Path | None,
    kinds: tuple[str, ...],
    kept: Path | None,
    output: Path | None,
) -> None:
    console, start = Console(width=120), perf_counter()
    own = sorted(path for path in seeds.rglob("*") if path.is_file()) if seeds else []
    verdicts: list[Verdict] = []
    if not kinds:
        warm_up()
    for verdict in examined(range(first, first + files), jobs, own, kinds):
        verdicts.append(verdict)
        if verdict.trouble:
            told = f"{verdict.seed} ({verdict.kind}): {verdict.outcome}: {verdict.trouble}"
            console.print(told, soft_wrap=True, markup=False, highlight=False)
            if kept:
                keep(verdict.seed, own, kept, kinds)
        if len(verdicts) % 1000 == 0:
            print(f"{len(verdicts)} of {files}, {perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    console.print(table_of(verdicts))
    wrong = [verdict for verdict in verdicts if verdict.trouble]
    console.print(f"{len(verdicts)} files, {len(wrong)} with troubles, {perf_counter() - start:.0f} s")
    if output:
        about = {
            "files": len(verdicts),
            "troubles": len(wrong),
            "seconds": round(perf_counter() - start),
            "slowest_seconds": max(verdict.seconds for verdict in verdicts),
            "most_memory": max(verdict.memory for verdict in verdicts),
            "outcomes": Counter(f"{verdict.kind}: {verdict.outcome}" for verdict in verdicts),
            "wrong": [{"seed": v.seed, "kind": v.kind, "outcome": v.outcome, "trouble": v.trouble} for v in wrong],
        }
        output.write_text(json.dumps(about, indent=1) + "\n")
    if wrong:
        sys.exit(1)


if __name__ == "__main__":
    main()
