"""Concat, split, slice and reshape for free."""

import numpy as np

from edgewright.memory import Techniques, plan
from edgewright.memory.solver import MOST_TRIALS, ViewChoice, _alternatives, solve
from edgewright.memory.views import find_views, with_copies
from edgewright.network import Builder, check
from edgewright.network.operators import Binary, BinaryKind, Clamp, Concat, Conv2d, Reshape, Slice, Unary, UnaryKind
from tests.program.test_interpreter import agrees


def pointwise(b, x, out, name):
    w = np.random.default_rng(len(name)).standard_normal((out, 1, 1, b.shape(x)[3])).astype(np.float32)
    return b.layer(Conv2d(), [x, b.constant(f"{name}.w", w)], name)


def half(b, x, start, name):
    n, h, w, c = b.shape(x)
    return b.layer(Slice((0, 0, 0, start), (n, h, w, c // 2), (1, 1, 1, 1)), [x], name)


def fire():
    """The fire module of SqueezeNet: two branches joined along the channels."""
    b = Builder("fire")
    s = pointwise(b, b.input("x", (1, 4, 4, 8)), 2, "squeeze")
    y = b.layer(Concat(3), [pointwise(b, s, 4, "e1"), pointwise(b, s, 4, "e3")], "cat")
    return b.build([pointwise(b, y, 2, "out")])


def test_branches_write_into_the_concat():
    views = find_views(fire())
    assert views.free == {"cat"}
    assert views.places["e1"].root == views.places["e3"].root == "cat"
    assert views.places["e3"].offset - views.places["e1"].offset == 4 * 4  # four channels of four bytes
    assert views.places["e1"].strides == views.places["cat"].strides
    assert agrees(plan(fire()), fire())


def test_copies_stand_in_the_order_of_the_network():
    """Whatever the order of the set that names them: plan files would differ from run to run."""
    names = [list(with_copies(fire(), tensors).tensors) for tensors in (["e1", "e3"], ["e3", "e1"])]
    assert names[0] == names[1] and names[0][-2:] == ["e1:copy", "e3:copy"]


def test_a_concat_costs_nothing():
    cat, squeeze = 4 * 4 * 8 * 4, 4 * 4 * 2 * 4
    techniques = Techniques(in_place=False, overlap=False, planes=False)
    assert plan(fire(), techniques=techniques).peak_bytes == max(cat + squeeze, cat + 4 * 4 * 2 * 4, 512 + squeeze)
    assert plan(fire(), plain=True).peak_bytes == 2 * cat


def test_partial_concats_of_a_dense_block_are_views_of_the_last():
    b = Builder("dense")
    features = [pointwise(b, b.input("x", (1, 4, 4, 2)), 2, "f0")]
    for i in range(1, 4):
        joined = b.layer(Concat(3), list(features), f"cat{i}") if i > 1 else features[0]
        features.append(pointwise(b, b.layer(Unary(UnaryKind.TANH), [joined], f"act{i}"), 2, f"f{i}"))
    net = b.build([pointwise(b, b.layer(Concat(3), features, "last"), 2, "out")])
    views = find_views(net)
    assert views.free == {"cat2", "cat3", "last"}
    assert {views.places[t].root for t in ("f0", "f1", "f2", "f3", "cat2", "cat3")} == {"last"}
    assert agrees(plan(net), net)


def test_an_input_joined_as_it_is_must_be_copied():
    b = Builder("skip")
    x = b.input("x", (1, 4, 4, 2))
    y = pointwise(b, x, 2, "y")
    net = b.build([pointwise(b, b.layer(Concat(3), [x, y], "cat"), 2, "out")])
    views = find_views(net)
    assert views.free == set() and views.in_place == {"cat": (1,)}
    assert views.places["y"].root == "cat" and views.places["x"].root == "x"
    found = plan(net)
    assert agrees(found, net)


def test_a_tensor_joined_twice_is_copied():
    b = Builder("twice")
    y = pointwise(b, b.input("x", (1, 4, 4, 2)), 2, "y")
    net = b.build([pointwise(b, b.layer(Concat(3), [y, y], "cat"), 2, "out")])
    assert find_views(net).free == set()
    assert agrees(plan(net), net)


def test_split_halves_are_looked_at_in_place():
    """The channel split of ShuffleNet."""
    b = Builder("shuffle")
    y = pointwise(b, b.input("x", (1, 4, 4, 4)), 4, "y")
    left, right = half(b, y, 0, "left"), half(b, y, 2, "right")
    net = b.build([b.layer(Concat(3), [left, pointwise(b, right, 2, "deep")], "cat")])
    views = find_views(net)
    assert {"left", "right"} <= views.free
    assert views.places["right"].root == "y" and views.places["right"].offset == 8
    assert agrees(plan(net), net)


def test_an_output_is_never_strided():
    b = Builder("out")
    y = pointwise(b, b.input("x", (1, 4, 4, 4)), 4, "y")
    net = b.build([half(b, y, 0, "left"), y])
    assert find_views(net).places["left"].root == "left"
    assert agrees(plan(net), net)


def test_an_input_and_an_output_never_share_a_buffer_by_name():
    b = Builder("alias")
    net = b.build([b.layer(Reshape((1, 8)), [b.input("x", (1, 2, 2, 2))], "y")])
    assert find_views(net).free == set()
    assert agrees(plan(net), net)


def test_reshape_of_a_strided_part_is_left_alone():
    b = Builder("flat")
    y = pointwise(b, b.input("x", (1, 4, 4, 4)), 4, "y")
    flat = b.layer(Reshape((1, 1, 1, 32)), [half(b, y, 0, "left")], "flat")
    net = b.build([b.layer(Clamp(0.0), [flat], "out"), b.layer(Clamp(0.0), [y], "all")])
    views = find_views(net)
    assert "left" in views.free and "flat" not in views.free
    assert agrees(plan(net), net)


def test_copies_let_a_part_wait_outside():
    net = with_copies(fire(), {"e1"})
    check(net)
    views = find_views(net, {"e1:copy"})
    assert views.places["e1"].root == "e1" and views.places["e1:copy"].root == "cat"


def test_slices_of_an_unrolled_loop_are_decided_alike():
    """Each begins elsewhere, so that there are more kinds than trials."""
    b = Builder("unrolled")
    x = b.input("x", (40, 4))
    parts = [b.layer(Slice((step, 0), (1, 4), (1, 1)), [x], f"part{step}") for step in range(40)]
    total = parts[0]
    for step, part in enumerate(parts[1:]):
        total = b.layer(Binary(BinaryKind.ADD), [total, part], f"sum{step}")
    network = b.build([total])
    solution = solve(network, Techniques(), 4, 0, most_trials=1)
    found = _alternatives(network, solution, ViewChoice(), MOST_TRIALS)
    assert found == [ViewChoice(copied=frozenset(parts))]
    assert len(_alternatives(network, solution, ViewChoice(), 100)) == 40
