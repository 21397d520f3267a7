"""The paper's model of switching scenarios (M 5.7 to 5.9): its example, its faults, and what is safe, on any chains."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewright import samples
from edgewright.adaptive.description import LayerAttribute, parse_share
from edgewright.adaptive.outcome import AdaptOutcome, adapt_outcome
from edgewright.adaptive.paper.layers import AttributedLayer, LayerEdge, LayerParameters, ScenarioGraph
from edgewright.adaptive.paper.protocol import (
    RequestMoment,
    barrier_delay,
    control_steps,
    free_delay,
    hazards,
    loses_last_step,
    naive_delay,
    needed_steps,
    printed_x,
    safe_x,
    with_doubled,
)
from edgewright.adaptive.paper.supergraph import (
    IO_PAR_SHARE,
    IO_SHARE,
    NO_SHARE,
    Supergraph,
    derive_supergraph,
)
from edgewright.adaptive.scenarios import load_adaptive
from edgewright.errors import InputError

ONE, TWO = (1.0, 2.0, 2.0, 1.0, 1.0), (1.0, 2.0, 4.0, 2.0, 1.0, 1.0)  # layer times of the example


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> AdaptOutcome:
    path = samples.write_application("paper_scenarios", tmp_path_factory.mktemp("paper"))
    return adapt_outcome(load_adaptive(path))


def names(graph: Supergraph) -> tuple[list[str], list[str]]:
    return [f"l{layer.number}" for layer in graph.layers], [edge.name for edge in graph.edges]


# The example of M fig. 5.3 to 5.5 and table 5.1.


def test_the_supergraph_of_figure_5_4(outcome: AdaptOutcome):
    graph = outcome.supergraph
    assert names(graph) == (
        ["l1", "l2", "l3", "l4", "l5", "l6"],
        ["e12", "e23", "e24", "e34", "e45", "e56"],
    )
    assert len(graph.control_edges) == 6
    assert [layer.captured for layer in graph.layers] == [
        {"cnn1": (0,), "cnn2": (0,)},
        {"cnn1": (1,), "cnn2": (1,)},
        {"cnn2": (2,)},
        {"cnn1": (2,), "cnn2": (3,)},
        {"cnn1": (3,), "cnn2": (4,)},
        {"cnn1": (4,), "cnn2": (5,)},
    ]
    assert [[*edge.sizes] for edge in graph.edges] == [
        ["cnn1", "cnn2"], ["cnn2"], ["cnn1"], ["cnn2"], ["cnn1", "cnn2"], ["cnn1", "cnn2"],
    ]  # fmt: skip


def test_the_control_parameters_of_table_5_1(outcome: AdaptOutcome):
    p1, p2, p3 = outcome.supergraph.parameters
    assert (p1.layer, p1.attribute.value, p1.values) == (2, "O", {"cnn1": ("e24",), "cnn2": ("e23",)})
    assert (p2.layer, p2.attribute.value) == (4, "par")
    assert (p3.layer, p3.attribute.value, p3.values) == (4, "I", {"cnn1": ("e24",), "cnn2": ("e34",)})
    weights = {name: value.names for name, value in p2.values.items()}  # type: ignore[attr-defined]
    assert {name: [one.split(".")[0] for one in value] for name, value in weights.items()} == {
        "cnn1": ["W3_1", "W3_1"],
        "cnn2": ["W4_2", "W4_2"],
    }


def test_the_sequence_phi_1(outcome: AdaptOutcome):
    steps = outcome.supergraph.sequences["cnn1"]
    assert [step.layer for step in steps] == [1, 2, 4, 5, 6]
    assert [[*step.values] for step in steps] == [[], ["p1"], ["p2", "p3"], [], []]
    assert steps[1].values == {"p1": ("e24",)}


@pytest.mark.parametrize(
    ("share", "layers", "edges", "parameters", "size"),
    [(NO_SHARE, 11, 9, 0, 38932), (IO_SHARE, 7, 7, 2, 35850), (IO_PAR_SHARE, 6, 6, 3, 31754)],
)
def test_the_larger_a_is_the_more_is_shared(outcome, share, layers, edges, parameters, size):
    graph = derive_supergraph(outcome.supergraph.scenarios, share)
    assert (len(graph.layers), len(graph.edges), len(graph.parameters), graph.size) == (
        layers,
        edges,
        parameters,
        size,
    )


def test_without_i_in_a_the_layers_before_must_be_equal_too(outcome: AdaptOutcome):
    """Then l4 is not shared, nor l5 and l6 behind it."""
    graph = derive_supergraph(outcome.supergraph.scenarios, parse_share("O,par"))
    shared = [layer.number for layer in graph.layers if len(layer.captured) == 2]
    assert (shared, len(graph.layers)) == ([1, 2], 9)


def test_other_attributes_may_differ_too(outcome: AdaptOutcome):
    """With stride and channels free, cnn1's l3 shares the first convolution of 3x3: that of cnn2's l3."""
    graph = derive_supergraph(outcome.supergraph.scenarios, parse_share("I,O,par,s"))
    assert [layer.captured for layer in graph.layers][2] == {"cnn1": (2,), "cnn2": (2,)}
    assert [one.attribute for one in graph.parameters if one.layer == 3][:2] == [
        LayerAttribute.STRIDE,
        LayerAttribute.PARAMETERS,
    ]


def test_unknown_attributes_are_refused():
    with pytest.raises(InputError, match='"weights" is no attribute of a layer; expected some of type,op,I,O'):
        parse_share("I,weights")
    assert parse_share("") == ()


def test_memory_and_weights(outcome: AdaptOutcome):
    memory = outcome.memory
    assert (memory.none, memory.io, memory.io_par) == (38932, 35850, 31754)
    peaks = [plan.peak_bytes for plan in outcome.plans.values()]
    assert memory.exact == max(peaks) <= memory.io_par // 2
    own = [one.network.weight_bytes for one in outcome.application.scenarios]
    shared = 3 * 5 * 5 * 8 + 4 * 8 + 4096 * 10 + 4 * 10  # l2 and l5: int8 weights, int32 biases
    assert outcome.weights.none == sum(own)
    assert outcome.weights.exact == outcome.weights.io == sum(own) - shared


def test_algorithms_6_and_7_as_printed(outcome: AdaptOutcome):
    there, back = outcome.transitions
    assert (there.old, there.new, back.old, back.new) == ("cnn1", "cnn2", "cnn2", "cnn1")
    assert (there.x, back.x) == ((1, 2, 3, 4, 5, 6), (1, 2, 4, 5, 6))
    assert (there.naive_delay, there.paper_delay) == (17.5, 12.5)
    assert (back.naive_delay, back.paper_delay) == (17.5, 12.5)
    assert [(one.edge, one.control_step) for one in there.hazards] == [("e12", 2)]
    assert [(one.edge, one.control_step) for one in back.hazards] == [("e12", 2), ("e45", 5), ("e56", 6)]
    assert (there.loses_last_step, back.loses_last_step) == (False, True)


def test_control_steps_end_as_figure_5_5_shows(outcome: AdaptOutcome):
    ends, now = [], 0.0
    for j, i in control_steps(outcome.transitions[0].x, len(ONE), 1):
        now += max(ONE[j - 1] if j else 0.0, TWO[i - 1] if i else 0.0)
        ends.append(now)
    assert ends == [1, 3, 5, 9, 11, 12, 13]


@pytest.mark.parametrize(
    ("old", "doubled", "x", "delays", "size"),
    [
        ("cnn1", (), (2, 3, 4, 5, 6, 7), (14.5, 13.5), 31754),
        ("cnn1", ("e12",), (1, 2, 3, 4, 5, 6), (12.5, 12.5, 11.0), 34826),
        ("cnn2", (), (2, 3, 5, 6, 7), (13.5, 13.5), 31754),
        ("cnn2", ("e45", "e56"), (2, 3, 4, 5, 6), (12.5, 12.5, 9.5), 35860),
        ("cnn2", ("e12", "e45", "e56"), (1, 2, 4, 5, 6), (12.5, 12.5, 7.0), 38932),
    ],
)
def test_safe_delays_with_single_and_double_buffers(outcome, old, doubled, x, delays, size):
    new = "cnn2" if old == "cnn1" else "cnn1"
    times = (ONE, TWO) if old == "cnn1" else (TWO, ONE)
    found = with_doubled(outcome.supergraph, old, new, doubled, times, RequestMoment.at(0.5, times[0]))
    assert found.x == x
    mine = (found.delay, found.delay_without_barrier, found.delay_without_layers)
    assert mine[: len(delays)] == delays
    assert outcome.supergraph.size + found.extra_bytes == size
    transition = outcome.transitions[old == "cnn2"]
    assert found == transition.safe if not doubled else found in transition.doubled


@pytest.mark.parametrize(
    ("old", "new", "safe", "naive"),
    [
        ("cnn1", "cnn2", [14.5, 13.5, 12.5, 11.5, 11.5], [17.5, 16.5, 14.5, 12.5, 11.5]),
        ("cnn2", "cnn1", [13.5, 12.5, 11.5, 8.5, 7.5, 7.5], [17.5, 16.5, 14.5, 10.5, 8.5, 7.5]),
    ],
)
def test_safe_delays_for_requests_in_every_step(outcome, old, new, safe, naive):
    before, after = (ONE, TWO) if old == "cnn1" else (TWO, ONE)
    x = safe_x(outcome.supergraph.sequences[old], outcome.supergraph.sequences[new])
    requests = [RequestMoment.at(step + 0.5 / time, before) for step, time in enumerate(before)]
    assert [barrier_delay(x, before, after, one) for one in requests] == pytest.approx(safe)
    assert [naive_delay(before, after, one) for one in requests] == pytest.approx(naive)


@pytest.mark.parametrize(("old", "new"), [("cnn1", "cnn2"), ("cnn2", "cnn1")])
def test_no_x_without_a_hazard_is_below_the_safe_one(outcome, old, new):
    """All X in which each new step starts later than the one before."""
    before, after = outcome.supergraph.sequences[old], outcome.supergraph.sequences[new]
    least = safe_x(before, after)
    fine = [x for x in combinations(range(1, 10), len(after)) if is_fine(before, after, x, 1)]
    assert least in fine
    assert all(a <= b for x in fine for a, b in zip(least, x, strict=True))


def test_findings_name_every_misprint(outcome: AdaptOutcome):
    said = "\n".join(outcome.findings)
    for sentence in (
        "Algorithm 5, line 6",
        "Equation 5.2",
        "cnn1 → cnn2 on e12 at φ2; cnn2 → cnn1 on e12 at φ2, e45 at φ5, e56 at φ6.",
        "cnn2 → cnn1 loses step 5. i + 1 is meant",
    ):
        assert sentence in said
    assert "line 4" not in said  # no two layers of a scenario are equal here


def test_a_request_beyond_the_frame_is_refused(outcome: AdaptOutcome):
    for position in (5.0, -0.1, float("nan"), float("inf")):
        with pytest.raises(InputError, match=r"no request comes in step .* of 'cnn1', which has 5 steps; .* below 5"):
            adapt_outcome(outcome.application, request_at=position)


# Any chains.


def chain(name: str, kinds: list[int]) -> ScenarioGraph:
    """Layers one after the other; those of one kind are equal."""
    layers = tuple(
        AttributedLayer(f"{name}{at}", dict.fromkeys(LayerAttribute, kind), LayerParameters(bytes([kind]), {}, ()))
        for at, kind in enumerate(kinds)
    )
    return ScenarioGraph(name, layers, tuple(LayerEdge(at, at + 1, 10 + at) for at in range(len(kinds) - 1)))


def is_fine(before, after, x, request_step: int) -> bool:
    """Whether no layer runs for both at once, and no data is lost."""
    pairs = [(j, i) for j, i in control_steps(x, len(before), request_step) if j and i]
    return not any(before[j - 1].layer == after[i - 1].layer for j, i in pairs) and not hazards(
        before, after, x, request_step
    )


KINDS = st.lists(st.integers(0, 4), min_size=1, max_size=7)


def test_literally_equal_layers_of_one_scenario_would_merge():
    """Three in a row read and write one edge e_nn in the same step."""
    literal = derive_supergraph([chain("a", [0, 1, 1, 1, 2])], IO_PAR_SHARE, is_literal=True)
    assert names(literal) == (["l1", "l2", "l3"], ["e12", "e22", "e23"])
    assert names(derive_supergraph([chain("a", [0, 1, 1, 1, 2])], IO_PAR_SHARE))[1] == ["e12", "e23", "e34", "e45"]


@settings(max_examples=150, deadline=None)
@given(st.lists(KINDS, min_size=1, max_size=4), st.sampled_from([NO_SHARE, IO_SHARE, IO_PAR_SHARE]))
def test_every_layer_and_every_edge_is_captured_once(kinds: list[list[int]], share):
    scenarios = [chain(f"s{n}", one) for n, one in enumerate(kinds)]
    graph = derive_supergraph(scenarios, share)
    assert [layer.number for layer in graph.layers] == [*range(1, len(graph.layers) + 1)]
    for scenario in scenarios:
        places = [at for layer in graph.layers for at in layer.captured.get(scenario.name, ())]
        assert sorted(places) == [*range(len(scenario.layers))]
        steps = graph.sequences[scenario.name]
        assert len({step.layer for step in steps}) == len(steps)
        assert all(one.writes == two.reads for one, two in pairwise(steps))
    for layer in graph.layers:
        alike = {
            scenario.layers[at].attributes[LayerAttribute.OPERATOR]
            for scenario in scenarios
            for at in layer.captured.get(scenario.name, ())
        }
        assert len(alike) == 1


@settings(max_examples=300, deadline=None)
@given(KINDS, KINDS, st.data())
def test_the_safe_x_has_no_hazard_and_is_never_slower_than_naive(old: list[int], new: list[int], data):
    graph = derive_supergraph([chain("old", old), chain("new", new)], IO_PAR_SHARE)
    before, after = graph.sequences["old"], graph.sequences["new"]
    times = st.integers(1, 9).map(float)
    mine = data.draw(st.lists(times, min_size=len(old), max_size=len(old)))
    theirs = data.draw(st.lists(times, min_size=len(new), max_size=len(new)))
    request = RequestMoment.at(data.draw(st.integers(0, 4 * len(old) - 1)) / 4, mine)
    x = safe_x(before, after)
    assert is_fine(before, after, x, request.step)
    assert all(a >= b for a, b in zip(x, printed_x(before, after), strict=True))
    naive = naive_delay(mine, theirs, request)
    without = free_delay(needed_steps(before, after), mine, theirs, request)
    assert sum(theirs) <= without <= barrier_delay(x, mine, theirs, request) <= naive


def test_the_printed_protocol_fails_on_a_share_of_chains():
    """At every arrival, for all pairs of chains of one to four layers out of five in one order."""
    chains = [[*one] for n in range(1, 5) for one in combinations(range(5), n)]
    races = lost = cases = 0
    for old in chains:
        for new in chains:
            graph = derive_supergraph([chain("old", old), chain("new", new)], IO_PAR_SHARE)
            before, after = graph.sequences["old"], graph.sequences["new"]
            x = printed_x(before, after)
            for step in range(1, len(old) + 1):
                cases += 1
                races += bool(hazards(before, after, x, step))
                lost += loses_last_step(x, len(old), step)
    assert (races, lost, cases) == (212, 616, 2250)  # 9 % and 27 %
