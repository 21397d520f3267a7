"""Path discovery and tiling exploration: the paper's running example list by list; plans that hold what they say."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from functools import cache
from itertools import pairwise
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from joblib import parallel_config

from edgewright import read_model, samples
from edgewright.errors import InputError
from edgewright.fusion.paper import trials
from edgewright.fusion.paper.blocks import Block, Partition, Terminal, matches
from edgewright.fusion.paper.explore import Exploration, explore
from edgewright.fusion.paper.paths import Path, candidates, discover, schedule_of
from edgewright.memory import plan
from edgewright.network import Builder, Network, Region, random_inputs
from edgewright.network.kernels import execute
from edgewright.network.operators import (
    AvgPool2d,
    Binary,
    BinaryKind,
    Clamp,
    Concat,
    Conv2d,
    Dense,
    Gather,
    MaxPool2d,
    Op,
    Reduce,
    ReduceKind,
    Reshape,
    Slice,
    Softmax,
)
from edgewright.network.reference import compare
from edgewright.platform import load_board
from edgewright.program import FusedLayers, FusionSchedule, Plan, Split, Tiling, even_ends, interpret
from tests.helpers.parameters import corpus_models
from tests.helpers.random_networks import networks

CHANNELS, ROWS, COLUMNS = -1, 1, 2
MANY, UP_TO_16, UP_TO_4 = range(2, 26), range(2, 17), range(2, 5)


@cache
def running_example() -> Network:
    return read_model(samples.build("stahl_running_example"))


def ranges(paths: Iterable[Path]) -> dict[tuple[str, tuple[int, ...]], list[int]]:
    """The numbers of parts of each path along each choice of axes; the paths of the paper's bullets."""
    found: dict[tuple[str, tuple[int, ...]], list[int]] = {}
    for path in paths:
        counts = {n for _, n in path.partition.cuts}
        assert len(counts) == 1  # quadratic
        found.setdefault((path.label, path.partition.axes), []).append(counts.pop())
    return found


def check_interpreted(network: Network, made: Plan) -> None:
    inputs = random_inputs(network, 3)
    expected = execute(network, inputs)
    actual = interpret(made, inputs)
    for name in network.outputs:
        if not network.tensors[name].dtype.is_float:
            np.testing.assert_array_equal(actual[name], expected[name])
    assert compare(network, actual, expected).passes


def check_explored(network: Network, found: Exploration) -> None:
    """Every chosen trial was the best of its round and lowered the peak to what the plan says."""
    peak = found.rounds[0].peak_bytes if found.rounds else found.plan.peak_bytes
    for round_ in found.rounds:
        assert round_.peak_bytes == peak
        fitting = [trial.peak_bytes for trial in round_.trials if trial.peak_bytes is not None]
        assert all((trial.peak_bytes is None) == bool(trial.refusal) for trial in round_.trials)
        if round_.chosen:
            assert round_.chosen.peak_bytes == min(fitting) < peak
            peak = round_.chosen.peak_bytes
        else:
            assert min(fitting, default=peak) >= peak
    assert found.plan.peak_bytes == peak
    check_interpreted(network, found.plan)


# The running example of S 4.3.3.


def test_running_example_proposals():
    assert ranges(discover(running_example(), "Conv3").proposed) == {
        ("[]", (CHANNELS,)): [*MANY],
        ("[]", (ROWS,)): [*UP_TO_16],
        ("[]", (COLUMNS,)): [*UP_TO_4],
        ("[]", (ROWS, COLUMNS)): [*UP_TO_4],
    }


def test_running_example_upward():
    assert ranges(discover(running_example(), "Conv3").upward) == {
        ("[FDTO]", (CHANNELS,)): [*MANY],
        ("[SPLIT,FFMT]", (ROWS,)): [*UP_TO_16],
        ("[SPLIT,FFMT]", (COLUMNS,)): [*UP_TO_4],
        ("[SPLIT,FFMT]", (ROWS, COLUMNS)): [*UP_TO_4],
        # Conv1 has no overlap along columns: nothing stops before it there.
        ("[SPLIT,FFMT,FFMT]", (ROWS,)): [*UP_TO_16],
        ("[SPLIT,FFMT,FFMT]", (ROWS, COLUMNS)): [*UP_TO_4],
        ("[SPLIT,FFMT,FFMT,FFMT]", (ROWS,)): [*UP_TO_16],
        ("[SPLIT,FFMT,FFMT,FFMT]", (COLUMNS,)): [*UP_TO_4],
        ("[SPLIT,FFMT,FFMT,FFMT]", (ROWS, COLUMNS)): [*UP_TO_4],
    }


def test_running_example_downward():
    assert ranges(discover(running_example(), "Conv3").downward) == {
        ("[FDTO,PART,PART]", (CHANNELS,)): [*MANY],
        ("[FDTO,PART,PART,FDTI]", (CHANNELS,)): [*MANY],
    }


def test_running_example_pruned():
    found = candidates(running_example(), "Conv3")
    assert ranges(found) == {
        ("[FDTO,PART]", (CHANNELS,)): [*MANY],
        ("[FDTO,PART,PART,FDTI]", (CHANNELS,)): [*MANY],
    }
    assert found[0].blocks == (Block.FDTO, Block.PART, Block.CONCAT)
    assert found[0].layers == ("Conv3", "globalaveragepool1")
    assert {path.blocks[-1] for path in found} == {Block.CONCAT, Block.FDTI}


def test_running_example_overlap_accumulates():
    """With N = 2 along columns the first part reads columns 1 to 6 of the input, the second 3 to 8."""
    network = running_example()
    split = Split(COLUMNS, even_ends(4, 2))
    fused = FusedLayers(network, FusionSchedule(("Conv1", "Conv2", "Conv3"), (split,)))
    conv1 = network.by_name["Conv1"]
    whole = Region.whole(network.tensors["Conv1"].shape)
    reads = [
        conv1.op.needs(whole.with_axis(COLUMNS, part), network.shapes(conv1))[0].bounds[COLUMNS]
        for part in Tiling(fused, split).intervals["Conv1"]
    ]
    assert reads == [(0, 6), (2, 8)]


def test_running_example_exploration():
    """[FDTO,PART] with N = 3, 24576 to 16384 bytes; then nothing is left to tile (S figs. 4.9, 4.12, 4.13)."""
    network = running_example()
    found = explore(network)
    check_explored(network, found)
    first, *others = found.rounds
    assert (first.buffer, first.peak_bytes) == ("Conv3", 24576)
    assert first.chosen
    assert str(first.chosen.path) == "[FDTO,PART] PD_D along channels, N=3"
    assert first.chosen.schedule.splits == (Split(CHANNELS, (22, 43, 64)),)
    peaks = {(trial.path.label, trial.path.partition.parts): trial.peak_bytes for trial in first.trials}
    # More parts change nothing, since the buffer is no longer in the peak.
    assert [peaks["[FDTO,PART]", n] for n in (2, 3, 4)] == [16640, 16384, 16384]
    assert ("[FDTO,PART]", 5) not in peaks
    assert {round_.buffer for round_ in others} == {"Conv1", "Conv2"}
    assert all(not round_.trials and round_.chosen is None for round_ in others)
    assert found.plan.peak_bytes == 16384
    assert found.plan.macs == found.plan.macs_plain
    assert explore(network, methods={"ffmt"}).plan.peak_bytes == 24576
    assert explore(network, methods={"fdt"}).schedules == found.schedules


@pytest.mark.parametrize("parts", [5, 9, 25])
def test_running_example_peak_stays(parts):
    network = running_example()
    for path in candidates(network, "Conv3"):
        if path.partition.parts == parts:
            assert plan(network, plain=True, explain=False, schedules=[schedule_of(network, path)]).peak_bytes == 16384


# Blocks.


def test_terminals_of_blocks():
    """S fig. 4.11."""
    i, o, depth, maps = Terminal.I, Terminal.O, Terminal.PD_D, Terminal.PD_FM
    assert {block.name: set(block.joins) for block in Block} == {
        "SPLIT": {(i, depth), (i, maps)},
        "FDTO": {(i, depth)},
        "PART": {(depth, depth), (maps, maps)},
        "CONCAT": {(depth, o), (maps, o)},
        "FDTI": {(depth, o)},
        "FFMT": {(maps, maps)},
    }


def _layer(op: Op, shape: tuple[int, ...], *weights: tuple[int, ...]) -> Network:
    b = Builder("one")
    x = b.input("x", shape)
    values = [b.constant(f"w{at}", np.zeros(w, np.float32)) for at, w in enumerate(weights)]
    return b.build([b.layer(op, [x, *values], "layer")])


IMAGE = (1, 8, 8, 4)
CASES = {
    "pointwise": (_layer(Conv2d(), IMAGE, (6, 1, 1, 4)), {"FDTO", "FDTI"}, {"FFMT"}),
    "depthwise": (_layer(Conv2d(pads=(1, 1, 1, 1), groups=4), IMAGE, (4, 3, 3, 1)), {"PART"}, {"FFMT"}),
    "grouped": (_layer(Conv2d(groups=2), IMAGE, (6, 1, 1, 2)), {"PART"}, {"FFMT"}),
    "max pool": (_layer(MaxPool2d((2, 2), (2, 2)), IMAGE), {"PART"}, {"FFMT"}),
    "one pixel": (_layer(AvgPool2d((8, 8), (8, 8)), IMAGE), {"PART"}, set()),
    "mean": (_layer(Reduce((1, 2), keep=False, kind=ReduceKind.MEAN), IMAGE), {"PART"}, set()),
    "relu": (_layer(Clamp(0.0), IMAGE), {"PART"}, {"PART"}),
    "dense": (_layer(Dense(), (1, 16), (4, 16)), {"FDTO", "FDTI"}, set()),
    "flatten of a pixel": (_layer(Reshape((1, 16)), (1, 1, 1, 16)), {"PART"}, set()),
    "flatten of an image": (_layer(Reshape((1, 256)), IMAGE), set(), set()),
    "softmax": (_layer(Softmax(), IMAGE), set(), set()),
    "slice": (_layer(Slice((0, 0, 0, 0), (1, 4, 4, 4), (1, 1, 1, 1)), IMAGE), set(), set()),
}


@pytest.mark.parametrize("case", CASES)
def test_blocks_of_layers(case):
    network, depth, maps = CASES[case]
    (layer,) = network.layers
    for cuts, expected in ({CHANNELS: 2}, depth), ({ROWS: 2}, maps), ({ROWS: 2, COLUMNS: 2}, maps):
        found = matches(network, layer, "x", Partition(tuple(cuts.items())))
        assert {block.name for block in found} == expected


def test_no_more_parts_than_there_are():
    network, *_ = CASES["grouped"]
    (layer,) = network.layers
    assert matches(network, layer, "x", Partition(((CHANNELS, 2),))) == (Block.PART,)
    assert matches(network, layer, "x", Partition(((CHANNELS, 3),))) == ()  # two groups
    assert matches(network, layer, "x", Partition(((ROWS, 8),))) == (Block.FFMT,)
    assert matches(network, layer, "x", Partition(((ROWS, 9),))) == ()


# Walks through other networks.


def _weights(b: Builder, *shape: int) -> str:
    return b.constant(
        f"w{len(b.constants)}", np.random.default_rng(len(b.constants)).standard_normal(shape, np.float32)
    )


def _residual() -> Network:
    """A large expansion inside a residual block, and a head."""
    b = Builder("residual")
    x = b.input("x", (1, 8, 8, 4))
    stem = b.layer(Conv2d(), [x, _weights(b, 4, 1, 1, 4)], "stem")
    wide = b.layer(Conv2d(), [stem, _weights(b, 32, 1, 1, 4)], "wide")
    deep = b.layer(Conv2d(pads=(1, 1, 1, 1), groups=32), [wide, _weights(b, 32, 3, 3, 1)], "deep")
    thin = b.layer(Conv2d(), [deep, _weights(b, 4, 1, 1, 32)], "thin")
    return b.build([b.layer(Binary(BinaryKind.ADD), [thin, stem], "add")])


def test_a_path_through_a_residual_block():
    """Branches end a path: the skip connection is read as it is, and what it leaves from is not split."""
    network = _residual()
    labels = {path.label for path in candidates(network, "wide")}
    assert labels == {"[FDTO,PART,FDTI]", "[SPLIT,FFMT,FFMT,FFMT]"}
    assert candidates(network, "stem") == []
    found = explore(network)
    check_explored(network, found)
    assert found.plan.peak_bytes < explore(network, methods=()).plan.peak_bytes


def test_paths_stop_at_what_cannot_be_split():
    b = Builder("stops")
    x = b.input("x", IMAGE)
    wide = b.layer(Conv2d(), [x, _weights(b, 16, 1, 1, 4)], "wide")
    thin = b.layer(Conv2d(), [wide, _weights(b, 2, 1, 1, 16)], "thin")
    both = b.layer(Concat(3), [thin, x], "both")
    network = b.build([b.layer(Softmax(), [both], "end")])
    assert {path.layers for path in candidates(network, "wide")} == {("wide", "thin")}
    assert candidates(network, "thin") == candidates(network, "both") == []  # concat; softmax
    assert candidates(network, "x") == candidates(network, "end") == []  # they belong to the application


def test_a_number_is_not_split():
    """An image less its own mean, which has no channels."""
    b = Builder("centred")
    x = b.layer(Conv2d(), [b.input("x", IMAGE), _weights(b, 8, 1, 1, 4)], "wide")
    mean = b.layer(Reduce((0, 1, 2, 3), keep=False, kind=ReduceKind.MEAN), [x], "mean")
    less = b.layer(Binary(BinaryKind.SUB), [x, mean], "less")
    thin = b.layer(Conv2d(), [less, _weights(b, 2, 1, 1, 8)], "thin")
    network = b.build([thin, _weights(b, 3)])  # and an output that depends on nothing
    assert candidates(network, "mean") == []
    check_explored(network, explore(network))


def test_nothing_is_split_for_an_end_as_large_as_the_buffer():
    b = Builder("same")
    x = b.input("x", IMAGE)
    first = b.layer(Conv2d(), [x, _weights(b, 8, 1, 1, 4)], "first")
    network = b.build([b.layer(Conv2d(), [first, _weights(b, 8, 1, 1, 8)], "second")])
    found = discover(network, "first")
    assert {path.label for path in found.downward} == {"[FDTO,FDTI]", "[SPLIT,FFMT,FFMT]"}
    assert found.pruned == ()


def test_groups_stay_whole():
    """A depthwise layer with several outputs for each channel is cut so that no channel is computed twice."""
    b = Builder("multiple")
    x = b.input("x", IMAGE)
    first = b.layer(Conv2d(), [x, _weights(b, 5, 1, 1, 4)], "first")
    more = b.layer(Conv2d(groups=5), [first, _weights(b, 15, 3, 3, 1)], "more")
    network = b.build([b.layer(Reduce((1, 2), keep=False, kind=ReduceKind.MEAN), [more], "mean")])
    schedules = {path.partition.parts: schedule_of(network, path) for path in candidates(network, "more")}
    assert {parts: schedule.splits[0].ends for parts, schedule in schedules.items()} == {
        2: (9, 15),
        3: (6, 12, 15),
        4: (6, 9, 12, 15),
        5: (3, 6, 9, 12, 15),
    }
    for schedule in schedules.values():
        made = plan(network, plain=True, explain=False, schedules=[schedule])
        assert made.macs == made.macs_plain
        check_interpreted(network, made)


def test_embedding_and_mean():
    """A lookup fans out, the mean over its words follows part by part (S 4.2)."""
    network = read_model(samples.build("text_classifier"))
    (words,) = [layer for layer in network.layers if isinstance(layer.op, Gather)]
    assert {path.label for path in candidates(network, words.output)} == {"[FDTO,PART]"}
    found = explore(network)
    check_explored(network, found)
    assert found.plan.peak_bytes <= found.rounds[0].peak_bytes / 4
    assert found.plan.macs == found.plan.macs_plain
    assert explore(network, methods=["ffmt"]).schedules == ()


def test_unknown_method():
    with pytest.raises(InputError, match="no tiling method 'fft': choose from ffmt, fdt"):
        explore(running_example(), methods=["fft"])


# Work: FDT adds none, FFMT what it computes again.


def counted(network: Network, path: Path, schedule: FusionSchedule) -> dict[str, np.ndarray]:
    """How often each value of each layer's output is computed: every part of the last layer, traced back."""
    names = set(path.layers)
    counts = {name: np.zeros(network.tensors[network.by_name[name].output].shape, int) for name in names}
    last = network.by_name[path.layers[-1]]
    for part in _parts(network, last, schedule):
        wanted = {last.name: part}
        for mapped in reversed(path.mapped):
            layer = network.by_name[mapped.layer]
            counts[layer.name][wanted[layer.name].slices] += 1
            producer = network.producers.get(mapped.source)
            if producer and producer.name in names:
                at = layer.inputs.index(mapped.source)
                needed = layer.op.needs(wanted[layer.name], network.shapes(layer))[at]
                whole = Region.whole(counts[producer.name].shape)  # along axes that are not cut
                for axis in schedule.axes:
                    whole = whole.with_axis(axis, needed.bounds[axis])
                wanted[producer.name] = whole
    return counts


def _parts(network: Network, last, schedule: FusionSchedule) -> list[Region]:
    parts = [Region.whole(network.tensors[last.output].shape)]
    for split in schedule.splits:
        cuts = [*pairwise((0, *split.ends))]
        parts = [part.with_axis(split.axis, cut) for part in parts for cut in cuts]
    return parts


def recomputed(network: Network, path: Path, schedule: FusionSchedule) -> int:
    """MACs of values computed more than once, less those of values that nobody asks for."""
    total = 0
    for name, counts in counted(network, path, schedule).items():
        layer = network.by_name[name]
        whole = Region.whole(counts.shape)
        for y, x in np.argwhere(counts[0, :, :, 0] != 1).tolist():
            pixel = whole.with_axis(ROWS, (y, y + 1)).with_axis(COLUMNS, (x, x + 1))
            total += (counts[0, y, x, 0] - 1) * layer.op.macs(pixel, network.shapes(layer))
    return int(total)


def carried_out(network: Network, path: Path, schedule: FusionSchedule) -> Plan | None:
    """The plan; None where a halo reaches everywhere, which alone may be refused."""
    try:
        return plan(network, plain=True, explain=False, schedules=[schedule])
    except InputError as error:
        if path.partition.terminal is not Terminal.PD_FM or "reach through" not in str(error):
            raise
        return None


@settings(max_examples=80)
@given(data=st.data(), network=networks())
def test_any_path_of_any_network(data, network):
    """Paths, pruned or not, can be carried out, give what the reference gives, and cost what is computed again."""
    inner = [layer.output for layer in network.layers if layer.output not in network.outputs]
    found = [discover(network, name) for name in inner]
    paths = [path for one in found for path in (*one.downward, *one.pruned)]
    assume(paths)
    path = data.draw(st.sampled_from(paths))
    schedule = schedule_of(network, path)
    made = carried_out(network, path, schedule)
    assume(made is not None)
    check_interpreted(network, made)
    is_fdt = path.partition.terminal is Terminal.PD_D
    assert made.macs - made.macs_plain == (0 if is_fdt else recomputed(network, path, schedule))


@settings(max_examples=30)
@given(data=st.data(), parts=st.integers(2, 5), axes=st.sampled_from([(ROWS,), (COLUMNS,), (ROWS, COLUMNS)]))
def test_halos_cost_what_is_computed_again(data, parts, axes):
    """Chains of windows, so that halos add up from layer to layer."""
    network = data.draw(chains())
    partition = Partition(tuple((axis, parts) for axis in axes))
    for found in discover(network, "layer0").downward:
        if found.partition == partition:
            schedule = schedule_of(network, found)
            made = carried_out(network, found, schedule)
            if made is not None:
                assert made.macs - made.macs_plain == recomputed(network, found, schedule)
                check_interpreted(network, made)


@st.composite
def chains(draw: st.DrawFn) -> Network:
    b = Builder("chain")
    x = b.input("x", (1, draw(st.integers(12, 20)), draw(st.integers(12, 20)), 2))
    for at in range(draw(st.integers(2, 4))):
        kernel, stride = draw(st.integers(1, 5)), draw(st.integers(1, 2))
        pads = tuple(draw(st.integers(0, kernel // 2)) for _ in range(4))
        depth = b.shape(x)[3]
        if draw(st.booleans()):
            op, weights = Conv2d((stride, stride), pads=pads), [_weights(b, 3, kernel, kernel, depth)]
        else:
            op, weights = MaxPool2d((kernel, kernel), (stride, stride), pads=pads), []
        assume(min(op.output_shape([b.shape(x), *map(b.shape, weights)])[1:3]) > 4)
        x = b.layer(op, [x, *weights], f"layer{at}")
    return b.build([x])


@settings(max_examples=25)
@given(network=networks(), plain=st.booleans())
def test_explorations_of_any_network(network, plain):
    found = explore(network, plain=plain)
    check_explored(network, found)
    assert found.plan.peak_bytes <= plan(network, plain=plain, explain=False).peak_bytes
    if all(path.partition.terminal is Terminal.PD_D for path in found.paths):
        assert found.plan.macs == found.plan.macs_plain


# Real networks.


@pytest.mark.parametrize("name", ["ds_cnn_int8", "resnet8_int8"])
@pytest.mark.parametrize("plain", [True, False])
def test_explorations_of_samples(name, plain):
    network = read_model(samples.build(name))
    check_explored(network, explore(network, plain=plain))


@pytest.mark.parametrize("file", corpus_models("mlperf_kws_ref_int8.tflite", "mlperf_ic_resnet8_int8.tflite"))
def test_explorations_of_models(file):
    network = read_model(file)
    check_explored(network, explore(network))


@pytest.mark.parametrize("file", corpus_models("tfls_movie_review_avg_word_vec.tflite"))
def test_movie_review_takes_a_quarter(file):
    network = read_model(file)
    found = explore(network)
    check_explored(network, found)
    assert found.rounds[0].peak_bytes == 17408
    assert found.plan.peak_bytes <= 17408 // 4
    assert found.plan.macs == found.plan.macs_plain


def test_exploring_for_a_board_and_with_pulled_rows():
    network = read_model(samples.build("mobilenet_v1_int8"))
    held = explore(network, board=load_board("nucleo-f446re"), methods=["fdt"])
    pulled = explore(network, pull_rows=True, methods=["fdt"])
    assert held.plan.board == "nucleo-f446re"
    check_interpreted(network, held.plan)
    assert pulled.plan.peak_bytes <= held.plan.peak_bytes


def test_many_candidates_are_spread_over_processes():
    network = running_example()
    alone = explore(network)
    with patch.object(trials, "MANY", 0), parallel_config("threading"):
        together = explore(network)
    assert together.rounds == alone.rounds
    evaluator = trials.TrialEvaluator.of(network, plain=True, pull_rows=False, alignment=4)
    elsewhere = pickle.loads(pickle.dumps(evaluator.without_weights()))
    lane = [path for path in candidates(network, "Conv3") if path.label == "[FDTO,PART]"]
    assert elsewhere.tried_along((), pickle.loads(pickle.dumps(lane))) == evaluator.tried_along((), lane)
