"""Every sample by name: list, describe, build and write; how each is built is left to its module."""

import inspect
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import lru_cache, wraps
from pathlib import Path
from typing import Any

import onnx

from ..errors import InputError
from ..files import FolderMode, output_folder, write_atomic
from .classics import (
    autoencoder,
    ds_cnn,
    lenet5,
    mobilenet_v1,
    mobilenet_v2,
    resnet8,
    resnet18,
    squeezenet,
)
from .papers import minakova_example, stahl_running_example, stahl_two_paths
from .quantise import Form, quantise
from .wirings import (
    randwire,
    text_classifier,
    tiny_densenet,
    tiny_inception,
    tiny_mobilenet_v3,
    unet,
)

Build = Callable[..., onnx.ModelProto]


def int8(build_float: Build) -> Build:
    """A builder with the same options whose model is quantised to int8, in QDQ form."""

    @wraps(build_float)
    def build_int8(**options: Any) -> onnx.ModelProto:
        return quantise(build_float(**options))

    build_int8.__name__ = f"{build_float.__name__}_int8"
    build_int8.__doc__ = f"{_first_line(build_float).rstrip('.')}; int8 in QDQ form."
    return build_int8


def _first_line(builder: Build) -> str:
    assert builder.__doc__
    return builder.__doc__.splitlines()[0]


SAMPLES: dict[str, Build] = {
    builder.__name__: builder
    for builder in (
        *(stahl_running_example, stahl_two_paths, minakova_example, int8(minakova_example)),
        *(ds_cnn, int8(ds_cnn), mobilenet_v1, int8(mobilenet_v1), resnet8, int8(resnet8)),
        *(autoencoder, int8(autoencoder), mobilenet_v2, int8(mobilenet_v2), resnet18, squeezenet, lenet5),
        *(tiny_inception, tiny_densenet, tiny_mobilenet_v3, unet, randwire, text_classifier),
    )
}


def names() -> tuple[str, ...]:
    """The names of all samples, in the order of the catalogue."""
    return tuple(SAMPLES)


def describe(name: str) -> str:
    """What the sample is, in one line."""
    return _first_line(_find(name))


def build(name: str, **options: Any) -> onnx.ModelProto:
    """The model of that name; options are the parameters of its builder. Same call, same bytes."""
    return onnx.load_model_from_string(_content(name, options))


def _content(name: str, options: Mapping[str, Any]) -> bytes:
    known = inspect.signature(_find(name)).parameters
    for option in options:
        if option not in known:
            offer = f"It has: {', '.join(known)}." if known else "It has none."
            raise InputError(f"sample {name!r} has no option {option!r}. {offer}")
    return _built(name, tuple(sorted(options.items())))


@lru_cache(maxsize=16)
def _built(name: str, options: tuple[tuple[str, Any], ...]) -> bytes:
    """As bytes, which nobody changes: to quantise a sample takes long."""
    return _find(name)(**dict(options)).SerializeToString(deterministic=True)


def write(name: str, folder: Path | str, **options: Any) -> Path:
    """The path of NAME.onnx, written into the folder, which is made if need be; or of the .onnx file that was named."""
    folder = Path(folder)
    path = folder if folder.suffix.lower() == ".onnx" and not folder.is_dir() else folder / f"{name}.onnx"
    data = _content(name, options)
    with output_folder(path.parent, FolderMode.UNDO):
        return write_atomic(path, data)


def quantised(sample: str | onnx.ModelProto, form: Form = "qdq") -> onnx.ModelProto:
    """The sample, or any float32 model of fixed shapes, with int8 weights and activations."""
    return quantise(build(sample) if isinstance(sample, str) else sample, form)


def _find(name: str) -> Build:
    if name not in SAMPLES:
        close = get_close_matches(name, SAMPLES, n=3)
        hint = f"Did you mean {' or '.join(close)}?" if close else f"Choose one of: {', '.join(SAMPLES)}."
        raise InputError(f"unknown sample {name!r}. {hint}")
    return SAMPLES[name]
