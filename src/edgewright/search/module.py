"""The PyTorch module of a candidate, and its state as numpy arrays. PyTorch is loaded on first use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from ..errors import InputError
from ..samples.builder import same_pads
from .architecture import INPUT, CnnArchitecture, PrimitiveKind, PrimitiveLayer
from .fake_quantised import fake_values, fake_weights
from .model import Range, Scaled
from .weights import (
    BATCH_NORM_EPSILON,
    BIAS,
    KERNEL,
    MEAN,
    SCALE,
    SHIFT,
    VARIANCE,
    FloatArray,
    LayerWeights,
    State,
    folded,
    fresh_state,
)

# Names that torch has for the arrays of a state: of convolutions, and of batch normalisations.
LAYER_ARRAYS = {KERNEL: "weight", BIAS: "bias"}
NORM_ARRAYS = {SCALE: "weight", SHIFT: "bias", MEAN: "running_mean", VARIANCE: "running_var"}


def torch_module() -> Any:
    """PyTorch itself; an error names the extra that brings it."""
    try:
        return import_module("torch")
    except ImportError as error:
        raise InputError("candidates are trained with PyTorch: pip install 'edgewright[search]'") from error


def module_of(architecture: CnnArchitecture, seed: int = 0) -> Any:
    """A torch.nn.Module on (batch, channels, height, width), with the seed's fresh weights."""
    module = _module_class()(architecture)
    load_state(module, fresh_state(architecture, seed))
    return module


def state_of(module: Any) -> dict[str, FloatArray]:
    """The arrays of a module, by the names that `weights.state_shapes` gives."""
    return {name: tensor.detach().cpu().numpy().copy() for name, tensor in _tensors(module)}


def load_state(module: Any, state: State) -> None:
    """Puts the arrays into a module of the same architecture."""
    torch = torch_module()
    with torch.no_grad():
        for name, tensor in _tensors(module):
            tensor.copy_(torch.from_numpy(np.ascontiguousarray(state[name])))


def weights_of(module: Any) -> dict[str, LayerWeights]:
    """The weights for inference, batch normalisations folded."""
    return folded(module.architecture, state_of(module))


def ranges_of(module: Any, batches: Iterable[FloatArray]) -> dict[str, Range]:
    """The least and largest value of the input and each layer's output over batches of frames."""
    torch = torch_module()
    was_training = module.training
    module.eval()
    found: dict[str, Range] = {}
    with torch.no_grad():
        device = next(module.parameters()).device
        for frames in batches:
            for name, tensor in module.tensors(torch.from_numpy(frames).to(device)).items():
                low, high = found.get(name, (0.0, 0.0))
                found[name] = (min(low, float(tensor.min())), max(high, float(tensor.max())))
    module.train(was_training)
    return found


def _tensors(module: Any) -> Iterable[tuple[str, Any]]:
    """The names of a state with the torch tensors that hold their values."""
    for layer in module.architecture.layers():
        if layer.weight_shape is None:
            continue
        for parts, arrays in ((module.layers, LAYER_ARRAYS), (module.norms, NORM_ARRAYS)):
            key = _key(layer)
            if key in parts:
                for array, theirs in arrays.items():
                    if (tensor := getattr(parts[key], theirs)) is not None:
                        yield f"{layer.name}.{array}", tensor.data


def _pads(layer: PrimitiveLayer) -> tuple[int, int, int, int]:
    """Top, left, bottom, right of a layer with weights."""
    return same_pads(*layer.source[:2], layer.kernel, layer.stride)


def _key(layer: PrimitiveLayer) -> str:
    return layer.name.replace(".", "_")  # torch allows no points


@cache
def _module_class() -> type[Any]:
    """The class, made once PyTorch is loaded."""
    torch = torch_module()
    nn, functional = torch.nn, torch.nn.functional
    base: Any = nn.Module

    class CandidateModule(base):  # type: ignore[misc]
        """The layers of an architecture. Dense layers are convolutions over their whole input."""

        def __init__(self, architecture: CnnArchitecture) -> None:
            super().__init__()
            self.architecture = architecture
            self.scales: Mapping[str, Scaled] = {}  # of tensors; given, the module computes as in int8
            self.layers, self.norms = nn.ModuleDict(), nn.ModuleDict()
            for layer in architecture.layers():
                if (shape := layer.weight_shape) is None:
                    continue
                outputs, _, *kernel = shape
                groups = layer.source[2] if layer.kind is PrimitiveKind.DEPTHWISE else 1
                self.layers[_key(layer)] = nn.Conv2d(
                    layer.source[2],
                    outputs,
                    kernel,
                    layer.stride,
                    padding=_pads(layer)[:2],
                    groups=groups,
                    bias=not layer.is_normalised,
                )
                if layer.is_normalised:
                    self.norms[_key(layer)] = nn.BatchNorm2d(outputs, eps=BATCH_NORM_EPSILON)

        def forward(self, frames: Any) -> Any:
            """The classes' logits, (batch, classes)."""
            return self.tensors(frames)[self.architecture.layers()[-1].name].flatten(1)

        def tensors(self, frames: Any) -> dict[str, Any]:
            """The input and every layer's output, by name."""
            values = {INPUT: self.stored(INPUT, frames)}
            for layer in self.architecture.layers():
                values[layer.name] = self.stored(layer.name, self.layer(layer, [values[name] for name in layer.inputs]))
            return values

        def stored(self, name: str, value: Any) -> Any:
            return fake_values(torch, value, self.scales[name]) if self.scales else value

        def layer(self, layer: PrimitiveLayer, inputs: list[Any]) -> Any:
            value, key = inputs[0], _key(layer)
            match layer.kind:
                case PrimitiveKind.CONVOLUTION | PrimitiveKind.DEPTHWISE | PrimitiveKind.DENSE:
                    top, left, bottom, right = _pads(layer)
                    if (top, left) != (bottom, right):  # the module itself pads both sides alike
                        value = functional.pad(value, (0, right - left, 0, bottom - top))
                    value = self.weighted(key, value)
                case PrimitiveKind.MAX_POOL:
                    value = functional.max_pool2d(value, layer.kernel, layer.stride)
                case PrimitiveKind.MEAN:
                    value = value.mean((2, 3), keepdim=True)
                case PrimitiveKind.MAX:
                    value = value.amax((2, 3), keepdim=True)
                case PrimitiveKind.ADD:
                    value = value + inputs[1]
                case PrimitiveKind.MULTIPLY:
                    value = value * inputs[1]
                case PrimitiveKind.SIGMOID:
                    value = torch.sigmoid(value)
            return torch.relu(value) if layer.relu else value

        def weighted(self, key: str, value: Any) -> Any:
            """The convolution and its normalisation; in int8 both are one, with the statistics learned until then."""
            convolution, norm = self.layers[key], getattr(self.norms, key, None)
            if not self.scales:
                value = convolution(value)
                return value if norm is None else norm(value)
            kernel, bias = convolution.weight, convolution.bias
            if norm is not None:
                factor = norm.weight / torch.sqrt(norm.running_var + norm.eps)
                kernel, bias = kernel * factor[:, None, None, None], norm.bias - norm.running_mean * factor
            kernel = fake_weights(torch, kernel)
            return functional.conv2d(
                value, kernel, bias, convolution.stride, convolution.padding, groups=convolution.groups
            )

    return CandidateModule
