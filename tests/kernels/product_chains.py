"""Random chains of quantised convolutions and dense layers, for the tests of the kernels that multiply int8."""

from __future__ import annotations

import numpy as np

from edgewright.network import Arithmetic, Builder, DType, Network, Quant
from edgewright.network.operators import Clamp, Conv2d, Dense, Reshape

Rng = np.random.Generator


def chain(seed: int, depthwise: bool = False, most_channels: int = 21) -> Network:
    """Two convolutions and perhaps a dense layer: any arithmetic and type, sizes that no block divides."""
    rng = np.random.default_rng(seed)
    arithmetic = list(Arithmetic)[int(rng.integers(2))]
    dtype = DType.UINT8 if arithmetic is Arithmetic.ONNX and rng.random() < 0.5 else DType.INT8
    b = Builder("chain", arithmetic)
    shape = (
        int(rng.integers(1, 3)),
        *(int(v) for v in rng.integers(5, 9, 2)),
        int(rng.integers(1, most_channels)),
    )
    x = b.input("x", shape, dtype, _quant(rng, dtype))
    for i in range(2):
        x = _conv(b, rng, x, dtype, i, depthwise, most_channels)
    if rng.random() < 0.6:
        x = _dense(b, rng, x, dtype, rows=bool(rng.integers(2)))
    return b.build([x])


def _quant(rng: Rng, dtype: DType, scale: float = 0.05) -> Quant:
    low = int(np.iinfo(dtype.numpy).min)
    return Quant.of(float(np.float32(scale * rng.uniform(0.5, 2))), low + int(rng.integers(0, 256)))


def _activation(rng: Rng) -> Clamp | None:
    return [None, Clamp(0.0), Clamp(0.0, 6.0)][int(rng.integers(3))]


def _weights(b: Builder, rng: Rng, shape: tuple[int, ...]) -> list[str]:
    """Weights of one scale or of one for each channel; small ones too, whose multipliers are near 1."""
    reach = int(rng.choice([3, 127]))
    count = shape[0] if rng.random() < 0.7 else 1
    scales = tuple(float(np.float32(s)) for s in np.exp(rng.uniform(np.log(0.001), np.log(0.05), count)))
    values = rng.integers(-reach, reach + 1, shape).astype(np.int8)
    bias = rng.integers(-2000, 2000, shape[0]).astype(np.int32)
    names = [b.constant("w", values, Quant(scales, (0,) * count, 0 if count > 1 else None))]
    return names + ([b.constant("b", bias)] if rng.random() < 0.8 else [])


def _conv(b: Builder, rng: Rng, x: str, dtype: DType, i: int, depthwise: bool, most: int) -> str:
    _, h, w, depth = b.shape(x)
    kernel = tuple(int(v) for v in rng.integers(1, 1 + min(3, h, w), 2)) if rng.random() < 0.7 else (1, 1)
    op = Conv2d(
        tuple(int(v) for v in rng.integers(1, 3, 2)),
        (1, int(rng.integers(1, 3))) if w > 2 * kernel[1] else (1, 1),
        tuple(int(v) for v in rng.integers(0, 2, 4)) if max(kernel) > 1 else (0, 0, 0, 0),
        depth if depthwise else 1,
        _activation(rng),
    )
    channels = depth if depthwise else int(rng.integers(1, most))
    names = [x, *_weights(b, rng, (channels, *kernel, 1 if depthwise else depth))]
    return b.layer(op, names, f"conv{i}", dtype=dtype, quant=_quant(rng, dtype, 0.3))


def _dense(b: Builder, rng: Rng, x: str, dtype: DType, rows: bool) -> str:
    n, h, w, c = b.shape(x)
    x = b.layer(Reshape((n, h * w, c) if rows else (n, h * w * c)), [x], "flat")
    names = [x, *_weights(b, rng, (int(rng.integers(1, 40)), b.shape(x)[-1]))]
    return b.layer(Dense(_activation(rng)), names, "dense", dtype=dtype, quant=_quant(rng, dtype, 0.5))
