"""What is known of a network's layers on a target before any part of them is looked at; each found once."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ..kernels.dsp import conv as dsp
from ..kernels.dsp.numbers import numbers_of
from ..kernels.options import Options
from ..kernels.placement import Placement, dense_strides
from ..kernels.portable.blocked import has_products
from ..kernels.requantise.depthwise_factors import factors_of
from ..kernels.requantise.sums import requantised
from ..kernels.shares_form import missing
from ..kernels.site import ChannelRange, LayerFacts, Site
from ..network import Arithmetic, DType, Layer, Network, Tensor
from ..network.kernels.scales import number
from ..network.kernels.tflite_scales import activation_range
from ..network.operators import Clamp, Conv2d, Dense
from ..platform.target import Family, Target
from ..program import Sweep

BYTES = {DType.INT8: (-128, 127), DType.UINT8: (0, 255)}


class Facts:
    """A network on a target. To be exact, multipliers are searched for as emitters do, which takes its time."""

    def __init__(self, network: Network, target: Target, exact: bool = True) -> None:
        self.network, self.target, self.exact = network, target, exact
        self._scalings: dict[str, str] = {}
        self._limits: dict[str, tuple[int, int]] = {}

    def is_small(self, layer: Layer) -> bool:
        """Whether bytes go in and come out."""
        return self.input(layer).dtype in BYTES and self.output(layer).dtype in BYTES

    def input(self, layer: Layer) -> Tensor:
        return self.network.tensors[layer.inputs[0]]

    def output(self, layer: Layer) -> Tensor:
        return self.network.tensors[layer.output]

    def is_narrow(self, layer: Layer) -> bool:
        """Whether outputs, bytes, keep to less than their type holds."""
        return self._kept_between(layer) != BYTES[self.output(layer).dtype]

    def scaling(self, layer: Layer) -> str:
        """How sums of products become bytes: which of the kernels' ways is exact.

        "signed" ones round sums below zero otherwise, as TFLite's convolutions do, "narrow" ones are clamped further
        than their type does; "general" stands for both, "wide" for more bits, and "float" for real numbers. "loops" are
        left to plain loops, since no kernel is exact.
        """
        if layer.name not in self._scalings:
            self._scalings[layer.name] = self._found(layer)
        return self._scalings[layer.name]

    def is_side_show(self, layer: Layer) -> bool:
        """Whether a dense layer is left to the kernel of convolutions, to save code."""
        return self._has_conv and self.network.macs(layer) * dsp.SMALL < self._macs

    @cached_property
    def _macs(self) -> int:
        return self.network.total_macs

    @cached_property
    def _has_conv(self) -> bool:
        return any(isinstance(layer.op, Conv2d) and layer.op.groups == 1 for layer in self.network.layers)

    def _found(self, layer: Layer) -> str:
        site = self._site(layer)
        sums = requantised(site)
        if sums is None:
            return "loops"
        is_dsp = self.target.family is Family.DSP
        if not self.exact or (
            is_dsp and self.network.arithmetic is Arithmetic.TFLITE
        ):  # a kernel takes almost all
            return (
                "signed"
                if sums.drop_bits is not None
                else "narrow"
                if is_dsp and self.is_narrow(layer)
                else "plain"
            )
        if isinstance(layer.op, Conv2d) and layer.op.groups > 1:
            factors = factors_of(site)
            return "loops" if factors is None else "signed" if factors.has_sign else "plain"
        if is_dsp:
            is_raw = isinstance(layer.op, Dense)
            is_unsigned = is_raw and self.input(layer).dtype is DType.UINT8
            numbers = numbers_of(site, sums, missing(sums, is_raw), is_unsigned)
            return numbers.kind if numbers else "loops"
        if not has_products(site):
            return "loops"
        return "plain" if sums.drop_bits is None else "signed"

    def _kept_between(self, layer: Layer) -> tuple[int, int]:
        """The stored values between which the activation keeps the output."""
        if layer.name not in self._limits:
            self._limits[layer.name] = _limits(self.output(layer), layer, self.network.arithmetic)
        return self._limits[layer.name]

    def _site(self, layer: Layer) -> Site:
        """The whole layer as emitters see it, wherever it may lie."""
        y = self.output(layer)
        return Site(
            facts=LayerFacts(self.network, layer, self.target, Options()),
            most=y.shape,
            bounds=tuple((0, size) for size in y.shape),
            ranges=(ChannelRange((0, y.shape[-1])),),
            sweep=Sweep.FORWARD,
            inputs=tuple(self._place(self.network.tensors[name]) for name in layer.inputs),
            output=self._place(y),
            plane=0,
            also=frozenset(),
            dynamic=None,
        )

    def _place(self, tensor: Tensor) -> Placement:
        memory = None if tensor.name in self.network.constants else "ram"
        return Placement(tensor, dense_strides(tensor), memory=memory)


def _limits(y: Tensor, layer: Layer, arithmetic: Arithmetic) -> tuple[int, int]:
    low, high = BYTES[y.dtype]
    activation = getattr(layer.op, "activation", None)
    if not isinstance(activation, Clamp) or y.quant is None:
        return low, high
    if arithmetic is Arithmetic.TFLITE:
        return activation_range(activation, y)
    first, last = (int(np.clip(number(v, y), low, high)) for v in (activation.low, activation.high))
    return first, last
