"""Sparse constants of TFLite files: blocks, compressed and dense levels, any order; LiteRT's DENSIFY is the judge."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

from edgewright.errors import ModelError
from edgewright.network import Array
from edgewright.network.kernels import execute
from edgewright.network.tflite import read_tflite
from tests.helpers.tflite_models import Node, Spec, constant, model, options, packed, run_litert, unpacked

RNG = np.random.default_rng(7)


def sparse(array: Array, order: list[int], block_map: list[int], blocks: list[int], csr: set[int]) -> tuple[Any, Array]:
    """The schema's description of an array, level by level as the format's definition has it, and what is stored."""
    rank = array.ndim
    size = {
        axis: n // (blocks[block_map.index(axis)] if axis in block_map else 1) for axis, n in enumerate(array.shape)
    }
    size |= {rank + i: n for i, n in enumerate(blocks)}

    def at(index: dict[int, int]) -> Any:
        place = [
            index[axis] * blocks[block_map.index(axis)] + index[rank + block_map.index(axis)]
            if axis in block_map
            else index[axis]
            for axis in range(rank)
        ]
        return array[tuple(place)]

    def is_empty(fixed: dict[int, int]) -> bool:
        free = [axis for axis in size if axis not in fixed]
        return not any(
            at(fixed | dict(zip(free, rest, strict=True))) for rest in product(*(range(size[a]) for a in free))
        )

    entries: list[dict[int, int]] = [{}]
    made = schema.SparsityParametersT()
    made.traversalOrder, made.blockMap, made.dimMetadata = order, block_map, []
    for axis in order:
        level = schema.DimensionMetadataT()
        level.format = schema.DimensionType.SPARSE_CSR if axis in csr else schema.DimensionType.DENSE
        level.denseSize = size[axis]
        following, segments = [], [0]
        for entry in entries:
            found = [entry | {axis: i} for i in range(size[axis])]
            following += [e for e in found if axis not in csr or not is_empty(e)]
            segments.append(len(following))
        if axis in csr:
            level.arraySegmentsType = schema.SparseIndexVector.Int32Vector
            level.arrayIndicesType = schema.SparseIndexVector.Uint8Vector
            level.arraySegments, level.arrayIndices = schema.Int32VectorT(), schema.Uint8VectorT()
            level.arraySegments.values, level.arrayIndices.values = segments, [e[axis] for e in following]
        entries = following
        made.dimMetadata.append(level)
    return made, np.array([at(entry) for entry in entries], array.dtype)


def sums(array: Array, made: Any, values: Array) -> bytes:
    """A model that adds the sparse array to its input."""
    nodes = [Node("DENSIFY", ("w",), ("full",)), Node("ADD", ("x", "full"), ("y",), options("Add"))]
    specs = [Spec("x", array.shape), constant("w", array, "float32"), Spec("full", array.shape), Spec("y", array.shape)]
    changed = unpacked(model(specs, nodes, ["x"], ["y"]))
    tensor = changed.subgraphs[0].tensors[1]
    tensor.sparsity = made
    changed.buffers[tensor.buffer].data = np.frombuffer(values.tobytes(), np.uint8)
    return packed(changed)


def holey(*shape: int) -> Array:
    array = RNG.integers(1, 100, shape).astype(np.float32)
    array[RNG.random(shape) < 0.7] = 0
    return array


CASES = {
    "rows": ((6, 8), [0, 1], [], [], {1}),
    "both": ((6, 8), [0, 1], [], [], {0, 1}),
    "columns": ((6, 8), [1, 0], [], [], {0}),
    "blocks of 4": ((6, 8), [0, 1, 2], [1], [4], {1}),
    "blocks of 2x4": ((6, 8), [0, 1, 2, 3], [0, 1], [2, 4], {1}),
    "a convolution": ((4, 3, 3, 8), [0, 1, 2, 3], [], [], {3}),
    "a convolution in blocks": ((4, 1, 1, 8), [0, 1, 2, 3, 4], [3], [4], {0, 3}),
}


@pytest.mark.parametrize("case", CASES)
def test_as_litert(case: str) -> None:
    shape, *how = CASES[case]
    array = holey(*shape)
    made, values = sparse(array, *how)
    content = sums(array, made, values)
    x = RNG.normal(size=shape).astype(np.float32)
    found = execute(read_tflite(content), {"x": x})["y"]
    np.testing.assert_array_equal(found, x + array)
    np.testing.assert_array_equal(run_litert(content, [x])[0], found)


def damage(made: Any, what: str) -> None:
    level = made.dimMetadata[1]
    match what:
        case "order":
            made.traversalOrder = [0, 0]
        case "segments":
            level.arraySegments.values = level.arraySegments.values[:-1]
        case "index":
            level.arrayIndices.values = [9 for _ in level.arrayIndices.values]
        case "falling":
            level.arraySegments.values = level.arraySegments.values[::-1]
        case "missing":
            level.arrayIndices, level.arrayIndicesType = None, 0


@pytest.mark.parametrize("what", ["order", "segments", "index", "falling", "missing", "values"])
def test_descriptions_that_do_not_fit_are_refused(what: str) -> None:
    array = holey(6, 8)
    made, values = sparse(array, [0, 1], [], [], {1})
    damage(made, what)
    with pytest.raises(ModelError, match="sparse tensor"):
        read_tflite(sums(array, made, values[:-1] if what == "values" else values))
