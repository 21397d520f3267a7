"""Runs that lose devices at random moments, long runs, and hours of hostile messages.

    python benchmarks/cluster_faults.py [--trials 50] [--frames 100000] [--fuzz MINUTES] [--json FILE]

Four devices are processes of this machine, each in a network namespace where those can be had (as root), else on
loopback. A trial sends 1,000 frames through; at random moments a device is killed and started again, stopped and
continued, its cable is cut and mended, or what it sends to one other device vanishes for a while. No result may be
missing, doubled, out of order or wrong, and results must come again within 2 s after a loss was noticed. `--frames` and
`--fuzz` watch the memory of all processes: the means of the first and the last tenth may differ by 2 %.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from statistics import mean, median

import click
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent.parent))

from cluster_places import BRIDGE, address, namespaces, run
from tests.cluster.fuzz import fuzz, resident, trouble_of
from tests.cluster.test_plans import convolutions
from tests.cluster.trials import Trial, trial_of

DEVICES, FRAMES, PACE_S = 4, 1000, 0.003
NAMES = [f"device{number + 1}" for number in range(1, DEVICES)]
RESUME_S, GROWTH = 2.0, 0.02  # the bars
HOME = address(200)  # of this machine
KINDS = {
    "killed": "SIGKILL, started again 1 s later",
    "stopped": "SIGSTOP, SIGCONT",
    "cut": "cable cut, mended",
    "parted": "no packets to one device, mended",
}
OF_CABLES = ("cut", "parted")
NOBODY = "02:00:00:00:00:99"  # an Ethernet address


@dataclass
class Fault:
    kind: str
    device: str
    frame: int
    seconds: float  # until the device is well again
    other: str = ""  # that it cannot reach
    notice_s: float | None = None  # until the loss was noticed; None where it was over before
    resume_s: float | None = None  # from then on until the next result
    frames_again: int = 0


@dataclass
class Outcome:
    seed: int
    faults: list[Fault] = field(default_factory=list)
    results: int = 0
    trouble: str = ""  # a wrong result, or a run that ended


@contextmanager
def cables() -> Iterator[dict[str, str]]:
    """Network namespaces by device, with a cable each to this machine; none where they cannot be had."""
    with ExitStack() as held:
        spaces: list[str] = []
        with suppress(OSError):  # not as root
            spaces = held.enter_context(namespaces(len(NAMES)))
            run("ip", "addr", "add", f"{HOME}/24", "dev", BRIDGE)
        yield dict(zip(NAMES, spaces, strict=False))


@contextmanager
def devices(spaces: dict[str, str]) -> Iterator[Trial]:
    network = convolutions(3, 8, 8, 8, 8, size=16, classes=10)
    prefixes = {name: ("ip", "netns", "exec", space) for name, space in spaces.items()}
    hosts = {name: address(number) for number, name in enumerate(spaces)}
    home = HOME if spaces else "127.0.0.1"
    with (
        tempfile.TemporaryDirectory(prefix="edgewright-") as folder,
        trial_of(network, DEVICES, Path(folder), home=home, prefixes=prefixes, hosts=hosts) as trial,
    ):
        yield trial


def begin(trial: Trial, spaces: dict[str, str], fault: Fault) -> None:
    process = trial.nodes.processes[fault.device]
    if fault.kind == "cut":
        run("ip", "link", "set", f"{spaces[fault.device]}h", "down")
    elif fault.kind == "parted":
        false = [*neighbour(fault), "lladdr", NOBODY, "nud", "permanent"]
        run("ip", "-n", spaces[fault.device], "neigh", "replace", *false)
    else:
        process.send_signal(signal.SIGKILL if fault.kind == "killed" else signal.SIGSTOP)

    def mend() -> None:
        if fault.kind == "cut":
            run("ip", "link", "set", f"{spaces[fault.device]}h", "up")
        elif fault.kind == "parted":
            run("ip", "-n", spaces[fault.device], "neigh", "del", *neighbour(fault))
        elif fault.kind == "stopped":
            process.send_signal(signal.SIGCONT)
        else:
            process.wait()
            trial.nodes.restart(fault.device)

    timer = threading.Timer(fault.seconds, mend)
    timer.name = "mend"
    timer.start()


def neighbour(fault: Fault) -> tuple[str, str, str]:
    return address(NAMES.index(fault.other)), "dev", "eth0"


def one_trial(trial: Trial, spaces: dict[str, str], seed: int) -> Outcome:
    """1,000 frames with one or two faults, the second often before the first is over."""
    random, outcome = Random(seed), Outcome(seed)
    kinds = [kind for kind in KINDS if spaces or kind not in OF_CABLES]
    at = sorted(random.sample(range(20, FRAMES - 20), random.choice((1, 1, 2))))
    for victim, frame in zip(random.sample(NAMES, len(at)), at, strict=True):
        kind = random.choice(kinds)
        seconds = {"killed": 1.0, "parted": 8.0}.get(kind) or random.uniform(0.2, 4.0)
        other = random.choice([name for name in NAMES if name != victim]) if kind == "parted" else ""
        outcome.faults.append(Fault(kind, victim, frame, seconds, other))
    coming, begun = list(outcome.faults), dict[str, float]()
    coordinator = trial.connected()
    try:
        for number, result in enumerate(coordinator(trial.source(FRAMES, PACE_S), trial.preparation.of_devices)):
            trial.check(number, result)
            outcome.results += 1
            if coming and coming[0].frame == number:
                begun[coming[0].device] = time.monotonic()
                begin(trial, spaces, coming.pop(0))
    except Exception as error:
        outcome.trouble = f"{type(error).__name__}: {error}"
    finally:
        coordinator.close()
    if outcome.results < FRAMES and not outcome.trouble:
        outcome.trouble = f"{FRAMES - outcome.results} results are missing"
    for fault in outcome.faults:
        for loss in coordinator.recoveries:
            if loss.device in (fault.device, fault.other) and fault.notice_s is None:
                fault.notice_s, fault.frames_again = loss.noticed - begun[fault.device], loss.frames_again
                fault.resume_s = loss.resumed - loss.noticed if loss.resumed else None
    for thread in threading.enumerate():
        if thread.name == "mend":
            thread.join()
    outcome.trouble = outcome.trouble or trouble_of(trial)
    return outcome


@dataclass(eq=False)
class Growth:
    """Bytes of a process in RAM over a run."""

    name: str
    sizes: list[int] = field(default_factory=list)

    def tenths(self) -> tuple[float, float]:
        tenth = max(1, len(self.sizes) // 10)
        return mean(self.sizes[:tenth]), mean(self.sizes[-tenth:])

    @property
    def share(self) -> float:
        first, last = self.tenths()
        return last / first - 1


def watched(trial: Trial, with_gateway: bool) -> dict[Growth, int]:
    found = {Growth(name): process.pid for name, process in trial.nodes.processes.items()}
    return {**found, Growth(f"{trial.gateway} (gateway)"): os.getpid()} if with_gateway else found


def long_run(trial: Trial, frames: int) -> list[Growth]:
    coordinator, growths = trial.connected(), watched(trial, True)
    for number, result in enumerate(coordinator(trial.source(frames))):
        if number % 100 == 0:
            trial.check(number, result)
        if number % max(1, frames // 500) == 0:
            for growth, pid in growths.items():
                growth.sizes.append(resident(pid))
    coordinator.close()
    return list(growths)


def fuzzed(trial: Trial, minutes: float) -> tuple[int, list[Growth]]:
    growths, last = watched(trial, False), [0.0]

    def look() -> None:
        if time.monotonic() > last[0] + 0.05 * minutes:
            last[0] = time.monotonic()
            assert not (trouble := trouble_of(trial)), trouble
            for growth, pid in growths.items():
                growth.sizes.append(resident(pid))

    fuzz(trial, min(60.0, 12 * minutes), 7)  # what is loaded and cached once, and gaps between blocks of memory
    return fuzz(trial, 60 * minutes, 11, look), list(growths)


def fault_table(outcomes: list[Outcome]) -> Table:
    table = Table(title=f"{len(outcomes)} runs of {FRAMES:,} frames over {DEVICES} devices")
    for heading in (
        "fault",
        "times",
        "noticed after, s",
        "results again after, s (median)",
        "s (longest)",
        "frames again",
    ):
        table.add_column(heading, justify="left" if heading == "fault" else "right")
    for kind, words in KINDS.items():
        faults = [fault for outcome in outcomes for fault in outcome.faults if fault.kind == kind]
        noticed = [fault for fault in faults if fault.notice_s is not None]
        resumed = [fault.resume_s for fault in noticed if fault.resume_s is not None]
        if resumed:
            table.add_row(
                words,
                f"{len(noticed)} of {len(faults)}",
                f"{median(fault.notice_s for fault in noticed):.2f}",
                f"{median(resumed):.2f}",
                f"{max(resumed):.2f}",
                f"{median(fault.frames_again for fault in noticed):g}",
            )
    return table


def growth_table(title: str, growths: list[Growth]) -> Table:
    table = Table(title=title)
    for heading in ("process", "first tenth, MB", "last tenth, MB", "growth"):
        table.add_column(heading, justify="left" if heading == "process" else "right")
    for growth in growths:
        first, last = growth.tenths()
        table.add_row(growth.name, f"{first / 1e6:.2f}", f"{last / 1e6:.2f}", f"{growth.share:+.2%}")
    return table


@click.command()
@click.option("--trials", default=50, help="runs with faults")
@click.option("--frames", default=0, help="of one long run without faults; 100,000 say whether memory is flat")
@click.option("--fuzz", "minutes", default=0.0, help="minutes of hostile messages")
@click.option("--seed", default=0, help="of the first trial")
@click.option("--json", "file", type=click.Path(path_type=Path), help="where the figures are written")
def main(trials: int, frames: int, minutes: float, seed: int, file: Path | None) -> None:
    console = Console(width=140)
    outcomes: list[Outcome] = []
    memory: dict[str, list[Growth]] = {}
    messages = 0
    with cables() as spaces, devices(spaces) as trial:
        console.print("devices in network namespaces" if spaces else "no network namespaces: cables are not cut")
        with suppress(KeyboardInterrupt):  # then the trials so far are shown
            for number in range(trials):
                outcomes.append(one_trial(trial, spaces, seed + number))
                console.print(
                    f"{number + 1} of {trials}: {outcomes[-1].trouble or 'all results are right'}", highlight=False
                )
                if outcomes[-1].trouble:
                    console.print(outcomes[-1])
                    trial.revive()
        if frames:
            memory["frames"] = long_run(trial, frames)
        if minutes:
            messages, memory["fuzz"] = fuzzed(trial, minutes)
    if outcomes:
        console.print(fault_table(outcomes))
    if frames:
        console.print(growth_table(f"memory over {frames:,} frames", memory["frames"]))
    if minutes:
        console.print(growth_table(f"memory over {messages:,} hostile messages", memory["fuzz"]))
    resumed = [fault.resume_s for outcome in outcomes for fault in outcome.faults if fault.resume_s is not None]
    bars = {
        "no frame is lost, doubled, out of order or wrong": not any(outcome.trouble for outcome in outcomes),
        f"results again within {RESUME_S:g} s": max(resumed, default=0.0) <= RESUME_S,
        f"memory within {GROWTH:.0%}": all(each.share <= GROWTH for growths in memory.values() for each in growths),
    }
    for words, holds in bars.items():
        console.print(f"{'yes' if holds else 'NO':4}{words}")
    if file:
        found = {
            "trials": [asdict(outcome) for outcome in outcomes],
            "memory": {kind: {each.name: each.tenths() for each in growths} for kind, growths in memory.items()},
            "bars": bars,
        }
        file.write_text(json.dumps(found, indent=1))
    sys.exit(not all(bars.values()))


if __name__ == "__main__":
    main()
