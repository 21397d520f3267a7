"""Fine-tuning of a narrowed network in PyTorch, towards the outputs of the original network and the labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError, Unsupported
from ..network import Array, Network, Shape
from ..network import operators as ops
from ..run.executors.torch_layers import torch_function, torch_refusal
from .model_data import ModelData

BATCH = 32
TRAINED = (ops.Conv2d, ops.Dense, ops.BatchNorm)
LEAST_SCALE = 1e-4  # of weights
LEAST = 1e-7  # of a probability whose logarithm is taken


def torch_for_training() -> Any:
    """PyTorch; an error names the extra that brings it."""
    try:
        import torch
    except ImportError as error:
        raise InputError(
            "narrower models are trained with PyTorch: pip install 'edgewright[search]', or set shrink.epochs = 0"
        ) from error
    return torch


@contextmanager
def _on_one_thread() -> Iterator[None]:
    torch = torch_for_training()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@_on_one_thread()
def fine_tune(
    network: Network,
    data: ModelData,
    targets: Sequence[Array],
    epochs: float,
    learning_rate: float,
    seed: int,
) -> Network:
    """The network after training towards `targets`, the outputs of the original network, and the labels, if any.

    It trains on one thread, in an order that the seed decides: the same data give the same weights.
    """
    torch = torch_for_training()
    for layer in network.layers:
        if refusal := torch_refusal(network, layer):
            raise Unsupported(f"'{network.name}' cannot be trained: {refusal.partition(',')[0]}; set shrink.epochs = 0")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    values = {name: torch.from_numpy(np.array(value)).to(device) for name, value in network.constants.items()}
    names = sorted({name for layer in network.layers if isinstance(layer.op, TRAINED) for name in layer.inputs[1:]})
    weights = {name: values[name].requires_grad_() for name in names if name in values}
    optimiser = torch.optim.Adam([{"params": [one], "lr": learning_rate * _scale(one)} for one in weights.values()])
    run, random, size = _forward(torch, device, network, values), np.random.default_rng(seed), min(BATCH, len(data))
    steps = max(1, round(epochs * len(data) / size))
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    order: list[int] = []
    for _ in range(steps):
        if len(order) < size:
            order = random.permutation(len(data)).tolist()
        chosen, order = order[:size], order[size:]
        optimiser.zero_grad()
        outputs = run({name: _batch(torch, device, data, name, chosen) for name in network.inputs}, size)
        loss = _loss(torch, device, network, outputs, data, targets, chosen)
        loss.backward()
        optimiser.step()
        schedule.step()
    constants: dict[str, Array] = {name: value.detach().cpu().numpy().copy() for name, value in values.items()}
    if not all(np.isfinite(constants[name]).all() for name in weights):
        raise InputError(f"the training of '{network.name}' diverged; set a smaller shrink.learning_rate")
    return replace(network, constants={**network.constants, **{name: constants[name] for name in weights}})


def _scale(weights: Any) -> float:
    """The root mean square of weights. Learning rates are shares of it, so that they suit any scale of the inputs."""
    return max(float(weights.detach().square().mean().sqrt()), LEAST_SCALE)


def _batch(torch: Any, device: str, data: ModelData, name: str, chosen: Sequence[int]) -> Any:
    return torch.from_numpy(np.concatenate([data.samples[at][name] for at in chosen])).to(device)


def _loss(
    torch: Any,
    device: str,
    network: Network,
    outputs: Any,
    data: ModelData,
    targets: Sequence[Array],
    chosen: Sequence[int],
) -> Any:
    functional = torch.nn.functional
    wanted = torch.from_numpy(np.concatenate([targets[at] for at in chosen])).to(device)
    if data.labels is None:
        return functional.mse_loss(outputs, wanted)
    labels: npt.NDArray[np.int64] = data.labels[list(chosen)]
    scores, wanted = outputs.reshape(len(chosen), -1), wanted.reshape(len(chosen), -1)
    if isinstance(network.producers[network.outputs[0]].op, ops.Softmax):
        scores = torch.log(scores.clamp_min(LEAST))
    else:
        scores, wanted = torch.log_softmax(scores, 1), torch.softmax(wanted, 1)
    return functional.nll_loss(scores, torch.from_numpy(labels).to(device)) - (wanted * scores).sum(1).mean()


def _forward(
    torch: Any, device: str, network: Network, values: Mapping[str, Any]
) -> Callable[[Mapping[str, Any], int], Any]:
    """The first output of a batch of samples."""
    made: dict[int, list[Any]] = {}

    def run(inputs: Mapping[str, Any], size: int) -> Any:
        if size not in made:
            batched = with_batch(network, size)
            made[size] = [torch_function(torch, device, batched, layer) for layer in batched.layers]
        known = {**values, **inputs}
        for layer, function in zip(network.layers, made[size], strict=True):
            known[layer.output] = function(*(known[name] for name in layer.inputs))
        return known[network.outputs[0]]

    return run


def with_batch(network: Network, size: int) -> Network:
    """The network, made for one sample, for `size` samples at a time: the first axis of all tensors grows."""
    tensors = dict(network.tensors)
    for name, tensor in network.tensors.items():
        if name not in network.constants:
            if tensor.shape[:1] != (1,):
                raise Unsupported(f"'{network.name}' cannot be trained: tensor '{name}' has no axis of samples")
            tensors[name] = replace(tensor, shape=_batched(tensor.shape, size))
    layers = tuple(
        replace(layer, op=replace(layer.op, shape=_batched(layer.op.shape, size)))
        if isinstance(layer.op, ops.Reshape)
        else layer
        for layer in network.layers
    )
    return replace(network, tensors=tensors, layers=layers)


def _batched(shape: Shape, size: int) -> Shape:
    return (size, *shape[1:])
