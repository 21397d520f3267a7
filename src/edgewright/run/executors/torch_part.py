"""A part in torch, in float32: on a GPU if torch finds one, else on the worker's cores.

Shapes never change, so on a GPU the part is recorded once as a CUDA graph and replayed: one launch for all its layers.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from ...errors import InputError
from ...network import Network
from ...program.deployment import Part
from ..machine import resident_bytes
from ..ring import FrameSlot
from .torch_layers import torch_function, torch_refusal

_LAYERS = "network.json"  # in the archive, beside the numbered weights
_WARM_UP = 2  # runs before recording, in which libraries choose their algorithms


def load_torch(who: str) -> Any:
    """The module, set to full float32 precision; if it is missing, the error says how to install it."""
    try:
        import torch
    except ImportError as error:
        raise InputError(f"{who} runs in torch, which is not installed: pip install 'edgewright[gpu]'") from error
    # Otherwise products lose ten bits.
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    return torch


def write_torch_part(network: Network, path: Path) -> None:
    """Writes the network with its weights for `TorchPart`; refuses one that torch cannot execute."""
    from ...program.codec import network_to_dict

    _check(network)
    stored = np.frombuffer(json.dumps(network_to_dict(network)).encode(), np.uint8)
    arrays: dict[str, Any] = {f"w{i}": value for i, value in enumerate(network.constants.values())}
    arrays[_LAYERS] = stored
    with path.open("wb") as file:
        np.savez(file, **arrays)


def read_torch_part(path: Path) -> Network:
    from ...program.plan_file import StoredNetwork

    try:
        with np.load(path, allow_pickle=False) as archive:
            network = StoredNetwork.model_validate_json(archive[_LAYERS].tobytes()).build()
            values = {name: archive[f"w{i}"] for i, name in enumerate(network.constants)}
    except (OSError, ValueError, KeyError, BadZipFile) as error:
        raise InputError(f"'{path}' is no part for torch; build the pipeline again") from error
    _check(network)
    return replace(network, constants=values)


def _check(network: Network) -> None:
    for layer in network.layers:
        if refusal := torch_refusal(network, layer):
            raise InputError(refusal)


class TorchNetwork:
    """A network on a device with fixed input and output tensors: `compute` reads and writes them.

    For timing it can repeat the computation `times` times.
    """

    def __init__(self, torch: Any, network: Network, device: str, times: int = 1) -> None:
        self._torch, self._network, self._device, self._times = torch, network, device, times
        self._values = {name: self._placed(value) for name, value in network.constants.items()}
        self.inputs = {name: self._placed(np.zeros(network.tensors[name].shape, np.float32)) for name in network.inputs}
        last = {name: i for i, layer in enumerate(network.layers) for name in layer.inputs}
        kept = {*network.outputs, *network.constants}
        self._steps = [
            (
                torch_function(torch, device, network, layer),
                layer.inputs,
                layer.output,
                [name for name in dict.fromkeys(layer.inputs) if last[name] == i and name not in kept],
            )
            for i, layer in enumerate(network.layers)
        ]
        self.outputs: dict[str, Any] = {}
        self._graph = self._recorded() if device == "cuda" else None

    def compute(self) -> None:
        """Starts the layers; on a GPU they complete when an output is read or the device is synchronised."""
        if self._graph is None:
            self._repeat()
        else:
            self._graph.replay()

    def wait(self) -> None:
        if self._device == "cuda":
            self._torch.cuda.synchronize()

    def _placed(self, value: Any) -> Any:
        return self._torch.tensor(np.ascontiguousarray(value), device=self._device)

    def _repeat(self) -> None:
        for _ in range(self._times):
            self.outputs = self._run()

    def _run(self) -> dict[str, Any]:
        values = {**self._values, **self.inputs}
        for function, inputs, output, done in self._steps:
            values[output] = function(*(values[name] for name in inputs))
            for name in done:
                values.pop(name, None)
        return {name: values[name] for name in self._network.outputs}

    def _recorded(self) -> Any:
        """All layers as one CUDA graph; other threads may use the device meanwhile."""
        cuda = self._torch.cuda
        aside = cuda.Stream()
        with cuda.stream(aside):
            for _ in range(_WARM_UP):
                self._run()
        cuda.synchronize()
        graph = cuda.CUDAGraph()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The CUDA Graph is empty")  # a reshape alone computes nothing
            with cuda.graph(graph, capture_error_mode="thread_local"):
                self._repeat()
        return graph


class TorchPart:
    """A part for one worker, which fills its inputs from slots and copies its outputs into slots."""

    def __init__(self, part: Part, path: Path, threads: int) -> None:
        self._torch = torch = load_torch(part.where)
        network = read_torch_part(path)
        self._threads = threads
        self._is_gpu = bool(torch.cuda.is_available())
        before = self._taken()
        try:
            self._loaded = TorchNetwork(torch, network, "cuda" if self._is_gpu else "cpu")
        except torch.cuda.OutOfMemoryError as error:
            raise InputError(f"the GPU has too little memory for {part.where}; give it fewer layers") from error
        self.memory_estimate = max(0, self._taken() - before)
        self._names = part.network.inputs, part.network.outputs

    def _taken(self) -> int:
        return int(self._torch.cuda.memory_reserved()) if self._is_gpu else resident_bytes()

    def run(self, inputs: Sequence[FrameSlot], outputs: Sequence[FrameSlot]) -> None:
        if not self._is_gpu:
            self._torch.set_num_threads(self._threads)
        for name, slot in zip(self._names[0], inputs, strict=True):
            self._loaded.inputs[name].copy_(self._torch.from_numpy(slot.array))
        self._loaded.compute()
        for name, slot in zip(self._names[1], outputs, strict=True):
            self._torch.from_numpy(slot.array).copy_(self._loaded.outputs[name])

    def close(self) -> None:
        """Device memory is freed with the tensors."""
