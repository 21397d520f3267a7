"""Random model files: what planners trip over is among them in every format, and a few go through the whole tool."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from math import log2

import pytest

from edgewright.network import Network
from edgewright.network.operators import Binary, DynamicProduct, Select
from edgewright.network.read import read_bytes
from tests.helpers.emitting_batch import build_together
from tests.helpers.random_models import KINDS, WORDS, draw_model
from tests.helpers.random_trials import ALIGNMENTS, MODES, Trial, drawn_choice, prepared, story

SEEDS = range(40)


@cache
def drawn(kind: str) -> list[Network]:
    return [read_bytes(draw_model(kind, seed), name="n") for seed in SEEDS]


def patterns(network: Network) -> Iterator[str]:
    """What is remarkable about a network."""
    for layer in network.layers:
        if isinstance(layer.op, Binary) and layer.inputs[0] in network.constants:
            yield "a constant as the first operand"
        if isinstance(layer.op, DynamicProduct):
            yield "scales found at run time"
    for name in network.outputs:
        if network.tensors[name].shape == ():
            yield "a number as output"
        if name in network.constants:
            yield "an output without input"
        if name in network.inputs:
            yield "an input as output"
    scales = [t.quant.scale[0] for t in network.tensors.values() if t.quant and t.name not in network.constants]
    if any(log2(scale).is_integer() for scale in scales):
        yield "a power of two as scale"
    if any(isinstance(layer.op, Select) for layer in network.layers):
        yield "a choice"
    if {*network.inputs, *network.outputs} & set(WORDS):
        yield "a word of C as name"


@pytest.mark.parametrize("kind", KINDS)
def test_every_pattern_occurs(kind: str) -> None:
    found = {pattern for network in drawn(kind) for pattern in patterns(network)}
    wanted = {"a constant as the first operand", "a number as output", "an output without input"}
    wanted |= {"a word of C as name", "a choice"}
    wanted |= {"an input as output"} if kind != "onnx qdq" else set()  # there it is behind a pair of conversions
    wanted |= {"a power of two as scale"} if kind in ("onnx qdq", "tflite int8") else set()
    wanted |= {"scales found at run time"} if kind == "tflite dynamic" else set()
    assert wanted <= found


def test_every_mode_and_alignment_occurs() -> None:
    chosen = [drawn_choice(Trial(kind, seed).rng) for kind in KINDS for seed in SEEDS]
    assert {mode for mode, _ in chosen} == set(MODES)
    assert {alignment for _, alignment in chosen} == set(ALIGNMENTS)


@pytest.mark.parametrize("first", [0, pytest.param(10_000, marks=pytest.mark.slow)])
def test_through_the_whole_tool(first: int) -> None:
    """Ten thousand of them: benchmarks/random_networks.py."""
    count = 1 if first == 0 else 40
    trials = [Trial(kind, first + seed) for kind in KINDS for seed in range(count)]
    made = [prepared(trial, f"n{number}") for number, trial in enumerate(trials)]
    for item, native in zip(made, build_together([item.library for item in made]), strict=True):
        assert story(item, native.run(item.inputs, poison=0x55)) == (), item.trial
