"""Damaged files given to the commands that a user would type, and what came of it: taken, refused, or some trouble.

Nothing but results and the tool's own errors is right, within limits on processor time and memory. The commands run in
this process, which has loaded everything before; who runs many of them (`benchmarks/damaged_files.py`) does it in
processes that may end.
"""

from __future__ import annotations

import contextlib
import io
import signal
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

import click

from edgewright.cli import main as edgewright
from tests.whole.damage_cases import draw_case

SECONDS = 20  # of processor time
MEMORY = 1 << 30  # bytes, of a process and all that it has loaded
STARTED = 1 << 29  # bytes of the tool before it reads a file: what tests before left behind is no file's doing
WORDS = 4000  # characters of a message that somebody may still read


@dataclass(frozen=True)
class Verdict:
    """What came of one file; no trouble where the tool took it or refused it."""

    seed: int
    kind: str
    outcome: str  # "taken", "refused", or what kind of trouble
    trouble: str = ""
    seconds: float = 0.0
    memory: int = 0


class TimeIsUp(BaseException):
    """Raised wherever the file has led to when its time is over; nobody catches it by accident."""


def examine(seed: int, seeds: Sequence[Path] = (), kinds: Sequence[str] = ()) -> Verdict:
    """The verdict on one file, tried in a folder of its own."""
    case = draw_case(seed, seeds, kinds)
    with TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name, content in case.files.items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        _reset_memory()
        start, before = process_time(), _memory()
        outcomes = [tried(command) for command in case.commands]
        seconds, memory = process_time() - start, _memory() - max(0, before - STARTED)
    outcome, trouble = next((one for one in outcomes if one[1]), outcomes[0])
    if not trouble and memory > MEMORY:
        outcome, trouble = "memory", f"{memory >> 20} MiB"
    return Verdict(seed, case.kind, outcome, trouble, seconds, memory)


def tried(command: Sequence[str]) -> tuple[str, str]:
    """What became of a command, and its trouble in words."""
    said = io.StringIO()
    signal.signal(signal.SIGPROF, _end)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            edgewright.main(list(command), standalone_mode=False)
        return "taken", ""
    except click.ClickException as error:
        told = f"{len(error.message)} characters: {error.message[:200]}" if len(error.message) > WORDS else ""
        return ("message", told) if told else ("refused", "")
    except click.exceptions.Exit as end:
        return "refused" if end.exit_code else "taken", ""
    except TimeIsUp as error:
        return "time", _where(error)
    except (MemoryError, Exception) as error:
        return "memory" if isinstance(error, MemoryError) else "traceback", _where(error)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _end(*_: object) -> None:
    raise TimeIsUp


def _where(error: BaseException) -> str:
    """The error and the last places of ours on the way to it."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "edgewright" in f.filename]
    places = " < ".join(f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in reversed(frames[-4:]))
    return f"{type(error).__name__}: {str(error)[:300]} @ {places}"


def _reset_memory() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def _memory() -> int:
    """The most that was resident since the reset."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) << 10
