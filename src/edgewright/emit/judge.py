"""Whose results the emitted code is compared with: the model's own runtime, or our kernels where that cannot judge."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod

import numpy as np

from ..errors import EdgewrightError
from ..network import Arithmetic, Array, Layer, Network, Tensor
from ..network.interface import file_outputs, stored_inputs
from ..network.kernels import execute
from ..network.kernels.contraction import contracted, may_be_contracted
from ..network.layerwise import Layerwise, compare_layers
from ..network.operators import Conv2d, Dense, DynamicQuantize, Lrn, Quantize, Reduce, ReduceKind, Reshape
from ..network.reference import Reference, compare, reference
from ..program.options import Options, Rounding

Source = str | os.PathLike[str] | bytes


@dataclass(frozen=True)
class Judge:
    """Who judges, and the outputs for inputs: both as the model file has them, in our layout."""

    name: str
    run: Callable[[Mapping[str, Array]], dict[str, Array]]
    notes: Sequence[str] = ()  # complete once it has run
    # (inputs, outputs) -> the layers one by one; None where nothing but the outputs is to be seen, or they suffice.
    by_layers: Callable[[Mapping[str, Array], Mapping[str, Array]], Layerwise] | None = None
    missing: str = ""  # why it is not the model's own runtime that judges, and what to do about it


def judge(source: Source | None, network: Network, options: Options) -> Judge:
    """The runtime that the file was made for; our own numpy kernels where it is absent or rounds otherwise."""
    ours = "edgewright's own reference kernels"
    if options.rounding is Rounding.TFLM and network.arithmetic is Arithmetic.TFLITE:
        rounded = rounded_twice(network)
        note = "compared with our kernels under TFLM's rounding, from which LiteRT differs by a step now and then"
        return Judge(ours, partial(_executed, rounded), (note,))
    if source is None:
        return Judge(ours, partial(_executed, network))
    if network.arithmetic is Arithmetic.TFLITE and (wrong := _wrong_in_litert(network)):
        return Judge(ours, partial(_executed, network), missing=wrong)
    try:
        truth = reference(source, network)
    except EdgewrightError as error:
        return Judge(ours, partial(_executed, network), missing=str(error))
    if network.arithmetic is Arithmetic.TFLITE:
        notes: list[str] = []
        run = partial(_as_on_x86, network, truth, notes) if may_be_contracted(network) else truth.run
        by_layers = partial(compare_layers, network, truth) if _stores_real_numbers(network) else None
        return Judge("LiteRT's reference kernels", run, notes, by_layers)
    steps = any(tensor.quant is not None for tensor in network.tensors.values())
    by_layers = partial(compare_layers, network, truth) if steps else None
    return Judge("onnxruntime", truth.run, by_layers=by_layers)


def _wrong_in_litert(network: Network) -> str:
    """Why LiteRT's reference kernels cannot judge: two of them do not compute what they are defined to."""
    for layer in network.layers:
        match layer.op:
            case Reduce(kind=ReduceKind.SUM) if network.tensors[layer.inputs[0]].quant is not None:
                return f"LiteRT's reference kernels write no quantised SUM, such as '{layer.name}'"
            case Lrn():
                return f"LiteRT's reference kernel for '{layer.name}' leaves out the last channel of each window"
            case _:
                pass
    return ""


def _stores_real_numbers(network: Network) -> bool:
    """Whether real numbers are quantised that layers compute, and not just inputs: near ties last bits decide."""
    storing = [layer for layer in network.layers if isinstance(layer.op, Quantize | DynamicQuantize)]
    return any(
        network.tensors[layer.inputs[0]].dtype.is_float and layer.inputs[0] in network.producers for layer in storing
    )


def _as_on_x86(network: Network, truth: Reference, notes: list[str], inputs: Mapping[str, Array]) -> dict[str, Array]:
    """What LiteRT gives, or would give on x86-64 if on this processor it contracts products and sums."""
    theirs, ours = truth.run(inputs), _executed(network, inputs)
    if compare(network, ours, theirs).passes:
        return theirs
    with contracted():
        here = _executed(network, inputs)
    if not compare(network, here, theirs).passes:
        return theirs
    note = f"LiteRT rounds otherwise on this processor, in {_contracted_layers(network, inputs)}; compared with x86-64"
    if note not in notes:
        notes.append(note)
    return ours


def _contracted_layers(network: Network, inputs: Mapping[str, Array]) -> str:
    """The layers with which the difference begins."""
    stored = stored_inputs(network, inputs)
    ours = execute(network, stored, keep=network.tensors)
    with contracted():
        theirs = execute(network, stored, keep=network.tensors)
    changed = {name for name, value in ours.items() if not np.array_equal(value, theirs[name])}
    first = [layer.name for layer in network.layers if layer.output in changed and not changed & {*layer.inputs}]
    return ", ".join(f"layer '{name}'" for name in first)


def _executed(network: Network, inputs: Mapping[str, Array]) -> dict[str, Array]:
    return file_outputs(network, execute(network, stored_inputs(network, inputs)))


def rounded_twice(network: Network) -> Network:
    """The network with its quantised dense layers as 1x1 convolutions, which round as TFLM's dense layers do."""
    layers: list[Layer] = []
    tensors, constants = dict(network.tensors), dict(network.constants)
    for layer in network.layers:
        x, y = network.tensors[layer.inputs[0]], network.tensors[layer.output]
        if not isinstance(layer.op, Dense) or x.quant is None or y.quant is None or x.dtype.is_float:
            layers.append(layer)
            continue
        weights = network.tensors[layer.inputs[1]]
        pixels = prod(x.shape[:-1])
        flat = _reshaped(x, f"{layer.name}:pixels", (1, pixels, 1, x.shape[-1]))
        kernel = _reshaped(weights, f"{layer.name}:kernel", (weights.shape[0], 1, 1, x.shape[-1]))
        image = _reshaped(y, f"{layer.name}:image", (1, pixels, 1, y.shape[-1]))
        tensors |= {t.name: t for t in (flat, kernel, image)}
        constants[kernel.name] = network.constants[weights.name].reshape(kernel.shape)
        op = Conv2d(activation=layer.op.activation)
        layers += [
            Layer(flat.name, Reshape(flat.shape), (x.name,), flat.name),
            Layer(image.name, op, (flat.name, kernel.name, *layer.inputs[2:]), image.name),
            Layer(layer.name, Reshape(y.shape), (image.name,), y.name),
        ]
    return replace(network, layers=tuple(layers), tensors=tensors, constants=constants)


def _reshaped(tensor: Tensor, name: str, shape: tuple[int, ...]) -> Tensor:
    return replace(tensor, name=name, shape=shape)
