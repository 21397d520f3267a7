"""Trains ONNX models by PyTorch (`pip install edgewright[gpu]`): seeded, for benchmarks that need trained networks.

The ONNX graph is the only description of a network: its nodes are carried out by PyTorch, its initializers are what is
learned. Where it has several outputs, each gives class scores, and the sum of their losses is minimised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import onnx
from onnx import helper, numpy_helper

from edgewright.errors import InputError
from edgewright.samples.builder import LINEAR, ModelBuilder
from labelled_data import LabelledData, Samples

try:
    import torch
    from torch.nn import functional as F  # noqa: N812, its usual name
except ImportError as error:
    raise SystemExit("this benchmark trains networks with PyTorch: pip install edgewright[gpu]") from error

Layer = tuple[int, int]  # channels, stride
PLAIN: Mapping[str, Sequence[Layer]] = {
    "tiny": ((2, 2), (4, 2)),
    "small": ((4, 2), (8, 2)),
    "middle": ((8, 2), (16, 2), (32, 2)),
    "large": ((16, 1), (32, 2), (32, 2)),
}
BATCH = 64
RATE = 3e-3
DECAY = 1e-2
SHIFT = 2  # px


def plain_cnn(name: str, data: LabelledData) -> onnx.ModelProto:
    """The chain of convolutions of that name in `PLAIN`, which ends in class scores; weights are seeded by the name."""
    net = ModelBuilder(name)
    x = net.input(1, *data.shape)
    for channels, stride in PLAIN[name]:
        x = convolved(net, x, channels, stride)
    return net.model(class_scores(net, x, data.classes, "scores"))


def convolved(net: ModelBuilder, x: str, channels: int, stride: int = 1) -> str:
    """A convolution of three taps along each axis that has more than one element, with ReLU."""
    _, _, height, width = net.shape(x)
    taps, steps = zip(*((3, stride) if size > 1 else (1, 1) for size in (height, width)), strict=True)
    return net.relu(net.conv(x, channels, taps, steps))


def class_scores(net: ModelBuilder, x: str, classes: int, name: str) -> str:
    """A product of all pixels: a mean over the image takes far longer to train."""
    return net.dense(net.node("Flatten", x, axis=1), classes, gain=LINEAR, name=name)


def trained(
    model: onnx.ModelProto, data: LabelledData, *, steps: int, seed: int, folder: Path | None = None
) -> onnx.ModelProto:
    """The model with weights learned in `steps` batches; large images are moved by up to two pixels, at random.

    The same seed gives the same weights on one kind of device. With `folder`, a model that was trained before is read
    from there, and one that was not is left there.
    """
    file = folder and folder / f"{data.name}-{model.graph.name}-{steps}-{seed}.onnx"
    if file is not None and file.exists():
        return onnx.load(file)
    result = _learned(model, data.train, steps, seed, SHIFT if min(data.shape[1:]) > 16 else 0)
    if file is not None:
        onnx.save(result, file)
    return result


def _learned(model: onnx.ModelProto, data: Samples, steps: int, seed: int, shift: int) -> onnx.ModelProto:
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(True)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    network = _TorchModel(model, device)
    x, y = torch.from_numpy(data.x).to(device), torch.from_numpy(data.y).to(device)
    optimiser = torch.optim.AdamW(network.weights.values(), RATE, weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, steps)
    for picked in islice(_batches(len(data)), steps):
        batch = _moved(x[picked], shift) if shift else x[picked]
        loss = sum(F.cross_entropy(scores, y[picked]) for scores in network(batch))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    return network.model()


class _TorchModel:
    def __init__(self, model: onnx.ModelProto, device: torch.device) -> None:
        self._source = model
        self._input = model.graph.input[0].name
        self._outputs = [value.name for value in model.graph.output]
        self.weights = {
            tensor.name: torch.tensor(numpy_helper.to_array(tensor), device=device, requires_grad=True)
            for tensor in model.graph.initializer
        }

    def __call__(self, x: torch.Tensor) -> list[torch.Tensor]:
        values = {**self.weights, self._input: x}
        for node in self._source.graph.node:
            if node.op_type not in _OPERATORS:
                raise InputError(f"{node.op_type} is not trained here; expected one of {', '.join(_OPERATORS)}")
            attributes = {each.name: helper.get_attribute_value(each) for each in node.attribute}
            values[node.output[0]] = _OPERATORS[node.op_type]([values[name] for name in node.input], attributes)
        return [values[name] for name in self._outputs]

    def model(self) -> onnx.ModelProto:
        result = onnx.ModelProto()
        result.CopyFrom(self._source)
        for tensor in result.graph.initializer:
            values = self.weights[tensor.name].detach().cpu().numpy()
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
        return result


def _batches(count: int) -> Iterator[torch.Tensor]:
    """Without end: all samples in random order, again and again."""
    while True:
        yield from torch.randperm(count).split(BATCH)


def _moved(x: torch.Tensor, shift: int) -> torch.Tensor:
    """The images moved by up to `shift` pixels along both axes, edges repeated."""
    down, right = (int(torch.randint(2 * shift + 1, ())) for _ in range(2))
    height, width = x.shape[2:]
    return F.pad(x, (shift, shift, shift, shift), "replicate")[:, :, down : down + height, right : right + width]


def _conv(inputs: list[torch.Tensor], attributes: Mapping[str, Any]) -> torch.Tensor:
    top, left, bottom, right = attributes["pads"]
    x = F.pad(inputs[0], (left, right, top, bottom))
    return F.conv2d(x, *inputs[1:], stride=attributes["strides"], groups=attributes["group"])


def _max_pool(inputs: list[torch.Tensor], attributes: Mapping[str, Any]) -> torch.Tensor:
    return F.max_pool2d(inputs[0], attributes["kernel_shape"], attributes["strides"])


_OPERATORS: Mapping[str, Callable[[list[torch.Tensor], Mapping[str, Any]], torch.Tensor]] = {
    "Conv": _conv,
    "Relu": lambda inputs, _: F.relu(inputs[0]),
    "Add": lambda inputs, _: inputs[0] + inputs[1],
    "Concat": lambda inputs, _: torch.cat(inputs, 1),
    "MaxPool": _max_pool,
    "GlobalAveragePool": lambda inputs, _: inputs[0].mean((2, 3), keepdim=True),
    "Flatten": lambda inputs, _: inputs[0].flatten(1),
    "Gemm": lambda inputs, _: F.linear(*inputs),
}
