"""Pictures and pages of dataflow graphs: every firing and point is drawn where it belongs, and no name can run."""

from __future__ import annotations

from fractions import Fraction
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewright.dataflow import Actor, Channel, Graph, Rates, analyse, pareto, repetitions, self_timed
from edgewright.dataflow.throughput.pareto import Pareto, Point
from edgewright.report.charts import Axis, exact, round_step, speed, tick_label
from edgewright.report.dataflow_page import dataflow_page
from edgewright.report.gantt import gantt_svg
from edgewright.report.pareto_plot import pareto_svg
from tests.helpers.random_graphs import live_graphs

SVG = "{http://www.w3.org/2000/svg}"
EVIL = "</title></style><script>alert('x')</script>&\x00\u202e"


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def serial(actor: Actor) -> Channel:
    ones = Rates((1,) * actor.phases)
    return Channel(f"{actor.name}.serial", actor.name, actor.name, ones, ones, 1)


def pair(name="g", first="a", time: int | None = 2) -> Graph:
    """Two actors that take turns."""
    a, b = Actor(first, 2, None if time is None else (time, 1)), Actor("b", 1, None if time is None else (3,))
    rates = Rates((1, 1)), Rates((2,))
    return Graph(name, (a, b), (Channel("c", first, "b", *rates, token_bytes=4), serial(a), serial(b)))


def chart(graph: Graph, iterations=1, **options) -> ElementTree.Element:
    firings = self_timed(graph, iterations=iterations).firings
    return parsed(gantt_svg(graph, firings, repetitions(graph), **options))


def bars(svg: ElementTree.Element) -> list[tuple[str, float, float]]:
    """What each bar says, and from where to where it goes."""
    found = []
    for group in svg.iter(f"{SVG}g"):
        rect = next(group.iter(f"{SVG}rect"))
        x, wide = float(rect.get("x")), float(rect.get("width"))
        found.append((group.findtext(f"{SVG}title"), x, x + wide))
    return found


def test_a_bar_for_each_firing_where_it_belongs():
    found = bars(chart(pair()))
    assert [text.split("\n") for text, _, _ in found] == [
        ["a", "firing 1, phase 1 of 2", "from 0 to 2"],
        ["a", "firing 2, phase 2 of 2", "from 2 to 3"],
        ["b", "firing 1", "from 3 to 6"],
    ]
    (_, start, one), (_, two, three), (_, four, end) = found
    assert one == pytest.approx(two) and three == pytest.approx(four)
    scale = (end - start) / 6
    assert one - start == pytest.approx(2 * scale, abs=0.02) and end - four == pytest.approx(3 * scale, abs=0.02)


def test_iterations_have_their_colours():
    svg = chart(pair(), iterations=3)
    groups = [group.get("class").split()[0] for group in svg.iter(f"{SVG}g")]
    assert groups == ["i0", "i0", "i1", "i1", "i0", "i0", "i0", "i1", "i0"]  # a fires twice in each, b once


def test_the_unit_and_the_end_are_told():
    text = "".join(chart(pair(), unit="MACs").itertext())
    assert "time, MACs; the last firing ends at 6" in text


def test_firings_that_overlap_have_rows_of_their_own():
    a = Actor("a", 1, (4,))
    graph = Graph("g", (a, Actor("b", 1, (1,))), (Channel("c", "a", "b", Rates((1,)), Rates((3,))),))
    svg = chart(graph)
    tops = {rect.get("y") for rect in svg.iter(f"{SVG}rect") if rect.get("class") == "firing"}
    assert len(tops) == 4  # three of a at once, one of b


def test_very_many_firings_become_few_bars():
    a, b = Actor("a", 1, (1,)), Actor("b", 1, (1,))
    graph = Graph("g", (a, b), (Channel("c", "a", "b", Rates((1,)), Rates((20_000,))), serial(a)))
    found = bars(chart(graph))
    assert len(found) < 2500
    assert "firings 1 to 20,000" in found[0][0]


def test_wide_concurrency_is_one_bar():
    a, b = Actor("a", 1, (1,)), Actor("b", 1, (1,))
    graph = Graph("g", (a, b), (Channel("c", "a", "b", Rates((1,)), Rates((500,))),))
    found = bars(chart(graph))
    assert len(found) == 2 and "up to 500 at once" in found[0][0]


def test_of_many_actors_the_busiest_are_drawn():
    actors = [Actor(f"n{i}", 1, (i,)) for i in range(100)]
    channels = [serial(actor) for actor in actors]
    text = "".join(chart(Graph("g", tuple(actors), tuple(channels))).itertext())
    assert "40 actors that work less are left out" in text
    assert "n99" in text and "n40" in text and "n39" not in text


@given(live_graphs(), st.integers(1, 2))
def test_any_graph_can_be_drawn(graph, iterations):
    svg = chart(graph, iterations)
    for text, start, end in bars(svg):
        assert text and 0 <= start <= end <= float(svg.get("width"))


def points(*pairs) -> tuple[Point, ...]:
    return tuple(Point(size, 4 * size, Fraction(period), {}) for size, period in pairs)


FRONT = Pareto(points((10, 4), (11, 2), (13, Fraction(4, 3)), (14, 1)), Fraction(1), True, 15)


def circles(svg: ElementTree.Element) -> list[tuple[float, float]]:
    return [(float(one.get("cx")), float(one.get("cy"))) for one in svg.iter(f"{SVG}circle")]


def test_points_of_a_front_lie_to_scale():
    found = circles(parsed(pareto_svg(FRONT, "tokens")))
    (x0, y0), (x1, y1), _, (x3, y3) = found
    assert (x3 - x0) == pytest.approx(4 * (x1 - x0), abs=0.5)
    assert (y3 - y0) == pytest.approx(1.5 * (y1 - y0), abs=0.5)  # smaller periods lie lower
    assert y0 < y1 < y3


def test_points_and_axes_are_labelled():
    svg = parsed(pareto_svg(FRONT, "bytes", unit="MACs"))
    text = "|".join(svg.itertext())
    assert "|4/3|" in text and "total of all channels, bytes" in text and "time per iteration, MACs" in text
    assert "10 tokens, 40 B\nperiod 4 MACs" in text


def test_what_is_not_proven_is_drawn_apart():
    open_front = Pareto(FRONT.points[:2], Fraction(1), False, 13, FRONT.points[2])
    svg = parsed(pareto_svg(open_front, "tokens"))
    assert [one.get("class") for one in svg.iter(f"{SVG}circle")] == ["point", "point", "point open"]
    assert "4/3, not proven" in "".join(svg.itertext())


def test_fronts_without_points_or_size_can_be_drawn():
    parsed(pareto_svg(Pareto((), Fraction(0), False, 0), "tokens"))
    parsed(pareto_svg(Pareto(points((0, 0)), Fraction(0), True, 1), "tokens"))


@given(st.floats(1e-6, 1e12), st.integers(1, 20))
def test_ticks_are_round_and_few(high, most):
    ticks = [value for value, _ in Axis(0, high, 0, 100).ticks(most)]
    assert ticks[0] == 0 and len(ticks) <= most + 1
    assert all(value <= high * 1.001 for value in ticks)


def test_labels():
    assert [round_step(x) for x in (0, 0.3, 1, 3, 7, 120)] == [1, 0.5, 1, 5, 10, 200]
    assert [tick_label(x, 5e5, 3e6) for x in (0.0, 5e5, 2e6)] == ["0", "0.5 M", "2 M"]
    assert [tick_label(1195.0, 5, 1230), tick_label(28e3, 1e3, 3e4), tick_label(0.5, 0.5, 2)] == [
        "1,195",
        "28 k",
        "0.5",
    ]
    assert [speed(Fraction(1), Fraction(x)) for x in (1, Fraction(10_001, 10_000), 2)] == [
        "100.0 %",
        "99.9 %",
        "50.0 %",
    ]
    assert [exact(Fraction(4, 3)), exact(Fraction(1088))] == ["4/3", "1,088"]


def page(graph: Graph, **options) -> str:
    return dataflow_page(analyse(graph), **options)


def test_a_page_has_everything():
    graph = pair()
    found = analyse(graph)
    firings = self_timed(graph, found.buffers.capacities, 1).firings
    text = dataflow_page(found, firings=firings, front=pareto(graph), unit="cycles")
    for words in ("Firings over time", "Buffer size against period", "proven least", "2 a b", "time in cycles"):
        assert words in text
    assert text.count("<svg") == 2 and "<script" not in text and "href" not in text and "src=" not in text


def test_pages_of_graphs_that_do_not_run_say_why():
    one = Rates((1,))
    dead = Graph("g", (Actor("a", 1, (1,)),), (Channel("s", "a", "a", one, one),))
    text = page(dead)
    assert "waits for itself" in text and "Actors" in text and "<svg" not in text


def test_names_cannot_break_out():
    graph = pair(name=EVIL, first=EVIL)
    found = analyse(graph)
    firings = self_timed(graph, found.buffers.capacities, 1).firings
    text = dataflow_page(found, firings=firings, front=pareto(graph))
    assert "<script" not in text and "\x00" not in text and "\u202e" not in text
    parsed(gantt_svg(graph, firings, found.repetitions))


def test_the_same_graph_gives_the_same_page():
    assert page(pair()) == page(pair())
