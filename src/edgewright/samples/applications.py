"""Applications of several networks, built by code: the models and the file that says how they run together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from importlib import resources
from pathlib import Path

import onnx

from ..files import FolderMode, output_folder, write_together
from .builder import ModelBuilder
from .flows import activity_flow
from .papers import minakova_cnn1, minakova_cnn2, minakova_scenario1, minakova_scenario2
from .quantise import quantise
from .tasks import moves


def tiny_wake() -> onnx.ModelProto:
    """A keyword spotter of three layers."""
    net = ModelBuilder("tiny_wake")
    x = net.relu(net.conv(net.input(1, 1, 12, 8), 4, 3, 2, 1, name="first"))
    return net.model(net.classifier(x, 3, name="words"))


def tiny_monitor() -> onnx.ModelProto:
    """An autoencoder of two dense layers."""
    net = ModelBuilder("tiny_monitor")
    return net.model(net.dense(net.relu(net.dense(net.input(1, 24), 6, name="encode")), 24, name="decode"))


def tiny_detect() -> onnx.ModelProto:
    """A detector whose output is a map of features."""
    net = ModelBuilder("tiny_detect")
    x = net.relu(net.conv(net.input(1, 3, 16, 16), 8, 3, 1, 1, name="first"))
    x = net.relu(net.conv(x, 8, 3, 2, 1, name="second"))
    return net.model(net.conv(x, 4, 3, 1, 1, name="map"))


def tiny_classify() -> onnx.ModelProto:
    """A classifier of the frame that the detector looks at."""
    net = ModelBuilder("tiny_classify")
    x = net.relu(net.conv(net.input(1, 3, 16, 16), 6, 3, 2, 1, name="first"))
    return net.model(net.classifier(net.relu(net.conv(x, 8, 3, 1, 1, name="second")), 5, name="classes"))


def tiny_landmarks() -> onnx.ModelProto:
    """Coordinates from a map of features."""
    net = ModelBuilder("tiny_landmarks")
    x = net.relu(net.conv(net.input(1, 4, 8, 8), 6, 3, 1, 1, name="first"))
    return net.model(net.classifier(x, 10, name="points"))


def tiny_gesture() -> onnx.ModelProto:
    """Three layers for three stages of a pipeline."""
    net = ModelBuilder("tiny_gesture")
    x = net.conv(net.input(1, 2, 10, 10), 4, 3, 1, 1, name="first")
    x = net.conv(x, 4, 3, 2, 1, name="second")
    return net.model(net.dense(net.node("Flatten", x, axis=1), 4, name="third"))


def paper_application() -> Mapping[str, str | bytes]:
    """Application of Minakova fig. 6.1: two networks, one of them a pipeline; int8."""
    return {
        "app.toml": _described("paper_application"),
        "cnn1.onnx": _stored(quantise(minakova_cnn1())),
        "cnn2.onnx": _stored(quantise(minakova_cnn2())),
    }


def paper_scenarios() -> Mapping[str, str | bytes]:
    """Scenarios of Minakova fig. 5.3, which switch at run time; int8."""
    return {
        "app.toml": _described("paper_scenarios"),
        "cnn1.onnx": _stored(minakova_scenario1()),
        "cnn2.onnx": _stored(minakova_scenario2()),
    }


def tiny_application() -> Mapping[str, str | bytes]:
    """Six tiny networks with every kind of relation."""
    models = (tiny_wake, tiny_monitor, tiny_detect, tiny_classify, tiny_landmarks, tiny_gesture)
    files = {f"{model.__name__.removeprefix('tiny_')}.onnx": _stored(model()) for model in models}
    return {"app.toml": _described("tiny_application"), **files}


def uav_network(name: str, channels: int) -> onnx.ModelProto:
    """An image classifier of three convolutions, as wide as asked."""
    net = ModelBuilder(f"uav_{name}")
    x = net.relu(net.conv(net.input(1, 3, 32, 32), channels, 3, 2, 1, name="first"))
    x = net.relu(net.conv(x, 2 * channels, 3, 2, 1, name="second"))
    x = net.relu(net.conv(x, 4 * channels, 3, 2, 1, name="third"))
    return net.model(net.classifier(x, 10, name="classes"))


def uav() -> Mapping[str, str | bytes]:
    """Scenarios of Minakova M 5.4: a drone's image recognition that switches with the wind, and two flights."""
    return {
        "app.toml": _described("uav"),
        "flight.toml": _described("uav_flight"),
        "gusts.toml": _described("uav_gusts"),
        "windy.onnx": _stored(uav_network("windy", 4)),
        "calm.onnx": _stored(uav_network("calm", 8)),
    }


APPLICATIONS: dict[str, Callable[[], Mapping[str, str | bytes]]] = {  # the file for the verb comes first
    "activity_flow": activity_flow,
    "moves": moves,
    "paper_application": paper_application,
    "paper_scenarios": paper_scenarios,
    "tiny_application": tiny_application,
    "uav": uav,
}


def application_names() -> tuple[str, ...]:
    return tuple(APPLICATIONS)


def describe_application(name: str) -> str:
    """What the application is, in one line."""
    return (APPLICATIONS[name].__doc__ or "").splitlines()[0]


def write_application(name: str, folder: Path | str) -> Path:
    """The path of the file that describes it, written into the folder with all others."""
    files = {Path(folder, file): content for file, content in APPLICATIONS[name]().items()}
    with ExitStack() as made:
        for parent in dict.fromkeys((Path(folder), *(path.parent for path in files))):
            made.enter_context(output_folder(parent, FolderMode.UNDO))
        write_together(files)
    return next(iter(files))


def _described(name: str) -> str:
    return (resources.files(__package__) / "app_files" / f"{name}.toml").read_text(encoding="utf-8")


def _stored(model: onnx.ModelProto) -> bytes:
    return bytes(model.SerializeToString(deterministic=True))
