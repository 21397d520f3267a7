"""Layers by rows: programs with streams, judged by the interpreter and by emitted C."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewright import plan
from edgewright.errors import InputError
from edgewright.memory import Techniques
from edgewright.memory.pulled import pullable
from edgewright.network import Network, random_inputs
from edgewright.network.kernels import execute
from edgewright.network.reference import compare
from edgewright.program import Plan, Stream, interpret, plan_from_dict, plan_to_dict
from emitting import check_emitted
from random_networks import networks

FAMILIES = ("host", "cortex-m4", "rv32imc", "cortex-m55")


def streams(made: Plan) -> list[Stream]:
    return [item for stage in made.program.stages for item in stage.body if isinstance(item, Stream)]


def check_interpreted(network: Network, made: Plan) -> None:
    inputs = random_inputs(network, 3)
    expected = execute(network, inputs)
    actual = interpret(made, inputs)
    for name in network.outputs:
        if not network.tensors[name].dtype.is_float:
            np.testing.assert_array_equal(actual[name], expected[name])
    assert compare(network, actual, expected).passes


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


@settings(max_examples=60)
@given(network=networks(), techniques=TECHNIQUES, pull=st.booleans())
def test_random_networks_by_rows_where_it_saves(network, techniques, pull):
    made = made_by_rows(network, techniques, True, pull)
    check_interpreted(network, made)
    assert made.macs <= made.macs_plain
    whole = made_by_rows(network, techniques, False, pull)
    assert made.bound_bytes <= made.peak_bytes <= whole.peak_bytes


@settings(max_examples=60)
@given(data=st.data(), network=networks(), techniques=TECHNIQUES, pull=st.booleans())
def test_any_layers_by_rows(data, network, techniques, pull):
    able = by_rows(network)
    names = data.draw(
        st.one_of(st.just(able), st.lists(st.sampled_from(able), unique=True)) if able else st.just([])
    )
    made = made_by_rows(network, techniques, names, pull)
    assert {step.layer for stream in streams(made) for step in stream.steps} == set(names) - set(made.free)
    check_interpreted(network, made)
    saved = plan_to_dict(made)
    assert plan_to_dict(plan_from_dict(saved)) == saved


@settings(max_examples=25)
@given(
    data=st.data(), network=networks(), techniques=TECHNIQUES, pull=st.booleans(), family=st.sampled_from(FAMILIES)
)
def test_emitted_streams(data, network, techniques, pull, family):
    made = made_by_rows(network, techniques, by_rows(network), pull)
    check_emitted(network, family, made, seeds=1)
