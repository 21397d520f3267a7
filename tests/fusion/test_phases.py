"""Layers by rows: programs with streams, judged by the interpreter and by emitted C."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import pairwise
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewright import plan, read_model, samples
from edgewright.dataflow import cnn_to_csdf, minimum_buffers
from edgewright.emit import TARGETS, emit
from edgewright.errors import InputError
from edgewright.memory import Techniques, streamed
from edgewright.memory.footprint import Footprint, footprint
from edgewright.memory.row_windows import pullable
from edgewright.memory.views import Views
from edgewright.network import Builder, Network
from edgewright.network.operators import (
    Binary,
    BinaryKind,
    Conv2d,
    Reduce,
    ReduceKind,
    Resize,
    ResizeMode,
    Unary,
    UnaryKind,
)
from edgewright.program import FusionSchedule, Plan, Split, Stage, plan_from_dict, plan_to_dict, rows_needed
from edgewright.program.legal import can_sum
from edgewright.program.steps import MOST_ROWS
from tests.helpers.emitting import check_emitted
from tests.helpers.emitting_batch import check_together
from tests.helpers.interpreting import check_interpreted
from tests.helpers.on_board import check_on_board
from tests.helpers.parameters import corpus_models, each_once
from tests.helpers.random_networks import networks

MANY = 400 if os.environ.get("EDGEWRIGHT_THOROUGH") else 8
FAMILIES = ("host", "cortex-m4", "rv32imc", "cortex-m55")


def streams(made: Plan) -> list[Stage]:
    return [stage for stage in made.program.stages if stage.schedule.streamed]


def pulling(made: Plan) -> set[str]:
    """The layers that read an input which comes row by row."""
    pulled = {name for name in made.network.inputs if made.views[name].window}
    return {layer.name for layer in made.network.layers if pulled & set(layer.inputs)}


def made_by_rows(network: Network, techniques: Techniques, phases: bool | list[str], pull: bool) -> Plan:
    pull = pull and bool(pullable(network))
    return plan(network, techniques=techniques, explain=False, pull_rows=pull, phases=phases)


def by_rows(network: Network) -> list[str]:
    """The layers that can be named for rows."""
    found = []
    for layer in network.layers:
        try:
            plan(network, explain=False, phases=[layer.name])
        except InputError:
            continue
        found.append(layer.name)
    return found


TECHNIQUES = st.builds(Techniques, *[st.booleans()] * 4)


@given(network=networks(), techniques=TECHNIQUES, pull=st.booleans())
def test_random_networks_by_rows_where_it_saves(network, techniques, pull):
    made = made_by_rows(network, techniques, True, pull)
    check_interpreted(network, made)
    assert made.macs <= made.macs_plain
    whole = made_by_rows(network, techniques, False, pull)
    assert made.bound_bytes <= made.peak_bytes <= whole.peak_bytes


@given(data=st.data(), network=networks(), techniques=TECHNIQUES, pull=st.booleans())
def test_any_layers_by_rows(data, network, techniques, pull):
    able = by_rows(network)
    names = data.draw(st.one_of(st.just(able), st.lists(st.sampled_from(able), unique=True)) if able else st.just([]))
    made = made_by_rows(network, techniques, names, pull)
    streamed_layers = {name for stage in streams(made) for name in stage.layers}
    assert streamed_layers == {*names, *pulling(made)} - set(made.free)
    check_interpreted(network, made)
    saved = plan_to_dict(made)
    assert plan_to_dict(plan_from_dict(saved)) == saved


@settings(max_examples=MANY)
@given(data=st.data(), network=networks(), family=st.sampled_from(FAMILIES))
def test_several_rows_and_few_columns_in_a_step(data, network, family):
    names = by_rows(network)
    rows = {name: data.draw(st.integers(1, 3)) for name in names}
    widths = {name: data.draw(st.integers(0, 3)) for name in names}

    def chosen(n: Network, views: Views, schedule: FusionSchedule) -> Footprint:
        own = [tuple((name, sizes[name]) for name in schedule.layers) for sizes in (rows, widths)]
        return footprint(n, views, replace(schedule, rows=own[0], columns=own[1]))

    with patch.object(streamed, "footprint", chosen):
        made = plan(network, explain=False, phases=names)
    check_interpreted(network, made)
    check_emitted(network, family, made, seeds=1)


@settings(max_examples=MANY)
@given(data=st.data(), network=networks(), techniques=TECHNIQUES, pull=st.booleans(), family=st.sampled_from(FAMILIES))
def test_emitted_streams(data, network, techniques, pull, family):
    made = made_by_rows(network, techniques, by_rows(network), pull)
    check_emitted(network, family, made, seeds=1)


SMALL = ("mlperf_kws_ref_int8*", "mlperf_vww96*", "mlperf_ic_resnet8_int8*", "st_miniresnet*")
LARGER = ("mlperf_vww96_int8", "st_miniresnet_1stack_64x50_int8")


@pytest.mark.parametrize(
    ("name", "target"), each_once(["ds_cnn_int8", "resnet8_int8"], ["cortex-m4", "cortex-m55", "rv32imc"])
)
def test_all_layers_by_rows_on_the_board(name, target):
    network = read_model(samples.build(name))
    made = plan(network, explain=False, phases=by_rows(network))
    assert streams(made)
    check_on_board(network, target, made)


@pytest.mark.parametrize("file", corpus_models(*(f"{name}.tflite" for name in SMALL), slow=LARGER))
def test_real_models_by_rows_on_the_board(file):
    network = read_model(file)
    made = plan(network, explain=False, phases=True, pull_rows=True)
    check_on_board(network, plan=made)


def residual(height: int) -> Network:
    """Three convolutions and a skip connection, the last at half the height."""
    b = Builder("residual")
    x = b.input("x", (1, height, 12, 4))
    rng = np.random.default_rng(0)

    def conv(name: str, source: str, stride: int = 1) -> str:
        w = b.constant(f"{name}.w", rng.standard_normal((4, 3, 3, 4)).astype(np.float32))
        return b.layer(Conv2d(stride=(stride, stride), pads=(1, 1, 1, 1)), [source, w], name)

    first = conv("first", x)
    joined = b.layer(Binary(BinaryKind.ADD), [first, conv("second", first)], "join")
    return b.build([conv("last", joined, 2)])


def test_code_does_not_depend_on_the_height():
    """Three times the rows: the same lines of C, and the same windows."""
    layers = ["first", "second", "join", "last"]
    low, high = (emit(plan(residual(h), explain=False, phases=layers), TARGETS["cortex-m4"]) for h in (24, 72))
    for name in ("residual.c", "residual_kernels.c"):
        assert len(str(low.files[name]).splitlines()) == len(str(high.files[name]).splitlines())
    kept = [{n: v.window for n, v in library.plan.views.items() if v.window} for library in (low, high)]
    assert kept[0] == kept[1] and kept[0]


def test_rows_of_a_skip_stay_as_long_as_they_are_needed():
    """`join` reads row y of `first` when `second` has read row y + 1: three rows suffice, as for `second` alone."""
    network = residual(24)
    made = plan(network, explain=False, phases=["first", "second", "join", "last"])
    windows = {name: view.window for name, view in made.views.items()}
    assert windows["first"] == (1, 3)
    assert windows["join"] == (1, 3)
    assert windows["second"] == windows["join"]  # in place
    assert made.macs == made.macs_plain


def residual_blocks(kernels: list[tuple[tuple[int, int], ...]], height: int = 12) -> Network:
    """Blocks of convolutions with these kernels, each added to what the block reads."""
    b = Builder("blocks")
    rng = np.random.default_rng(0)

    def conv(x: str, kernel: tuple[int, int], name: str) -> str:
        w = b.constant(f"{name}.w", rng.standard_normal((2, *kernel, 2)).astype(np.float32))
        top, left = (size // 2 for size in kernel)
        return b.layer(Conv2d(pads=(top, left, kernel[0] - 1 - top, kernel[1] - 1 - left)), [x, w], name)

    at = conv(b.input("x", (1, height, 5, 2)), (3, 3), "first")
    for i, block in enumerate(kernels):
        y = at
        for j, kernel in enumerate(block):
            y = conv(y, kernel, f"c{i}{j}")
        at = b.layer(Binary(BinaryKind.ADD), [y, at], f"add{i}")
    return b.build([conv(at, (3, 3), "last")])


def test_a_skip_and_its_sum_are_one_window():
    """`add` writes row y over the row that it adds, which `c0` has read by then: each block keeps one row more."""
    network = residual_blocks([((1, 1), (3, 3), (1, 1))] * 3)
    made = plan(network, explain=False, phases=[layer.name for layer in network.layers])
    names = ("first", "add0", "add1", "add2")
    assert {made.views[name].buffer for name in names} == {"add2"}
    assert {made.views[name].window for name in names} == {(1, 6)}  # three rows for `last`, one for each block
    check_interpreted(network, made)


@given(
    st.lists(
        st.lists(st.tuples(*[st.sampled_from([1, 2, 3])] * 2), min_size=1, max_size=3).map(tuple),
        min_size=1,
        max_size=3,
    ),
    st.sampled_from([1, 2, 9]),
    st.integers(0, 3),
    st.integers(1, 2),
)
def test_skips_that_others_still_read_are_not_overwritten(kernels, height, width, rows):
    network = residual_blocks(kernels, height)
    names = [layer.name for layer in network.layers]

    def chosen(n: Network, views: Views, schedule: FusionSchedule) -> Footprint:
        sizes = (tuple((name, size) for name in schedule.layers) for size in (rows, width))
        return footprint(n, views, FusionSchedule(schedule.layers, (), True, *sizes))

    with patch.object(streamed, "footprint", chosen):
        made = plan(network, explain=False, phases=names)
    check_interpreted(network, made)


def chain(draws: list[tuple[int, int]]) -> Network:
    """Convolutions one after the other: (kernel, stride) of each."""
    b = Builder("chain")
    at = b.input("x", (1, 32, 4, 2))
    for i, (kernel, stride) in enumerate(draws):
        w = b.constant(f"c{i}.w", np.zeros((2, kernel, kernel, 2), np.float32))
        pad = kernel // 2
        at = b.layer(Conv2d(stride=(stride, stride), pads=(pad,) * 4), [at, w], f"c{i}")
    return b.build([at])


def test_last_rows_of_an_output_lie_over_dead_windows():
    """When the last row of `c2` is written, the rows of `c0` are needed no more."""
    network = chain([(3, 1), (3, 1), (3, 2)])
    made = plan(network, explain=False, phases=["c0", "c1", "c2"], pull_rows=True)
    apart = plan(
        network, explain=False, phases=["c0", "c1", "c2"], techniques=Techniques(overlap=False), pull_rows=True
    )
    out, window = (next(b for b in made.buffers if b.name == name) for name in ("c2", "c0"))
    assert out.offset < window.offset < out.end
    assert made.peak_bytes < apart.peak_bytes
    check_interpreted(network, made)


@given(st.lists(st.tuples(st.sampled_from([1, 2, 3, 5]), st.sampled_from([1, 2, 3])), min_size=2, max_size=4))
def test_windows_of_a_chain_are_the_least_fifos(draws):
    """M 4.5 end to end: the rows a group keeps are the capacities of the CSDF graph, found by another program."""
    network = chain(draws)
    made = plan(network, explain=False, phases=list(network.by_name))
    fifos = minimum_buffers(cnn_to_csdf(network), "bytes").capacities
    for layer, reader in pairwise(network.layers):
        view, height = made.views[layer.output], network.tensors[layer.output].shape[1]
        kept = view.window[1] if view.window else height
        least = fifos[f"{layer.name}->{reader.name}"]
        # A FIFO also carries the rows that nobody reads; here they are overwritten, or never made.
        rows = rows_needed(network, reader, layer.output)
        read = {row for start, stop in rows for row in range(start, stop)}
        assert kept == least if len(read) == height else kept <= least


def test_layers_that_cannot_be_named():
    network = read_model(samples.build("lenet5"))
    with pytest.raises(InputError, match="did you mean 'conv1'"):
        plan(network, phases=["conv11"])
    with pytest.raises(InputError, match="cannot run row by row"):
        plan(network, phases=[network.layers[-1].name])


def test_images_that_are_scaled_pull_the_rows_they_read():
    """Where the rows that are read grow unevenly, none is read before it has come."""
    scaled, plans = [], []
    for rows, size in [(6, 4), (8, 5), (5, 3), (11, 7), (9, 2), (20, 13)]:
        for mode in ResizeMode:
            b = Builder(f"scaled_{rows}_{size}")
            x = b.input("x", (1, rows, 3, 2))
            resized = b.layer(Resize((size, 5), mode), [x], "resized")
            scaled.append(b.build([b.layer(Reduce((0, 1, 2), keep=False, kind=ReduceKind.MEAN), [resized], "mean")]))
            plans.append(plan(scaled[-1], explain=False, pull_rows=True))
            assert plans[-1].views["x"].window
    check_together(scaled, plans=plans)


def test_a_mean_over_columns_takes_all_of_them_in_parts():
    """Columns of a chain whose last layer sums along them are those of what it reads, not of its output."""
    b = Builder("columns")
    x = b.layer(Unary(UnaryKind.SIGMOID), [b.input("x", (1, 1, 33, 2))], "sigmoid")
    network = b.build([b.layer(Reduce((2, 3), keep=True, kind=ReduceKind.MEAN), [x], "mean")])
    schedule = FusionSchedule(("sigmoid", "mean"), (Split(-1, (2,)),), streamed=True, columns=(("mean", 4),))
    made = plan(network, explain=False, schedules=[schedule])
    check_interpreted(network, made)
    check_emitted(network, plan=made)


@pytest.mark.parametrize(("rows", "is_summed"), [(MOST_ROWS, True), (MOST_ROWS + 1, False)])
def test_images_of_too_many_rows_are_not_summed_row_by_row(rows: int, is_summed: bool):
    b = Builder("tall")
    x = b.input("x", (1, rows, 3, 1))
    y = b.layer(Reduce((1, 2), True, ReduceKind.MEAN), [b.layer(Unary(UnaryKind.ABS), [x], "a")], "y")
    network = b.build([y])
    assert can_sum(network, network.layers[-1]) == is_summed
