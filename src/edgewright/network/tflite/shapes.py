"""Importers of reshapes, and of operators that compute shapes and constants while reading."""

from __future__ import annotations

from math import ceil, prod

import numpy as np
import tflite

from ...errors import Unsupported
from ..operators import Reshape
from ..region import Shape
from .import_state import LayerImport, require_size

_MOST_RANGE = 1 << 24


def reshape(layer: LayerImport) -> None:
    if layer.has(1):
        wanted = layer.integers(1, "new shape")
    else:
        sizes = layer.options(tflite.ReshapeOptions).NewShapeAsNumpy()
        wanted = () if isinstance(sizes, int) else tuple(sizes.tolist())
    if wanted == (0,):
        wanted = ()  # old converters' form of a scalar
    layer.move(Reshape(_completed(layer, wanted)))


def _completed(layer: LayerImport, wanted: Shape) -> Shape:
    """The new shape with its -1 replaced by the rest."""
    size = prod(layer.shape())
    known = prod(s for s in wanted if s != -1)
    if wanted.count(-1) > 1 or min(wanted, default=0) < -1 or known == 0:
        raise layer.error(f"the new shape is {wanted}")
    return tuple(size // known if s == -1 else s for s in wanted)


def squeeze(layer: LayerImport) -> None:
    dims = layer.options(tflite.SqueezeOptions).SqueezeDimsAsNumpy()
    shape = layer.shape()
    chosen = () if isinstance(dims, int) else tuple(dims.tolist())
    if any(not -len(shape) <= axis < len(shape) or shape[axis] != 1 for axis in chosen):
        raise layer.error(f"cannot squeeze axes {chosen} of {shape}")
    axes = {axis % len(shape) for axis in chosen} or {i for i, size in enumerate(shape) if size == 1}
    layer.move(Reshape(tuple(size for i, size in enumerate(shape) if i not in axes)))


def expand_dims(layer: LayerImport) -> None:
    shape = layer.shape()
    axes = layer.integers(1, "axis")
    if len(axes) != 1 or not -len(shape) - 1 <= axes[0] <= len(shape):
        raise layer.error(f"axis {axes} cannot be added to {shape}")
    axis = axes[0] % (len(shape) + 1)
    layer.move(Reshape((*shape[:axis], 1, *shape[axis:])))


def shape(layer: LayerImport) -> None:
    layer.emit_constant(np.array(layer.shape(), layer.result().dtype.numpy))


def rank(layer: LayerImport) -> None:
    layer.emit_constant(np.array(len(layer.shape()), layer.result().dtype.numpy))


def fill(layer: LayerImport) -> None:
    size = layer.integers(0, "size")
    require_size(layer.label, size)
    layer.emit_constant(np.broadcast_to(layer.value(1, "value").reshape(()), size), layer.result().quant)


def range_(layer: LayerImport) -> None:
    start, limit, delta = (layer.value(i, what).item() for i, what in enumerate(("start", "limit", "step")))
    if not delta or not all(np.isfinite(v) for v in (start, limit, delta)):
        raise layer.error(f"a range from {start} to {limit} in steps of {delta}")
    if ceil((limit - start) / delta) > _MOST_RANGE:
        raise Unsupported(f"the range has more than {_MOST_RANGE} elements")
    layer.emit_constant(np.arange(start, limit, delta, dtype=layer.result().dtype.numpy))


def zeros_like(layer: LayerImport) -> None:
    layer.emit_constant(np.broadcast_to(np.zeros((), layer.result().dtype.numpy), layer.shape()))


def densify(layer: LayerImport) -> None:
    """Sparse constants are already dense after parsing."""
    layer.emit_constant(layer.value(0, "sparse tensor"), layer.result().quant)
