"""Weights of a candidate as numpy arrays: fresh ones, ones inherited from a parent, batch normalisations folded.

A state holds everything that training changes, by names such as `block0.conv.kernel`; weights are what inference needs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

import numpy as np
import numpy.typing as npt

from .architecture import CnnArchitecture

FloatArray = npt.NDArray[np.float32]
State = Mapping[str, FloatArray]

BATCH_NORM_EPSILON = 1e-5
GAIN = 2.0  # a ReLU halves the second moment (He et al. 2015, eq. 10)

KERNEL, BIAS = "kernel", "bias"  # arrays of a layer in a state; a normalised layer has these in place of the bias:
SCALE, SHIFT, MEAN, VARIANCE = "scale", "shift", "mean", "variance"


@dataclass(frozen=True)
class LayerWeights:
    """Weights of one layer for inference, its batch normalisation folded in."""

    kernel: FloatArray  # outputs, inputs, height, width
    bias: FloatArray  # outputs


Weights = Mapping[str, LayerWeights]  # by the name of the layer


def state_shapes(architecture: CnnArchitecture) -> dict[str, tuple[int, ...]]:
    """The arrays of a candidate's state, in the order of its layers."""
    shapes: dict[str, tuple[int, ...]] = {}
    for layer in architecture.layers():
        if kernel := layer.weight_shape:
            shapes[f"{layer.name}.{KERNEL}"] = kernel
            for array in (SCALE, SHIFT, MEAN, VARIANCE) if layer.is_normalised else (BIAS,):
                shapes[f"{layer.name}.{array}"] = kernel[:1]
    return shapes


def fresh_state(architecture: CnnArchitecture, seed: int) -> dict[str, FloatArray]:
    """Random weights (He et al. 2015), and batch normalisations that change nothing."""
    generator = np.random.default_rng(seed)
    return {name: _fresh(name, shape, generator) for name, shape in state_shapes(architecture).items()}


def _fresh(name: str, shape: tuple[int, ...], generator: np.random.Generator) -> FloatArray:
    match name.rpartition(".")[2]:
        case "kernel":
            deviation = np.float32(math.sqrt(GAIN / math.prod(shape[1:])))
            return generator.standard_normal(shape, np.float32) * deviation
        case "scale" | "variance":
            return np.ones(shape, np.float32)
    return np.zeros(shape, np.float32)


def inherited(child: CnnArchitecture, parent: CnnArchitecture, state: State, seed: int) -> dict[str, FloatArray]:
    """The child's state, inherited from its parent: equal blocks keep their weights, also behind an inserted block.

    Arrays of other sizes are cut to the first channels and the middle of the kernels; what is missing is fresh.
    """
    arrays = fresh_state(child, seed)
    origins = _origins(child, parent)
    for name, array in arrays.items():
        block, dot, rest = name.partition(".")
        source = state.get(f"{origins[block]}{dot}{rest}" if block in origins else name)
        if source is not None and source.ndim == array.ndim and _is_of_child(block, origins):
            _copy_common(source, array)
    return arrays


def _is_of_child(block: str, origins: Mapping[str, str]) -> bool:
    """Whether the parent has a counterpart of the block; layers outside blocks are matched by name."""
    return block in origins or not block.startswith("block")


def _origins(child: CnnArchitecture, parent: CnnArchitecture) -> dict[str, str]:
    """The parent's block for each block of the child: equal ones in order, changed ones by position between these."""
    found: dict[str, str] = {}
    for tag, low, high, start, end in SequenceMatcher(None, parent.blocks, child.blocks, autojunk=False).get_opcodes():
        if tag in ("equal", "replace"):
            found.update((f"block{start + i}", f"block{low + i}") for i in range(min(high - low, end - start)))
    return found


def _copy_common(source: FloatArray, target: FloatArray) -> None:
    """Copies the first channels, and of kernels the part around the middle, in place."""
    ours: list[slice] = []
    theirs: list[slice] = []
    for axis, (have, want) in enumerate(zip(source.shape, target.shape, strict=True)):
        common = min(have, want)
        if axis < 2:
            ours.append(slice(common))
            theirs.append(slice(common))
        else:
            ours.append(slice((want - common) // 2, (want - common) // 2 + common))
            theirs.append(slice((have - common) // 2, (have - common) // 2 + common))
    target[tuple(ours)] = source[tuple(theirs)]


def folded(architecture: CnnArchitecture, state: State) -> dict[str, LayerWeights]:
    """The weights for inference that a state stands for."""
    weights: dict[str, LayerWeights] = {}
    for layer in architecture.layers():
        if layer.weight_shape is None:
            continue
        kernel = state[f"{layer.name}.{KERNEL}"]
        if layer.is_normalised:
            scale, shift, mean, variance = (state[f"{layer.name}.{a}"] for a in (SCALE, SHIFT, MEAN, VARIANCE))
            factor = scale / np.sqrt(variance + np.float32(BATCH_NORM_EPSILON))
            bias = shift - mean * factor
            kernel = kernel * factor[:, None, None, None]
        else:
            bias = state[f"{layer.name}.{BIAS}"]
        weights[layer.name] = LayerWeights(kernel, bias)
    return weights


def random_weights(architecture: CnnArchitecture, seed: int = 0) -> dict[str, LayerWeights]:
    """Seeded weights with biases other than zero, for networks that nobody trained."""
    generator = np.random.default_rng(seed)
    state: dict[str, Any] = fresh_state(architecture, seed)
    weights = folded(architecture, state)
    for name, layer in weights.items():
        noise = 0.1 * generator.standard_normal(layer.bias.shape, np.float32)
        weights[name] = LayerWeights(layer.kernel, layer.bias + noise)
    return weights
