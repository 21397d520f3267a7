"""Pages of plans over clusters: their figures are those of the plan, and pictures and tables agree."""

import re
from contextlib import suppress
from xml.etree.ElementTree import fromstring

import pytest
from click.testing import CliRunner

from edgewright import read_model, samples, text
from edgewright.cli import main
from edgewright.cluster.devices import Cluster, ClusterDevice, ClusterLink, equal_devices
from edgewright.cluster.goal import ClusterGoal
from edgewright.cluster.planning import ClusterPlanner
from edgewright.errors import Infeasible
from edgewright.report.cluster_gantt import cluster_gantt_svg
from edgewright.report.cluster_map import MOST_DEVICES, cluster_map_svg
from edgewright.report.cluster_memory import cluster_memory_svg
from edgewright.report.cluster_page import cluster_page, cluster_sizes_page

KINDS = ("weights", "working", "replay", "single")


@pytest.fixture(scope="module")
def planner():
    return ClusterPlanner(read_model(samples.build("lenet5")), ClusterGoal())


@pytest.fixture(scope="module")
def plan(planner):
    return planner.realised(planner.plan(equal_devices(3)))


def test_memory_by_purpose_adds_up(plan):
    assert {name: parts.total for name, parts in plan.memory_parts.items()} == dict(plan.memory)
    assert sum(parts.weights for parts in plan.memory_parts.values()) > 0.9 * plan.found.costs.weights_bytes
    assert [name for name, parts in plan.memory_parts.items() if parts.replay] == [plan.cluster.gateway]


def test_a_page_shows_the_plan(plan):
    page = cluster_page(plan)
    assert "<script" not in page and "<link" not in page and "src=" not in page
    for device in plan.cluster.devices:
        assert device.name in page
    assert text.rounded_size(plan.fullest) in page
    for size in plan.cost.port_bytes.values():
        assert f"{size:,}" in page
    assert [fromstring(svg).tag for svg in re.findall(r"<svg.*?</svg>", page, re.DOTALL)]


def test_the_gantt_chart_has_every_part_and_ends_with_the_frame(plan):
    parts = {part.name for part in plan.deployment.deployment.parts}
    assert set(plan.part_segments) == parts
    computed = {span.label for span in plan.frame.spans if span.row in plan.cluster.device_named}
    assert computed == parts
    assert max(span.end_s for span in plan.frame.spans) == pytest.approx(plan.latency)
    assert cluster_gantt_svg(plan).count('class="run s') == len(parts) + 1  # and the legend


def test_memory_bars_are_as_long_as_memory_is_large(plan):
    drawn = fromstring(cluster_memory_svg(plan))
    bars = {kind: [float(each.get("width")) for each in drawn.iter() if each.get("class") == kind] for kind in KINDS}
    single = bars.pop("single")[0]
    total = sum(sum(bars[kind][: len(plan.cluster.devices)]) for kind in bars)
    assert total / single == pytest.approx(sum(plan.memory.values()) / plan.single_bytes, abs=0.01)


def test_a_bus_switches_and_many_devices_can_be_drawn(planner):
    devices = tuple(ClusterDevice(f"node <{n}>", 1e6 * (1 + n % 2)) for n in range(40))
    links = (
        ClusterLink("bus", ("far", *(device.name for device in devices[1:])), 1e5),
        ClusterLink("up", (devices[0].name, "near"), 1e6, is_half_duplex=True),
        ClusterLink("across", ("near", "far"), 1e6),
        ClusterLink("direct", (devices[1].name, devices[2].name), 1e6),
    )
    plan = planner.plan(Cluster("shelf", devices, links, devices[0].name), "sequential")
    drawn = fromstring(cluster_map_svg(plan))
    said = [each.text or "" for each in drawn.iter()]
    assert any(each.startswith("bus, ") for each in said)
    assert any("40" not in each and "compute less" in each for each in said)
    assert sum(each.get("class", "").startswith("device") for each in drawn.iter()) == MOST_DEVICES
    assert any(each.startswith("direct: ") for each in said)


def test_several_sizes_are_compared(planner):
    plans = [planner.plan(equal_devices(n), name) for n in (2, 3) for name in ("hybrid", "horizontal")]
    page = cluster_sizes_page(plans, ["4 devices, vertical: cannot"])
    assert page.count('class="best"') == 2 and "4 devices, vertical: cannot" in page
    assert page.count("<circle") == 2 * len(plans)
    assert [fromstring(svg).tag for svg in re.findall(r"<svg.*?</svg>", page, re.DOTALL)]


def test_strategies_of_one_size_are_compared_by_memory_and_speed(planner):
    plans = [planner.plan(equal_devices(3), name) for name in ("hybrid", "data", "horizontal")]
    page = cluster_sizes_page(plans)
    assert "Speed-up against memory" in page and page.count("<circle") == len(plans) and "to 3 devices" not in page


def test_the_command_writes_both_pages(tmp_path):
    model = samples.write("lenet5", tmp_path)
    for sizes, title in (("3", "One frame over time"), ("2..3", "Speed-up against devices")):
        page = tmp_path / "page.html"
        words = ["cluster", "plan", str(model), "--devices", sizes, "--page", str(page), "--json"]
        ran = CliRunner().invoke(main, words)
        assert ran.exit_code == 0, ran.output
        assert title in page.read_text()


def test_a_plan_keeps_a_limit_by_its_exact_figures_or_is_refused(planner):
    cluster = equal_devices(3)
    most = planner.realised(planner.plan(cluster)).fullest - 1
    tight = ClusterPlanner(planner.network, ClusterGoal(max_memory=most))
    with suppress(Infeasible):  # what messages say is tested with the command
        assert tight.realised(tight.plan(cluster)).fullest <= most


def test_boards_with_parts_that_differ_in_weights_get_their_libraries(tmp_path):
    model = samples.write("lenet5", tmp_path)
    cluster = tmp_path / "team.toml"
    cluster.write_text(
        'name = "team"\n[[device]]\nname = "pi"\ncount = 3\nboard = "raspberry-pi-4"\nswitch = "switch"\n'
    )
    words = ["cluster", "plan", str(model), "--cluster", str(cluster), "-o", str(tmp_path / "plan"), "--json"]
    ran = CliRunner().invoke(main, words)
    assert ran.exit_code == 0, ran.output
    assert all(list((tmp_path / "plan" / "c" / f"pi{n}").glob("*.c")) for n in (1, 2, 3))


def test_what_devices_send_and_get_is_what_their_cables_carry(plan):
    for link in plan.cluster.links:
        device, switch = link.ends
        carried = tuple(plan.cost.port_bytes.get((link.name, end), 0) for end in (device, switch))
        assert plan.sent_and_received[device] == carried
