"""The options of `edgewright cluster` and its verbs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..options import (
    BYTE_SIZE,
    DURATION,
    IN_FILE,
    STRATEGIES,
    PositiveNumber,
    json_option,
    model_argument,
    shape_option,
)
from ..outputs import OutFile, OutFolder, Verb

AIMS = ("balance", "memory", "throughput", "latency", "energy")
MOST_DEVICES = 1000


def _devices(_ctx: click.Context, _param: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    """Parses `6` or `2..10`."""
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
    """Divide one network among several devices."""


@cluster.command("plan", cls=Verb)
@model_argument
@click.option("--devices", callback=_devices, metavar="N|A..B", help="N equal devices, or each number from A to B.")
@click.option("--cluster", "file", type=IN_FILE, metavar="CLUSTER.TOML", help="Devices and links from a file.")
@click.option(
    "--strategy",
    "strategies",
    type=click.Choice([*STRATEGIES, "all"]),
    multiple=True,
    help="How to divide the network. May be given again.  [default: hybrid]",
)
@click.option(
    "--minimise",
    type=click.Choice(AIMS),
    default="balance",
    show_default=True,
    help="The objective: balance weighs the largest memory of a device twice and the period once.",
)
@click.option(
    "--rate",
    type=PositiveNumber(),
    metavar="GMAC/s",
    help="Arithmetic rate of each of N equal devices.  [default: 2.4, a Raspberry Pi 4]",
)
@click.option(
    "--bandwidth",
    type=PositiveNumber(),
    metavar="Mbit/s",
    help="Bandwidth of each cable to the switch, per direction.  [default: 1000]",
)
@click.option("--ram", type=BYTE_SIZE, help="Maximum memory on each device: weights, arenas, slots.")
@click.option("--max-latency", type=DURATION, help="Maximum latency of a frame, such as 500ms.")
@click.option("--min-throughput", type=PositiveNumber(), help="Minimum frames per second.")
@click.option("--max-energy", type=PositiveNumber(), help="Maximum joules per frame.")
@click.option("--float16", is_flag=True, help="Send real numbers with 16 bits; reports how outputs change.")
@click.option("--page", type=OutFile(), help="Write a self-contained page: devices and links, Gantt chart, memory.")
@click.option("-o", "--output", type=OutFolder(), help="Write the plan of one size and strategy into this folder.")
@shape_option
@json_option
def plan(**given: Any) -> None:
    """Divide MODEL among several devices: memory, traffic, throughput, latency, energy.

    Without a size or file, the cluster has six Raspberry Pi 4 on a gigabit switch. A single plan is worked out down to
    addresses; a table of several plans shows estimates.
    """
    from ..cluster import ClusterPlanOptions, plan_cluster

    plan_cluster(ClusterPlanOptions(**given))


def _rate(_ctx: click.Context, _param: click.Parameter, value: str | None) -> float | None:
    """Parses `1/h`: failures of each device per hour."""
    if value is None:
        return None
    number, _, unit = value.partition("/")
    hours = {"h": 1.0, "d": 1 / 24, "min": 60.0}.get(unit.strip())
    try:
        rate = float(number) * (hours or 0)
    except ValueError:
        rate = 0.0
    if not 0 < rate < 1e5:
        raise click.BadParameter(f"'{value}' is not a failure rate; expected 1/h, 3/d or 0.1/min")
    return rate


@cluster.command("simulate", cls=Verb)
@click.argument("folder", type=IN_FILE, metavar="PLAN/")
@click.option("--frames", type=click.IntRange(1, 100_000), default=100, show_default=True, help="Frames to simulate.")
@click.option("--every", type=DURATION, default=0.0, help="Time between frames.  [default: without pause]")
@click.option("--wan", type=DURATION, help="Median of an additional random delay of each transfer, such as 20ms.")
@click.option("--churn", callback=_rate, metavar="1/h", help="Failure rate of each device; devices return.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of delays and failures.")
@json_option
def simulate(**given: Any) -> None:
    """Simulate frames on a cluster plan that `cluster plan -o` wrote; needs no devices.

    Shows throughput, latencies, utilisation of devices and links, and the cost of failures.
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
    """Create keys for the devices of a cluster: a private CA, and a folder to copy to each device.

    Existing keys are kept. Devices that are new in the file get keys of the same CA.
    """
    from ..cluster_keys import write_keys

    write_keys(**given)


@cluster.command("node")
@click.argument("keys", type=IN_FILE, metavar="KEYS/")
@click.option("--listen", metavar="HOST:PORT", help="Where to listen.  [default: 0.0.0.0:7447]")
@click.option("--store", type=IN_FILE, help="Folder for libraries.  [default: ~/.cache/edgewright/node/NAME]")
def node(keys: Path, listen: str | None, store: Path | None) -> None:
    """Run a device of a cluster: serve the gateway until interrupted. `cluster keys` writes KEYS/."""
    from ...cluster.node.__main__ import serve  # a device does not install the packages of the other verbs
    from ...cluster.node.addresses import PORT

    serve(keys, listen or f"0.0.0.0:{PORT}", store)


_page_option = click.option(
    "--page", type=OutFile(), help="Write a self-contained page: devices, memory, losses, rates."
)


@cluster.command("run", cls=Verb)
@click.argument("folder", type=IN_FILE, metavar="PLAN/")
@click.option(
    "--keys", type=IN_FILE, default=Path("keys"), show_default=True, help="The folder that `cluster keys` wrote."
)
@click.option("--input", "inputs", type=IN_FILE, multiple=True, help="Frames: .npy or .npz files, or a folder of them.")
@click.option(
    "--frames", type=click.IntRange(1), help="Frames to process.  [default: all; without --input, 100 random ones]"
)
@click.option(
    "--compare", "model", type=IN_FILE, metavar="MODEL", help="Compare each result with the untouched model's."
)
@click.option("--listen", metavar="HOST:PORT", help="Where this device, the gateway, listens.  [default: 0.0.0.0:7447]")
@click.option(
    "--spares/--no-spares", default=True, help="Prepare plans for the loss of each device.  [default: spares]"
)
@click.option("-o", "--output", type=OutFolder(), help="Write each result into this folder, as .npz.")
@_page_option
@click.option("--statistics", type=OutFile(), help="Write the run's state each second, as a line of JSON.")
@click.option(
    "--metrics", type=click.IntRange(0, 65535), metavar="PORT", help="Serve metrics for Prometheus on this port."
)
@json_option
def run(**given: Any) -> None:
    """Process frames with a plan that `cluster plan -o` wrote. Run this on the gateway; other devices run `cluster
    node`.

    Devices may fail and return at any time; no frame is lost.
    """
    from ..cluster_run import ClusterRunOptions, run_cluster

    run_cluster(ClusterRunOptions(**given))


@cluster.command("try", cls=Verb)
@model_argument
@click.option("--devices", type=click.IntRange(2, 64), metavar="N", help="Number of equal devices.  [default: 4]")
@click.option("--cluster", "file", type=IN_FILE, metavar="CLUSTER.TOML", help="Devices from a file.")
@click.option(
    "--strategy", type=click.Choice(STRATEGIES), default="hybrid", show_default=True, help="How to divide the network."
)
@click.option("--frames", type=click.IntRange(1), default=20, show_default=True, help="Random frames to process.")
@click.option("--board", help="Compile for this Linux board instead, and run one frame through the parts under QEMU.")
@click.option("--float16", is_flag=True, help="Send real numbers with 16 bits.")
@click.option("--lose", "lost", multiple=True, metavar="DEVICE", help="Kill this device's process. May be given again.")
@_page_option
@shape_option
@json_option
def try_out(**given: Any) -> None:
    """Try MODEL on local processes that act as devices, and compare each result with the untouched model's."""
    from ..cluster_run import ClusterTryOptions, try_cluster

    try_cluster(ClusterTryOptions(**given))
