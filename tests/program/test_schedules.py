"""Random networks with random tilings: programs of tiles, judged by the interpreter and by emitted C."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from edgewright import plan, read_model, samples
from edgewright.errors import InputError
from edgewright.memory import Techniques
from edgewright.network import Builder, Network
from edgewright.network.operators import Binary, BinaryKind, Clamp, Conv2d, MaxPool2d, Reduce, ReduceKind
from edgewright.program import FusionSchedule, Plan, Split, even_ends, plan_from_dict, plan_to_dict
from tests.helpers.emitting import check_emitted
from tests.helpers.interpreting import check_interpreted
from tests.helpers.random_networks import networks
from tests.program.test_interpreter import two_convs

MANY = 250 if os.environ.get("EDGEWRIGHT_THOROUGH") else 7
FAMILIES = ("host", "cortex-m4", "rv32imc", "cortex-m55")
TECHNIQUES = st.builds(Techniques, *[st.booleans()] * 4)


@st.composite
def ends(draw: st.DrawFn, size: int) -> tuple[int, ...]:
    inner = draw(st.sets(st.integers(1, size - 1), max_size=4)) if size > 1 else set()
    return (*sorted(inner), size)


@st.composite
def schedules(draw: st.DrawFn, network: Network) -> FusionSchedule:
    """A run of layers, with tiles that may or may not suit them."""
    names = [layer.name for layer in network.layers]
    first = draw(st.integers(0, len(names) - 1))
    layers = tuple(names[first : first + draw(st.integers(1, 5))])
    by_rows = draw(st.booleans())
    axes = draw(
        st.sampled_from([(-1,), (2,), (1,), (1, 2), (2, 1)] if not by_rows else [(), (-1,), (2,), (1,), (1, 2)])
    )
    last = network.by_name[layers[-1]]
    shapes = [network.tensors[last.output].shape]
    if last.inputs[0] not in network.constants:
        shapes.append(network.tensors[last.inputs[0]].shape)  # for sums over what it reads
    shape = draw(st.sampled_from(shapes))
    assume(all(-len(shape) <= axis < len(shape) for axis in axes))
    splits = tuple(Split(axis, draw(ends(shape[axis]))) for axis in axes)
    some = st.dictionaries(st.sampled_from(layers), st.integers(1, 4), max_size=3)
    rows = tuple(draw(some).items()) if by_rows and 1 not in axes else ()  # in a step
    columns = tuple(draw(some).items()) if by_rows and not splits else ()
    return FusionSchedule(layers, splits, by_rows, rows, columns)


@settings(max_examples=8 * MANY)
@given(data=st.data(), network=networks(), techniques=TECHNIQUES)
def test_any_layers_in_any_tiles(data, network, techniques):
    chosen = data.draw(st.lists(schedules(network), min_size=1, max_size=2))
    try:
        made = plan(network, techniques=techniques, explain=False, schedules=chosen)
    except InputError:
        assume(False)
    check_interpreted(network, made)
    saved = plan_to_dict(made)
    assert plan_to_dict(plan_from_dict(saved)) == saved


@settings(max_examples=MANY)
@given(data=st.data(), network=networks(), family=st.sampled_from(FAMILIES))
def test_emitted_tiles(data, network, family):
    schedule = data.draw(schedules(network))
    try:
        made = plan(network, explain=False, schedules=[schedule])
    except InputError:
        assume(False)
    check_emitted(network, family, made, seeds=1)


@st.composite
def images(draw: st.DrawFn) -> Network:
    """Convolutions and pools one after the other on an image, with a skip connection at times."""
    b = Builder("image")
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    x, channels = b.input("x", (1, draw(st.integers(9, 20)), draw(st.integers(6, 14)), 3)), 3
    for number in range(draw(st.integers(2, 5))):
        size, step = draw(st.sampled_from([(1, 1), (3, 1), (3, 2), (2, 2)]))
        assume(min(b.shape(x)[1:3]) >= size)
        pads = (draw(st.integers(0, size - 1)), size // 2, draw(st.integers(0, size - 1)), size // 2)
        if draw(st.booleans()):
            made = draw(st.integers(1, 6))
            weights = b.constant("w", rng.standard_normal((made, size, size, channels)).astype(np.float32))
            y, channels = b.layer(Conv2d((step, step), pads=pads), [x, weights], f"l{number}"), made
        else:
            y = b.layer(MaxPool2d((size, size), (step, step), pads=pads), [x], f"l{number}")
        is_alike = b.shape(x) == b.shape(y) and draw(st.booleans())
        x = b.layer(Binary(BinaryKind.ADD), [x, y], f"sum{number}") if is_alike else y
    return b.build([x])


@st.composite
def banded(draw: st.DrawFn) -> Plan:
    """All layers of such a network in bands of rows, in stripes or not."""
    network = draw(images())
    rows, columns = network.tensors[network.outputs[0]].shape[1:3]
    stripes = (Split(2, draw(ends(columns))),) if draw(st.booleans()) else ()
    layers = tuple(layer.name for layer in network.layers)
    schedule = FusionSchedule(layers, (Split(1, draw(ends(rows))), *stripes), streamed=True)
    try:
        return plan(network, explain=False, schedules=[schedule])
    except InputError:
        assume(False)


@settings(max_examples=4 * MANY)
@given(made=banded())
def test_streams_in_bands_of_rows(made):
    """Each band begins again; where the image dies, what is made of it may take its place."""
    check_interpreted(made.network, made)


@settings(max_examples=max(2, MANY // 3))
@given(made=banded())
def test_emitted_streams_in_bands_of_rows(made):
    check_emitted(made.network, "host", made, seeds=1)


def test_bands_of_stripes_write_over_the_image():
    network = two_convs(32)
    layers = FusionSchedule(("a", "b"), (Split(1, even_ends(32, 8)), Split(2, even_ends(32, 4))), streamed=True)
    made = plan(network, explain=False, schedules=[layers])
    tensors = [network.tensors[name].bytes for name in (*network.inputs, *network.outputs)]
    assert made.peak_bytes < sum(tensors) - 0.7 * min(tensors)
    check_interpreted(network, made)
    with pytest.raises(InputError, match="must be the outermost tiles, with steps of one row"):
        plan(network, schedules=[replace(layers, splits=layers.splits[::-1])])


def test_a_fan_in_behind_a_reshape():
    """S 4.3.3: [FDTO, PART, PART, FDTI]; the tile at hand is found through a view of another rank."""
    network = read_model(samples.build("stahl_running_example"))
    layers = ("Conv3", "globalaveragepool1", "flatten1", "Dense")
    made = plan(network, explain=False, schedules=[FusionSchedule(layers, (Split(-1, even_ends(64, 4)),))])
    assert made.macs == made.macs_plain
    check_interpreted(network, made)
    check_emitted(network, "host", made, seeds=1)


def test_what_sums_rows_and_channels_of_others_is_not_cut_along_them():
    """A mean over a whole image, row by row and in shares of channels that no layer of the fusion group makes."""
    b = Builder("mean")
    x = b.layer(Clamp(0.0), [b.input("x", (1, 4, 4, 6))], "relu")
    network = b.build([b.layer(Reduce((0, 1, 2, 3), keep=False, kind=ReduceKind.MEAN), [x], "mean")])
    with pytest.raises(InputError, match="'mean' sums over rows and channels"):
        plan(network, schedules=[FusionSchedule(("mean",), (Split(-1, (3, 6)),), streamed=True)])
    made = plan(network, schedules=[FusionSchedule(("relu", "mean"), (Split(-1, (3, 6)),), streamed=True)])
    check_interpreted(network, made)


def test_steps_of_several_rows_of_a_pulled_input():
    """Its window holds what a step reads; what runs layer after layer would need all of it."""
    network = two_convs(8)
    schedule = FusionSchedule(("a", "b"), streamed=True, rows=(("a", 3),))
    made = plan(network, explain=False, pull_rows=True, schedules=[schedule])
    assert made.views["x"].window == (1, 5)
    check_interpreted(network, made)
    check_emitted(network, "host", made, seeds=1)
    with pytest.raises(InputError, match=r"'a .. b' must run row by row: its input arrives row by row"):
        plan(network, pull_rows=True, schedules=[FusionSchedule(("a", "b"))])
