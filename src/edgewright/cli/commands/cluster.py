"""The options of `edgewright cluster` and its verbs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..options import BYTE_SIZE, DURATION, IN_FILE, PositiveNumber, json_option, model_argument, shape_option
from ..outputs import OutFile, OutFolder, Verb

STRATEGIES = ("hybrid", "data", "ffmt", "sequential", "horizontal", "vertical", "deepthings", "switch")
AIMS = ("balance", "memory", "throughput", "latency", "energy")
MOST_DEVICES = 1000


def _devices(_ctx: click.Context, _param: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    """6, or 2..10."""
    if value is None:
        return None
    first, dots, last = value.partition("..")
    if not first.isdecimal() or (dots and not last.isdecimal()) or len(value) > 12:
        raise click.BadParameter(f"'{value}' is no number of devices; expected 6, or 2..10")
    low, high = int(first), int(last or first)
    if high < low:
        raise click.BadParameter(f"'{value}' begins with the larger size; expected {high}..{low}")
    if low < 2 or high > MOST_DEVICES:
        raise click.BadParameter(f"'{value}': expected 2 to {MOST_DEVICES} devices; `edgewright plan` is for one")
    return tuple(range(low, high + 1))


@click.group()
def cluster() -> None:
    """One network over several devices."""


@cluster.command("plan", cls=Verb)
@model_argument
@click.option("--devices", callback=_devices, metavar="N|A..B", help="So many equal devices, or each size from A to B.")
@click.option("--cluster", "file", type=IN_FILE, metavar="CLUSTER.TOML", help="Devices and links from a file.")
@click.option(
    "--strategy",
    "strategies",
    type=click.Choice([*STRATEGIES, "all"]),
    multiple=True,
    help="How the network is divided. May be given again.  [default: hybrid]",
)
@click.option(
    "--minimise",
    type=click.Choice(AIMS),
    default="balance",
    show_default=True,
    help="What is best: balance weighs the fullest device's memory twice and the period once.",
)
@click.option(
    "--rate",
    type=PositiveNumber(),
    metavar="GMAC/s",
    help="Of each of N equal devices.  [default: 2.4, a Raspberry Pi 4]",
)
@click.option(
    "--bandwidth",
    type=PositiveNumber(),
    metavar="Mbit/s",
    help="Of each cable to the switch, each way.  [default: 1000]",
)
@click.option("--ram", type=BYTE_SIZE, help="At most so much memory on each device: weights, arenas, slots.")
@click.option("--max-latency", type=DURATION, help="Of a frame, such as 500ms.")
@click.option("--min-throughput", type=PositiveNumber(), help="Frames a second.")
@click.option("--max-energy", type=PositiveNumber(), help="Joules a frame.")
@click.option("--float16", is_flag=True, help="Send real numbers with 16 bits; says what that changes.")
@click.option("--page", type=OutFile(), help="Write a self-contained page: devices and links, Gantt chart, memory.")
@click.option("-o", "--output", type=OutFolder(), help="Write the plan of one size and strategy into this folder.")
@shape_option
@json_option
def plan(**given: Any) -> None:
    """MODEL divided over several devices: memory, traffic, throughput, latency, energy.

    Without a size or file, six Raspberry Pi 4 on a gigabit switch. One plan is planned to the last address; a table
    of several shows estimates.
    """
    from ..cluster import ClusterPlanOptions, plan_cluster

    plan_cluster(ClusterPlanOptions(**given))


def _rate(_ctx: click.Context, _param: click.Parameter, value: str | None) -> float | None:
    """1/h: failures of each device in an hour."""
    if value is None:
        return None
    number, _, unit = value.partition("/")
    hours = {"h": 1.0, "d": 1 / 24, "min": 60.0}.get(unit.strip())
    try:
        rate = float(number) * (hours or 0)
    except ValueError:
        rate = 0.0
    if not 0 < rate < 1e5:
        raise click.BadParameter(f"'{value}' is no rate of failures; expected 1/h, 3/d or 0.1/min")
    return rate


@cluster.command("simulate", cls=Verb)
@click.argument("folder", type=IN_FILE, metavar="PLAN/")
@click.option("--frames", type=click.IntRange(1, 100_000), default=100, show_default=True, help="So many frames.")
@click.option("--every", type=DURATION, default=0.0, help="From frame to frame.  [default: without pause]")
@click.option("--wan", type=DURATION, help="Median delay of each transfer besides, such as 20ms: it varies.")
@click.option("--churn", callback=_rate, metavar="1/h", help="Each device fails so often, and comes back.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of delays and failures.")
@json_option
def simulate(**given: Any) -> None:
    """Frames over the cluster of a plan that `cluster plan -o` wrote; no devices are needed.

    Shows throughput, latencies, loads of devices and links, and what failures cost.
    """
    from ..cluster import simulate_cluster

    simulate_cluster(**given)


@cluster.command("keys", cls=Verb)
@click.argument("file", type=IN_FILE, metavar="CLUSTER.TOML")
@click.option(
    "-o", "--output", type=OutFolder(), default=Path("keys"), show_default=True, help="Write into this folder."
)
@click.option("--days", type=click.IntRange(1, 36_500), default=3650, show_default=True, help="Validity of new keys.")
@json_option
def keys(**given: Any) -> None:
    """Keys for the devices of a cluster: a private CA, and a folder to copy to each device.

    Existing keys stay as they are. Devices that are new in the file get keys of the same CA.
    """
    from ..cluster_keys import write_keys

    write_keys(**given)


@cluster.command("node")
@click.argument("keys", type=IN_FILE, metavar="KEYS/")
@click.option("--listen", metavar="HOST:PORT", help="Where to listen.  [default: 0.0.0.0:7447]")
@click.option("--store", type=IN_FILE, help="Folder for libraries.  [default: ~/.cache/edgewright/node/NAME]")
def node(keys: Path, listen: str | None, store: Path | None) -> None:
    """A device of a cluster: serves the gateway until it is ended. KEYS/ is what `cluster keys` wrote for it."""
    from ...cluster.node.__main__ import serve  # a device has none of the packages that the other verbs need
    from ...cluster.node.addresses import PORT

    serve(keys, listen or f"0.0.0.0:{PORT}", store)


_page_option = click.option(
    "--page", type=OutFile(), help="Write a self-contained page: devices, memory, losses, rates."
)


@cluster.command("run", cls=Verb)
@click.argument("folder", type=IN_FILE, metavar="PLAN/")
@click.option("--keys", type=IN_FILE, default=Path("keys"), show_default=True, help="What `cluster keys` wrote.")
@click.option("--input", "inputs", type=IN_FILE, multiple=True, help="Frames: .npy or .npz files, or a folder of them.")
@click.option(
    "--frames", type=click.IntRange(1), help="So many frames.  [default: all; without --input, 100 random ones]"
)
@click.option(
    "--compare", "model", type=IN_FILE, metavar="MODEL", help="Compare each result with the untouched model's."
)
@click.option("--listen", metavar="HOST:PORT", help="Where this device, the gateway, listens.  [default: 0.0.0.0:7447]")
@click.option(
    "--spares/--no-spares", default=True, help="Plan beforehand for the loss of each device.  [default: spares]"
)
@click.option("-o", "--output", type=OutFolder(), help="Write each result into this folder, as .npz.")
@_page_option
@click.option("--statistics", type=OutFile(), help="Write a line of JSON with the run's state each second.")
@click.option("--metrics", type=click.IntRange(0, 65535), metavar="PORT", help="Serve figures for Prometheus there.")
@json_option
def run(**given: Any) -> None:
    """Frames through a plan that `cluster plan -o` wrote, from the gateway; nodes run on the other devices.

    A device may be lost at any time, and may come back: no frame is.
    """
    from ..cluster_run import ClusterRunOptions, run_cluster

    run_cluster(ClusterRunOptions(**given))


@cluster.command("try", cls=Verb)
@model_argument
@click.option("--devices", type=click.IntRange(2, 64), metavar="N", help="So many equal devices.  [default: 4]")
@click.option("--cluster", "file", type=IN_FILE, metavar="CLUSTER.TOML", help="Devices from a file.")
@click.option(
    "--strategy", type=click.Choice(STRATEGIES), default="hybrid", show_default=True, help="How it is divided."
)
@click.option("--frames", type=click.IntRange(1), default=20, show_default=True, help="So many random frames.")
@click.option("--board", help="Compile for this Linux board instead, and run one frame through the parts under QEMU.")
@click.option("--float16", is_flag=True, help="Send real numbers with 16 bits.")
@click.option("--lose", "lost", multiple=True, metavar="DEVICE", help="Kill this device's process. May be given again.")
@_page_option
@shape_option
@json_option
def try_out(**given: Any) -> None:
    """MODEL over nodes that are processes of this machine, each result compared with the untouched model's."""
    from ..cluster_run import ClusterTryOptions, try_cluster

    try_cluster(ClusterTryOptions(**given))
