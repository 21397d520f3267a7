"""Three applications of four scenarios each, cut out of real int8 networks: memory of each model, fronts of arenas.

    python benchmarks/adaptive_networks.py [--target cortex-m4] [--json FILE]

The scenarios of an application are slices of one network of $EDGEWRIGHT_CORPUS/models: fewer channels, and fewer
blocks. The table has the buffers and the weights of the paper's model for A = {}, {I, O} and {I, O, par}, and those of
the layouts that are compiled. Ends with status 1 when the arena under `finish` exceeds that of the largest scenario by
more than 64 bytes, or half of what {I, O, par} takes, or when a front of `overlap` has fewer than four points.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import click
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent.parent))

from edgewright.adaptive import scenarios
from edgewright.adaptive.deploying import SwitchingApplication, with_policy
from edgewright.adaptive.paper.layers import scenario_graph
from edgewright.adaptive.paper.memory import PaperBytes, shared_bytes
from edgewright.adaptive.scenarios import AdaptiveApplication
from edgewright.network import Network
from edgewright.network.read import read
from edgewright.program.switching import SwitchPolicy
from tests.helpers.nested_networks import narrowed, shortened

Blocks = tuple[tuple[int, int], ...]  # of layers that are left out: the first, and one past the last

Slices = tuple[str, tuple[tuple[str, float, Blocks], ...]]

# The file, and of each scenario its name, its share of the channels, and the blocks that it lacks.
APPLICATIONS: dict[str, Slices] = {
    "keywords": (
        "mlperf_kws_ref_int8",
        (
            ("full", 1.0, ()),
            ("slim", 0.75, ()),
            ("short", 0.75, ((5, 7),)),
            ("eco", 0.5, ((3, 5), (5, 7))),
        ),
    ),
    "persons": (
        "mlperf_vww96_int8",
        (
            ("full", 1.0, ()),
            ("short", 1.0, ((13, 17),)),
            ("slim", 0.75, ((13, 17),)),
            ("eco", 0.5, ((13, 17), (17, 21))),
        ),
    ),
    "objects": (
        "st_mobilenet_v2_0.35_128_imagenet_int8",
        (
            ("full", 1.0, ()),
            ("short", 1.0, ((14, 18), (29, 33), (55, 59))),
            ("slim", 0.75, ((14, 18), (29, 33), (55, 59))),
            ("eco", 0.5, ((14, 18), (18, 22), (29, 33), (33, 37), (55, 59))),
        ),
    ),
}
LARGE: dict[str, Slices] = {  # takes milliseconds on a host: for `adaptive.py`
    "poses": (
        "coral_posenet_mnv1_075_353_481_16_quant_trunk",
        (
            ("full", 1.0, ()),
            ("short", 1.0, ((14, 16), (16, 18), (18, 20))),
            ("slim", 0.75, ((14, 16), (16, 18))),
            ("eco", 0.5, ((14, 16), (16, 18))),
        ),
    ),
}
SPARE = 64  # bytes that the arena may exceed that of the largest scenario by
LEAST_POINTS = 4


def slices(application: str) -> dict[str, Network]:
    """The networks of an application by scenario."""
    file, parts = (APPLICATIONS | LARGE)[application]
    network = read(Path(os.environ["EDGEWRIGHT_CORPUS"]).resolve() / "models" / f"{file}.tflite")
    return {name: narrowed(shortened(network, blocks), width) for name, width, blocks in parts}


def application_with(networks: dict[str, Network], target: str, adapt: str = "processors = 2") -> AdaptiveApplication:
    """An application whose scenarios run these networks, in place of those in files."""
    entries = "".join(
        f'[[network]]\nname = "{name}"\nfile = "given"\n[[scenario]]\nname = "{name}"\n' for name in networks
    )
    with TemporaryDirectory() as folder, patch.object(scenarios, "read_network", side_effect=networks.values()):
        path = Path(folder) / "app.toml"
        path.write_text(f'target = "{target}"\n[adapt]\n{adapt}\n{entries}')
        return scenarios.load_adaptive(path)


@dataclass(frozen=True)
class Row:
    application: str
    network: str
    scenarios: tuple[str, ...]
    buffers: PaperBytes
    weights: PaperBytes
    largest_bytes: int  # the arena of the largest scenario alone
    finish_bytes: int  # the arena of all, as compiled
    fronts: dict[str, tuple[tuple[int, float], ...]]  # by policy: bytes, and the worst delay in seconds

    @property
    def troubles(self) -> list[str]:
        found = []
        if self.finish_bytes > self.largest_bytes + SPARE:
            found.append(f"takes {self.finish_bytes} B, and the largest scenario {self.largest_bytes} B")
        if self.finish_bytes > 0.5 * self.buffers.io_par:
            found.append(f"takes {self.finish_bytes / self.buffers.io_par:.2f} of {{I, O, par}}")
        if len(self.fronts["overlap"]) < LEAST_POINTS:
            found.append(f"has a front of {len(self.fronts['overlap'])} points")
        return [f"{self.application} {trouble}" for trouble in found]


def examine(name: str, target: str) -> Row:
    networks = slices(name)
    application = application_with(networks, target)
    one = SwitchingApplication(with_policy(application, SwitchPolicy.FINISH), SwitchPolicy.FINISH)
    largest, finish = max(each.plan.peak_bytes for each in one.plans), one.layout.arena_bytes
    graphs = [scenario_graph(each.name, each.network) for each in application.scenarios]
    buffers, weights = shared_bytes(graphs, [finish])
    fronts = {}
    for policy in (SwitchPolicy.OVERLAP, SwitchPolicy.OVERTAKE):
        layouts = SwitchingApplication(with_policy(application, policy), policy).layouts
        fronts[policy.value] = tuple((each.arena_bytes, each.worst_delay) for each in layouts)
    return Row(name, APPLICATIONS[name][0], tuple(networks), buffers, weights, largest, finish, fronts)


def megabytes(count: int) -> str:
    return f"{count / 1e6:.3f}"


def tables(rows: Sequence[Row]) -> tuple[Table, Table]:
    memory = Table("application", "bytes of", "{}", "{I, O}", "{I, O, par}", "exact", title="MB", title_justify="left")
    for heading in ("exact / {I, O, par}", "largest scenario", "exact - largest, B"):
        memory.add_column(heading, justify="right")
    fronts = Table("application", "policy", "points", "arena, kB, and worst delay, ms", title_justify="left")
    for row in rows:
        for what, one in (("buffers", row.buffers), ("weights", row.weights)):
            cells = [megabytes(count) for count in (one.none, one.io, one.io_par, one.exact)]
            share = f"{one.exact / one.io_par:.2f}"
            rest = [megabytes(row.largest_bytes), str(row.finish_bytes - row.largest_bytes)]
            memory.add_row(row.application, what, *cells, share, *(rest if what == "buffers" else ["", ""]))
        for policy, points in row.fronts.items():
            said = ", ".join(f"{size / 1e3:.1f} {delay * 1e3:.2f}" for size, delay in points)
            fronts.add_row(row.application, policy, str(len(points)), said)
    return memory, fronts


@click.command()
@click.option("--target", default="cortex-m4", show_default=True)
@click.option("--json", "path", type=click.Path(path_type=Path))
def main(target: str, path: Path | None) -> None:
    if not os.environ.get("EDGEWRIGHT_CORPUS"):
        raise click.UsageError("EDGEWRIGHT_CORPUS names no folder with models.")
    rows = [examine(name, target) for name in APPLICATIONS]
    console = Console(width=140)
    console.print(*tables(rows))
    troubles = [trouble for row in rows for trouble in row.troubles]
    for trouble in troubles:
        console.print(trouble, style="red", markup=False)
    if path is not None:
        path.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    sys.exit(1 if troubles else 0)


if __name__ == "__main__":
    main()
