"""Values as int8 holds them, in PyTorch's float32: gradients pass through the rounding (Jacob et al. 2018)."""

from __future__ import annotations

from typing import Any

from .model import LEAST, LEAST_SCALE, MOST, Scaled


def fake_values(torch: Any, values: Any, scaled: Scaled) -> Any:
    """A tensor with one scale and zero point; gradients stop where it is cut."""
    return torch.fake_quantize_per_tensor_affine(values, *scaled, LEAST, MOST)


def fake_weights(torch: Any, kernel: Any) -> Any:
    """Weights with one scale for each output channel, which is their first axis."""
    scale = (kernel.detach().abs().flatten(1).amax(1) / MOST).clamp_min(LEAST_SCALE)
    zero = torch.zeros_like(scale, dtype=torch.int32)
    return torch.fake_quantize_per_channel_affine(kernel, scale, zero, 0, -MOST, MOST)
