"""What is known of a network's layers on a target before any part of them is looked at; each found once."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ..emit.constants import Constants
from ..emit.operators import blocked, dsp
from ..emit.operators.depthwise_factors import factors_of
from ..emit.operators.dsp_numbers import numbers_of
from ..emit.options import Options
from ..emit.place import Place
from ..emit.site import Site, Unit
from ..emit.sums import Sums, sums_of
from ..emit.target import Family, Target
from ..network import Arithmetic, DType, Layer, Network, Tensor
from ..network.kernels.scales import number
from ..network.kernels.tflite_scales import activation_range
from ..network.operators import Clamp, Conv2d, Dense
from ..program import Sweep

BYTES = {DType.INT8: (-128, 127), DType.UINT8: (0, 255)}


class Facts:
    """A network on a target."""

    def __init__(self, network: Network, target: Target) -> None:
        self.network, self.target = network, target
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

        TFLite's convolutions round twice, which shows where sums below zero are stored: "signed". "narrow" ones are
        clamped further than their type does, all others are "plain". With onnxruntime's rounding it is "onnx" where
        integers do, else "float". "loops" are left to plain loops, since no kernel takes them.
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
        sums = sums_of(site)
        if sums is None:
            return "loops"
        if self.network.arithmetic is Arithmetic.ONNX:
            return self._found_onnx(layer, site, sums)
        y = self.output(layer)
        is_rounded_twice = y.quant is not None and self._kept_between(layer)[0] < y.quant.zero[0]
        if is_rounded_twice and not isinstance(layer.op, Dense):
            return "signed"
        return "narrow" if self.is_narrow(layer) else "plain"

    def _found_onnx(self, layer: Layer, site: Site, sums: Sums) -> str:
        if isinstance(layer.op, Conv2d) and layer.op.groups > 1:
            return "onnx" if factors_of(site) else "loops"
        if self.target.family is Family.DSP:
            found = numbers_of(site, sums, sums.bias, is_unsigned=False)
            return "loops" if found is None else "float" if found.kind == "float" else "onnx"
        return "onnx" if blocked.products_of(site) else "loops"

    def _kept_between(self, layer: Layer) -> tuple[int, int]:
        """The stored values between which the activation keeps the output."""
        if layer.name not in self._limits:
            self._limits[layer.name] = _limits(self.output(layer), layer, self.network.arithmetic)
        return self._limits[layer.name]

    def _site(self, layer: Layer) -> Site:
        """The whole layer as emitters see it, wherever it may lie."""
        y = self.output(layer)
        return Site(
            unit=Unit("cost", self.target, Options(), Constants("cost")),
            network=self.network,
            layer=layer,
            region=tuple((0, size) for size in y.shape),
            most=y.shape,
            sweep=Sweep.FORWARD,
            inputs=tuple(self._place(self.network.tensors[name]) for name in layer.inputs),
            output=self._place(y),
            hole=None,
            plane=None,
            is_whole=True,
        )

    def _place(self, tensor: Tensor) -> Place:
        memory = None if tensor.name in self.network.constants else "ram"
        return Place(tensor, "p", tuple(stride // tensor.dtype.bytes for stride in tensor.strides), memory=memory)


def _limits(y: Tensor, layer: Layer, arithmetic: Arithmetic) -> tuple[int, int]:
    low, high = BYTES[y.dtype]
    activation = getattr(layer.op, "activation", None)
    if not isinstance(activation, Clamp) or y.quant is None:
        return low, high
    if arithmetic is Arithmetic.TFLITE:
        return activation_range(activation, y)
    first, last = (int(np.clip(number(v, y), low, high)) for v in (activation.low, activation.high))
    return first, last
