"""Times of onnxruntime: for the whole network, and for each layer as a separate model.

Separate layers begin and end in our layout, so they take longer than inside the network: the whole frame is used to
correct them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ..errors import EdgewrightError, InputError
from ..network import Network, random_inputs
from ..network.onnx_writer import to_onnx
from ..network.parts import subnetwork
from ..network.reference import to_file_layout
from ..platform.profile import FrameTime, LayerTime
from .executors.onnx_session import open_session
from .machine import CoreKind, on_cores
from .statistics import call_times, median_and_spread

EXECUTOR = "onnxruntime"
_WARM_UP = 3


def session_times(
    network: Network, kinds: Mapping[str, CoreKind], lanes: Sequence[int], repeats: int
) -> tuple[Mapping[str, list[LayerTime]], list[FrameTime]]:
    """The times of the layers and the whole network on each processor, by name, for a number of threads.

    A layer that onnxruntime does not support has no time.
    """
    layers: dict[str, list[LayerTime]] = {layer.name: [] for layer in network.layers}
    frames: list[FrameTime] = []
    models = {layer.name: _model(subnetwork(network, [layer.name])) for layer in network.layers}
    whole = _model(network)
    for name, kind in kinds.items():
        for count in (n for n in lanes if n <= len(kind.cores)):
            for layer, model in models.items():
                if model and (measured := _measured(model, kind.cores[:count], repeats)):
                    seconds, spread = measured
                    layers[layer].append(
                        LayerTime(processor=name, executor=EXECUTOR, lanes=count, seconds=seconds, spread=spread)
                    )
            if whole and (measured := _measured(whole, kind.cores[:count], repeats)):
                seconds, spread = measured
                frames.append(FrameTime(processor=name, executor=EXECUTOR, lanes=count, seconds=seconds, spread=spread))
    return layers, frames


def session_run(network: Network) -> Callable[[], object]:
    """A function that runs one frame of the whole network in its own session, in the calling thread."""
    model = _model(network)
    if model is None:
        raise InputError(f"network '{network.name}' has layers that ONNX does not know, so onnxruntime cannot run it")
    session = open_session(model[0], 1)
    return lambda: session.run(None, model[1])


_Model = tuple[bytes, Mapping[str, np.ndarray[tuple[int, ...], np.dtype[np.generic]]]]


def _model(network: Network) -> _Model | None:
    """A network as an ONNX model, with values for its inputs; None if ONNX has no such layer."""
    try:
        content = to_onnx(network).SerializeToString()
    except EdgewrightError:
        return None
    values = random_inputs(network)
    feed = {name: np.ascontiguousarray(to_file_layout(network, name, value)) for name, value in values.items()}
    return content, feed


def _measured(model: _Model, cores: tuple[int, ...], repeats: int) -> tuple[float, float] | None:
    """Median and spread of a run on these cores; None if onnxruntime refuses the model."""
    content, feed = model

    def work() -> list[float] | None:
        try:
            session = open_session(content, len(cores))
            for _ in range(_WARM_UP):
                session.run(None, feed)
        except InputError:
            raise
        except Exception:  # onnxruntime has many classes of errors
            return None
        clock: Callable[[], float] = time.perf_counter if len(cores) > 1 else time.thread_time
        return call_times(lambda: session.run(None, feed), repeats, clock)

    times = on_cores(cores, work)
    return median_and_spread(times) if times else None
