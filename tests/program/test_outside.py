"""Inputs and outputs in the caller's memory: planned, judged, interpreted and run without a copy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewright.emit.native import build
from edgewright.errors import InputError
from edgewright.fusion.request import Method, PlanRequest, make_plan
from edgewright.memory import plan
from edgewright.network import Array, Builder, Network, random_inputs
from edgewright.network.kernels import execute
from edgewright.network.operators import Clamp, Concat, Conv2d, Slice
from edgewright.platform.target import TARGETS
from edgewright.program import Interpreter, Plan, faults, interpret, plan_from_dict, plan_to_dict
from edgewright.program.plan import slot_name
from tests.helpers.counts import seeds
from tests.helpers.emitting import emit
from tests.helpers.parts_runs import assert_same
from tests.helpers.random_networks import network_of_seed, networks


def chain() -> Network:
    """A convolution, an activation that could work in place, a convolution."""
    b = Builder("chain")
    x = b.input("x", (1, 8, 8, 4))
    rng = np.random.default_rng(0)
    weights = [b.constant(f"w{i}", rng.standard_normal((4, 3, 3, 4)).astype(np.float32)) for i in range(2)]
    y = b.layer(Conv2d(pads=(1, 1, 1, 1)), [b.layer(Clamp(0.0), [x], "first"), weights[0]], "conv")
    y = b.layer(Conv2d(pads=(1, 1, 1, 1)), [b.layer(Clamp(0.0), [y], "relu"), weights[1]], "last")
    return b.build([b.layer(Clamp(0.0), [y], "y")])


def ends(network: Network) -> list[str]:
    """Everything that can lie in the caller's memory."""
    names = dict.fromkeys((*network.inputs, *network.outputs))
    both = set(network.inputs) & set(network.outputs)
    return [name for name in names if name not in network.constants and name not in both]


def check(network: Network, made: Plan, seed: int = 0) -> None:
    assert list(faults(made)) == []
    assert sum(made.arenas.values()) == made.peak_bytes
    assert made.slots == {slot_name(name): network.tensors[name].bytes for name in made.outside}
    values = random_inputs(network, seed)
    with np.errstate(all="ignore"):
        found, wanted = interpret(made, values), execute(network, values)
    for name, value in wanted.items():
        assert_same(np.nan_to_num(found[name]), np.nan_to_num(value))


@settings(deadline=None, max_examples=40)
@given(networks(), st.data())
def test_any_inputs_and_outputs_may_lie_outside(network: Network, data: st.DataObject):
    outside = [name for name in ends(network) if data.draw(st.booleans())]
    manner = data.draw(st.sampled_from(({}, {"plain": True}, {"phases": True})))
    made = plan(network, outside=outside, explain=False, **manner)
    assert set(made.outside) == set(outside)
    check(network, made)


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds("OUTSIDE", 1000))
def test_many_networks(seed: int):
    network = network_of_seed(seed)
    for phases in (False, True):
        check(network, plan(network, outside=ends(network), explain=False, phases=phases), seed)


def test_what_lies_outside_is_not_counted():
    network = chain()
    made = plan(network, outside=["x", "y"])
    # The first convolution trails its input by a row, a pixel and what it overlaps.
    assert (plan(network, plain=True).peak_bytes, made.peak_bytes) == (2048, 1184)
    assert made.bound_bytes == made.peak_bytes
    assert made.slots == {"slot of x": 1024, "slot of y": 1024}
    assert plan(network, outside=["x", "y"], phases=list(network.by_name)).peak_bytes == 768
    assert plan(network, outside=["x", "y"], phases=True).peak_bytes == 768


@settings(deadline=None, max_examples=20)
@given(networks())
def test_rows_take_no_more_where_the_ends_lie_outside(network: Network):
    """What lies elsewhere takes nothing: the rows that pay with everything in one memory pay without its ends."""
    inside, made = (plan(network, phases=True, explain=False, outside=x).peak_bytes for x in ((), ends(network)))
    assert made <= inside


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"plain": True},
        {"phases": True},
        {"minimise_ram": True},
        {"max_overhead": 0.1},
        {"ram": 900},
        {"lanes": 2},
    ],
)
def test_a_request_names_what_lies_outside(asked):
    network = chain()
    made = make_plan(network, PlanRequest(**asked, outside=("x", "y")), target="host")
    assert made.outside == ("x", "y")
    assert made.peak_bytes <= (2048 if "plain" in asked else 900 if "ram" in asked else 1184)
    check(network, made)


def test_a_request_says_what_cannot_lie_outside():
    with pytest.raises(InputError, match="'conv' cannot lie in the caller's memory"):
        make_plan(chain(), PlanRequest(outside=("conv",)))
    with pytest.raises(InputError, match="leave `outside` out"):
        PlanRequest(method=Method.PAPER, outside=("x",))


def test_a_concat_is_written_where_the_caller_has_it_and_slices_look_into_it():
    b = Builder("joined")
    x = b.input("x", (1, 4, 4, 4))
    halves = [b.layer(Slice((0, i, 0, 0), (1, 2, 4, 4), (1, 1, 1, 1)), [x], f"half{i}") for i in (0, 2)]
    network = b.build([b.layer(Concat(1), [b.layer(Clamp(0.0), [half], f"r{half}") for half in halves], "y")])
    made = plan(network, outside=["x", "y"])
    assert made.peak_bytes == 0 and made.arenas == {}
    assert {made.views[name].buffer for name in ("half0", "half2")} == {"x"}
    assert {made.views[name].buffer for name in ("rhalf0", "rhalf2")} == {"y"}
    check(network, made)


def test_a_plan_with_slots_survives_its_file():
    made = plan(chain(), outside=["x", "y"])
    assert plan_to_dict(plan_from_dict(plan_to_dict(made))) == plan_to_dict(made)
    data = plan_to_dict(made)
    for wrong, message in (
        (["x"], "does not|states"),
        (["x", "y", "conv"], "'conv' is in the caller's memory, but is not either an input or an output"),
        (["x", "y", "w0"], "'w0' is in the caller's memory"),
        (["x", "x", "y"], "is listed twice"),
    ):
        with pytest.raises(InputError, match=message):
            plan_from_dict({**data, "outside": wrong})


@pytest.mark.parametrize("name", ["w0", "conv", "nothing"])
def test_only_inputs_and_outputs_can_lie_outside(name: str):
    with pytest.raises(InputError, match=f"'{name}' cannot lie in the caller's memory"):
        plan(chain(), outside=[name])


def moved(made: Plan, tensor: str, memory: str) -> Plan:
    """The plan with the buffer of a tensor at the beginning of another memory."""
    buffers = tuple(
        replace(b, memory=memory, offset=0) if b.name == made.views[tensor].buffer else b for b in made.buffers
    )
    changed = replace(made, buffers=buffers)
    return replace(changed, peak_bytes=sum(changed.arenas.values()), bound_bytes=0)


def test_planted_faults_are_found():
    made = plan(chain(), outside=["x", "y"])
    (fault, *_) = faults(moved(made, "relu", "slot of y"))
    assert "lies in the caller's memory for 'y'" in fault.message
    (fault, *_) = faults(moved(made, "y", "slot of z"))
    assert "'y' does not fill the caller's memory" in fault.message
    views = {**made.views, "first": made.views["x"]}
    shared = replace(made, views=views, buffers=tuple(b for b in made.buffers if b.name != "first"))
    assert any("writes to the caller's input 'x'" in fault.message for fault in faults(shared))
    buffers = tuple(replace(b, size=b.size + 4) if b.name == made.views["y"].buffer else b for b in made.buffers)
    (fault, *_) = faults(replace(made, buffers=buffers))
    assert "'y' does not fill the caller's memory" in fault.message


def test_the_interpreter_runs_in_given_slots_and_leaves_inputs_alone():
    network = chain()
    made = plan(network, outside=["x", "y"])
    values = random_inputs(network)
    slots: dict[str, Array] = {
        "x": values["x"].reshape(-1).view(np.uint8).copy(),
        "y": np.zeros(network.tensors["y"].bytes, np.uint8),
    }
    before = slots["x"].copy()
    Interpreter(made).run({}, slots)
    assert np.array_equal(slots["x"], before)
    found = slots["y"].view(np.float32).reshape(network.tensors["y"].shape)
    assert_same(found, execute(network, values)["y"])


def test_the_library_reads_and_writes_where_the_caller_says():
    network = chain()
    library = emit(plan(network, outside=["x", "y"]), TARGETS["host"])
    source = str(library.files["chain.c"])
    assert "memcpy" not in source and "never NULL: x, y" in str(library.files["chain.h"])
    native = build(library)
    values = random_inputs(network)
    room = np.full(2 * 1024 + 64, 7, np.uint8)
    start = -room.ctypes.data % 64
    target = room[start : start + 1024].view(np.float32).reshape(1, 8, 8, 4)
    found = native.run(values, poison=255, into={"y": target})
    assert found["y"] is target
    assert_same(target, execute(network, values)["y"])
    with pytest.raises(InputError, match="output 'y' cannot be written into"):
        native.run(values, into={"y": np.empty((1, 8, 8, 5), np.float32)})
