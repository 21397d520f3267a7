"""CNNs as SDF and CSDF graphs: the figures of M 4 and B, any operator, and schedules that real row programs survive."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewright.dataflow import Graph
from edgewright.dataflow.buffers.minimum import minimum_buffers
from edgewright.dataflow.checks.consistency import repetitions
from edgewright.dataflow.checks.liveness import blocked
from edgewright.dataflow.cnn.conversion import cnn_to_csdf, cnn_to_sdf
from edgewright.dataflow.cnn.counts import phases
from edgewright.dataflow.cnn.rows import parts, use
from edgewright.dataflow.graph import fold
from edgewright.errors import ModelError, Unsupported
from edgewright.network import Builder, DType, Network, random_inputs
from edgewright.network.kernels import execute
from edgewright.network.operators import (
    Binary,
    BinaryKind,
    Clamp,
    Concat,
    Conv2d,
    Dense,
    MaxPool2d,
    Reduce,
    Resize,
    Softmax,
    Transpose,
)
from edgewright.network.read import read
from tests.dataflow.rolling_rows import run_rows, schedule
from tests.helpers.parameters import corpus_models
from tests.helpers.random_networks import networks


def weights(b: Builder, *shape: int) -> str:
    values = np.random.default_rng(len(b.constants)).standard_normal(shape).astype(np.float32)
    return b.constant("w", values / np.sqrt(np.prod(shape[1:])).astype(np.float32))


def conv(b: Builder, x: str, name: str, out: int, k: int, stride: int = 1, pad: int = 0, dilation: int = 1) -> str:
    op = Conv2d((stride, stride), (dilation, dilation), (pad,) * 4)
    return b.layer(op, [x, weights(b, out, k, k, b.shape(x)[3])], name)


def worked_example() -> Network:
    """The CNN of M fig. 4.1: one byte for each element, a crop of one pixel on all sides before l3."""
    b = Builder("minakova")
    x = b.input("l1", (1, 32, 32, 1), DType.INT8)
    for name, out, k, stride, pad in (("l2", 4, 17, 1, 0), ("l3", 3, 5, 3, -1), ("l4", 2, 4, 1, 0)):
        x = conv(b, x, name, out, k, stride, pad)
    return b.build([x])


def rates(graph: Graph, channel: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    found = graph.channel[channel]
    return found.production.cycle, found.consumption.cycle


EXAMPLES = {  # M table 4.1, B table II
    "Ex1": ((1, 1, 1, 1, 1), "window", (1024, 1024, 48, 2)),
    "Ex2": ((2, 2, 1, 1, 1), "resend", (768, 1024, 48, 2)),
    "Ex3": ((32, 16, 1, 1, 1), "window", (544, 1024, 48, 2)),
    "Ex4": ((32, 16, 4, 1, 1), "window", (544, 384, 48, 2)),
    "Ex4 as printed": ((32, 16, 4, 1, 1), "self-loop", (544, 384, 48, 2)),
}
ACTORS = ("l1", "l2", "l3", "l4", "l4.out")
EDGES = ("l1->l2", "l2->l3", "l3->l4", "l4->l4.out")


def test_phases_of_the_worked_example():
    assert phases(worked_example()) == dict(zip(ACTORS, (32, 16, 4, 1, 1), strict=True))


@pytest.mark.parametrize("tokens", ["rows", "elements"])
@pytest.mark.parametrize("example", EXAMPLES)
def test_buffer_totals_of_table_4_1(example, tokens):
    counts, reuse, sizes = EXAMPLES[example]
    given_phases = dict(zip(ACTORS, counts, strict=True))
    graph = cnn_to_csdf(worked_example(), given_phases, reuse=reuse, tokens=tokens)
    found = minimum_buffers(graph, "bytes")
    bytes_of = {name: found.capacities[name] * graph.channel[name].token_bytes for name in EDGES}
    assert tuple(bytes_of.values()) == sizes
    assert sum(found.capacities[one.name] * one.token_bytes for one in graph.channels) == sum(sizes)
    assert found.is_optimal


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_printed_sizes_suffice_and_none_can_shrink(example):
    """The same without the solver: a chain with these capacities runs, and stops with a row less anywhere."""
    counts, reuse, sizes = EXAMPLES[example]
    graph = cnn_to_csdf(worked_example(), dict(zip(ACTORS, counts, strict=True)), reuse=reuse)
    capacities = {name: size // graph.channel[name].token_bytes for name, size in zip(EDGES, sizes, strict=True)}
    firings = {actor.name: actor.phases for actor in graph.actors}
    schedule(graph, firings, min, capacities)
    for name in EDGES:
        with pytest.raises(AssertionError, match="stuck"):
            schedule(graph, firings, min, {**capacities, name: capacities[name] - 1})


def test_rates_printed_for_figure_4_5():
    graph = cnn_to_csdf(worked_example(), reuse="self-loop", tokens="elements", serial=False)
    assert rates(graph, "l2->l3") == ((64,) * 16, (384, 192, 192, 256))
    assert rates(graph, "l2->l3.reuse") == ((128, 128, 128, 0), (0, 128, 128, 128))
    assert rates(graph, "l3->l4")[0] == (12,) * 4
    assert {channel.name for channel in graph.channels if channel.is_self_loop} == {"l1->l2.reuse", "l2->l3.reuse"}


@given(st.integers(1, 5), st.integers(1, 4), st.integers(-2, 2), st.integers(-2, 2), st.integers(9, 20))
def test_rates_agree_with_algorithm_4_where_it_is_right(k, stride, top, bottom, rows):
    """Right: windows that fill the input exactly, at most the stride's and the overlap's worth of padding."""
    if (rows + top + bottom - k) % stride or stride > k or max(top, bottom) > min(stride, k - stride):
        return
    b = Builder("one")
    x = b.input("x", (1, rows, 7, 2))
    net = b.build([b.layer(Conv2d((stride, 1), pads=(top, 0, bottom, 0)), [x, weights(b, 3, k, 3, 2)], "conv")])
    count = phases(net)["conv"]
    if count < 2:
        return
    graph = cnn_to_csdf(net, reuse="self-loop", tokens="elements")
    line, overlap = 7 * 2, k - stride
    used = [k - top, *[stride] * (count - 2), stride - bottom]
    assert rates(graph, "x->conv") == ((line,) * rows, tuple(line * n for n in used))
    if overlap:
        kept = (line * overlap,) * (count - 1)
        assert rates(graph, "x->conv.reuse") == ((*kept, 0), (0, *kept))


def test_more_padding_than_the_stride_does_not_go_negative():
    """As printed, a 5x5 window with two rows of padding would consume -1 row in its last phase."""
    b = Builder("same")
    net = b.build([conv(b, b.input("x", (1, 8, 8, 1)), "conv", 1, 5, pad=2)])
    graph = cnn_to_csdf(net, reuse="self-loop")
    assert rates(graph, "x->conv")[1] == (3, 1, 1, 1, 1, 1, 0, 0)
    assert rates(graph, "x->conv.reuse")[0] == (3, 4, 4, 4, 4, 4, 3, 0)


def test_window_frees_rows_after_their_last_use():
    b = Builder("same")
    net = b.build([conv(b, b.input("x", (1, 6, 6, 1)), "conv", 1, 3, pad=1)])
    graph = cnn_to_csdf(net)
    assert rates(graph, "x->conv")[1] == (0, 1, 1, 1, 1, 2)
    assert rates(graph, "x->conv.needed")[1] == (2, 1, 1, 1, 1, 0)
    assert graph.channel["x->conv.needed"].token_bytes == 0
    assert minimum_buffers(graph, "bytes").capacities["x->conv"] == 3
    assert minimum_buffers(cnn_to_csdf(net, reuse="self-loop"), "bytes").capacities["x->conv"] == 2


def test_rule_b_is_what_folding_leaves():
    b = Builder("mixed")
    x = b.input("x", (1, 16, 16, 3))
    x = conv(b, x, "padded", 4, 3, pad=1)
    x = b.layer(Clamp(0.0), [x], "relu")
    x = b.layer(MaxPool2d((2, 2), (2, 2)), [x], "pool")
    x = conv(b, x, "point", 4, 1)
    y = conv(b, x, "same", 4, 3, pad=1)
    x = b.layer(Binary(BinaryKind.ADD), [x, y], "add")
    x = b.layer(MaxPool2d((3, 3), (3, 3)), [x], "uneven")
    net = b.build([conv(b, x, "whole", 5, 2)])
    expected = {
        "x": 1,
        "padded": 16,
        "relu": 1,
        "pool": 1,
        "point": 1,
        "same": 8,
        "add": 1,
        "uneven": 2,
        "whole": 1,
    }
    folded = cnn_to_csdf(net, fold=True)
    assert {actor.name: actor.phases for actor in folded.actors} == {**expected, "whole.out": 1}
    assert repetitions(folded) == repetitions(cnn_to_csdf(net))


@given(networks(kinds=("float",)))
def test_folding_changes_no_firing(net):
    graph = cnn_to_csdf(net)
    small = fold(graph)
    for channel in graph.channels:
        other = small.channel[channel.name]
        for n in range(20):
            assert channel.production.at(n) == other.production.at(n)
            assert channel.consumption.at(n) == other.consumption.at(n)
    for actor in graph.actors:
        assert [actor.time(n) for n in range(20)] == [small.by_name[actor.name].time(n) for n in range(20)]


def branches() -> Network:
    """A residual block, a concat, a dilated window, a resize, a gate and a classifier."""
    b = Builder("branches")
    x = b.input("x", (1, 12, 10, 3))
    x = conv(b, x, "stem", 4, 3, pad=1)
    y = conv(b, conv(b, x, "a", 4, 3, pad=2, dilation=2), "b", 4, 3, pad=1)
    x = b.layer(Binary(BinaryKind.ADD), [x, y], "add")
    gate = b.layer(Reduce((1, 2)), [x], "mean")
    x = b.layer(Binary(BinaryKind.MUL), [x, gate], "gate")
    down = b.layer(MaxPool2d((3, 3), (2, 2), pads=(1, 1, 1, 1)), [x], "down")
    up = b.layer(Resize((12, 10)), [down], "up")
    x = b.layer(Concat(3), [x, up], "join")
    head = b.layer(Reduce((1, 2), keep=False), [x], "head")
    head = b.layer(Dense(), [head, weights(b, 5, 8)], "dense")
    return b.build([b.layer(Softmax(), [head], "softmax"), x])


def test_notes_and_names_tell_layers_and_skips():
    graph = cnn_to_csdf(branches())
    assert graph.by_name["stem"].note == "Conv2d 3×3 → 4"
    assert graph.channel["stem->add"].note == "skip connection stem -> add"
    assert graph.channel["stem->a"].note == "branch stem -> a"
    assert graph.channel["a->b"].note == ""
    assert graph.by_name["x"].note == "input x: float32[1x12x10x3]"


def test_phases_of_layers_that_need_everything():
    found = phases(branches())
    assert found["mean"] == found["head"] == found["dense"] == 1
    assert found["x"] == found["gate"] == found["up"] == 12
    b = Builder("turned")
    net = b.build([b.layer(Transpose((0, 2, 1, 3)), [b.input("x", (1, 4, 6, 2))], "turn")])
    assert phases(net)["turn"] == 1


def test_a_gate_keeps_its_vector_until_the_last_row():
    graph = cnn_to_csdf(branches())
    assert rates(graph, "mean->gate") == ((1,), (*(0,) * 11, 1))
    assert rates(graph, "mean->gate.needed") == ((1,), (1, *(0,) * 11))


def assert_rows_come_out(net: Network, graph: Graph, pick, capacities=None) -> None:
    """One image computed by phases in rolling buffers equals the image computed layer by layer."""
    firings = {actor.name: actor.phases for actor in graph.actors}
    order, most = schedule(graph, firings, pick, capacities)
    inputs = random_inputs(net, 1)
    found = run_rows(net, graph, order, capacities or most, inputs)
    for name, value in execute(net, inputs).items():
        np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("last", [True, False])
def test_real_rows_in_the_least_buffers(last):
    """The capacities of the least sum, the schedule eager or lazy: neither may hurt a row."""
    net = branches()
    graph = cnn_to_csdf(net, {"join.out": 12})
    order = {actor.name: i for i, actor in enumerate(graph.actors)}
    capacities = minimum_buffers(graph, "bytes").capacities
    assert_rows_come_out(net, graph, lambda ready: sorted(ready, key=order.__getitem__)[-last], capacities)


@given(networks(), st.data())
def test_any_schedule_of_a_random_network_computes_its_rows(net, data):
    """Any order, any operator, any numbers of phases; each buffer as large as that order needs."""
    known = phases(net)
    some = data.draw(st.dictionaries(st.sampled_from(sorted(known)), st.integers(1, 4), max_size=3))
    counts = {name: min(count, known[name]) for name, count in some.items()}
    graph = cnn_to_csdf(net, counts)
    rng = data.draw(st.randoms(use_true_random=False))
    assert_rows_come_out(net, graph, rng.choice)


@given(networks(kinds=("float",)), st.sampled_from(["window", "self-loop", "resend"]), st.booleans())
def test_graphs_are_consistent_live_and_one_iteration_is_one_image(net, reuse, serial):
    graph = cnn_to_csdf(net, reuse=reuse, serial=serial)
    assert repetitions(graph) == {actor.name: actor.phases for actor in graph.actors}
    assert blocked(graph) is None


@given(networks(kinds=("float",)))
def test_sdf_moves_whole_tensors(net):
    graph = cnn_to_sdf(net)
    assert graph.is_sdf
    assert set(repetitions(graph).values()) == {1}
    for channel in graph.channels:
        assert channel.production == channel.consumption
    for layer in net.layers:
        for channel in graph.outputs[layer.name]:
            assert channel.production.cycle == (net.tensors[layer.output].size,)


def test_times_are_work_or_given():
    net = worked_example()
    graph = cnn_to_csdf(net)
    assert graph.by_name["l2"].times == (16 * 4 * 17 * 17,) * 16
    assert graph.by_name["l1"].times == (32,) * 32
    slow = cnn_to_csdf(net, times={"l2": 8, "l3": 0.5, "l4": 3})
    assert sum(slow.by_name["l2"].times) == 8
    assert slow.by_name["l3"].times == (slow.by_name["l3"].times[0],) * 4
    assert sum(slow.by_name["l3"].times) * 2 == 1
    assert slow.by_name["l1"].times == (0,) * 32
    with pytest.raises(ModelError, match="no time is given for layer 'l3'"):
        cnn_to_csdf(net, times={"l2": 8})
    with pytest.raises(ModelError, match="cannot take a time of -1"):
        cnn_to_csdf(net, times={"l2": 8, "l3": -1, "l4": 1})


def test_serial_loops_are_optional_and_weigh_nothing():
    with_loops, without = cnn_to_csdf(worked_example()), cnn_to_csdf(worked_example(), serial=False)
    assert {name for name in with_loops.channel if name not in without.channel} == {f"{a}.serial" for a in ACTORS}
    assert with_loops.channel["l2.serial"].token_bytes == 0


@pytest.mark.parametrize(
    "file",
    corpus_models("densenet121.onnx", "light_inception_v1.onnx", "efficientnet_b0.onnx", "mlperf_*int8.tflite"),
)
def test_real_networks(file):
    net = read(file)
    graph = cnn_to_csdf(net)
    assert repetitions(graph) == phases(net)
    assert blocked(graph) is None
    assert sum(sum(actor.times) for actor in graph.actors if actor.name in net.by_name) >= net.total_macs


def test_bad_requests():
    net = worked_example()
    with pytest.raises(ModelError, match="'l3' cannot run in 5 phases: its output has 4 rows"):
        cnn_to_csdf(net, {"l3": 5})
    with pytest.raises(ModelError, match="no such layer"):
        cnn_to_csdf(net, {"l9": 1})
    b = Builder("batch")
    two = b.build([conv(b, b.input("x", (2, 4, 4, 1)), "conv", 1, 3)])
    with pytest.raises(Unsupported, match="one image at a time"):
        cnn_to_csdf(two)
    assert cnn_to_sdf(two).channel["x->conv"].production.cycle == (32,)


def test_an_input_and_a_layer_of_the_same_name():
    b = Builder("names")
    net = b.build([b.layer(Clamp(0.0), [b.input("x", (1, 4, 4, 1))], "x", output="y")])
    assert [actor.name for actor in cnn_to_csdf(net).actors] == ["x.in", "x", "y.out"]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=6))
def test_use_never_frees_a_row_that_is_still_read(read):
    found = use(read, 9)
    for i, (start, stop) in enumerate(read):
        if start < stop:
            assert found.needed[i] >= stop
            assert all(done <= start for done in found.done[:i])
    assert found.needed[-1] == found.done[-1] == 9
    assert sorted(found.done) == list(found.done)
    assert sorted(found.needed) == list(found.needed)


@given(st.integers(1, 50), st.data())
def test_parts_cover_all_rows(rows, data):
    found = parts(rows, data.draw(st.integers(1, rows)))
    assert [row for start, stop in found for row in range(start, stop)] == list(range(rows))
    assert max(b - a for a, b in found) - min(b - a for a, b in found) <= 1
