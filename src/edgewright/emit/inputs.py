"""Inputs that a user brings: arrays from files, in the model file's layout or in ours."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from tokenize import TokenError
from zipfile import BadZipFile

import numpy as np

from ..errors import InputError
from ..network import Array, Network, Tensor
from ..network.reference import to_file_shape, to_our_layout

_NPY, _NPZ = b"\x93NUMPY", b"PK"  # how files begin
# What numpy and zipfile raise for a file that is not as it should be.
_DAMAGE = (
    ValueError,
    TypeError,
    EOFError,
    KeyError,
    MemoryError,
    OverflowError,
    RuntimeError,
    SyntaxError,
    TokenError,  # of the line that says type and shape, as Python 3.12 and newer read it
    BadZipFile,
    zlib.error,
)

Inputs = dict[str, Array]  # by the name of the tensor, in our layout


def load_inputs(network: Network, paths: Sequence[str | Path]) -> list[Inputs]:
    """Values for every input, once or several times: from one .npy per input in order, or an .npz with their names."""
    arrays: dict[str, Array] = {}
    files = [(path, read_arrays(Path(path))) for path in paths]
    loose = [(path, value) for path, value in files if not isinstance(value, dict)]
    for _, value in files:
        if isinstance(value, dict):
            arrays |= value
    free = [name for name in network.inputs if name not in arrays]
    if len(loose) > len(free):
        raise InputError(f"{len(loose)} arrays were given for {_listed(network.inputs)}")
    arrays |= {name: value for name, (_, value) in zip(free, loose, strict=False) if not isinstance(value, dict)}
    return given_inputs(network, arrays)


def given_inputs(network: Network, arrays: Mapping[str, Array]) -> list[Inputs]:
    """The arrays as inputs of the network; a longer first axis means several runs."""
    unknown = [name for name in arrays if name not in network.inputs]
    missing = [name for name in network.inputs if name not in arrays]
    if unknown or missing:
        wrong = f"there is no input '{unknown[0]}'" if unknown else f"no value for input '{missing[0]}'"
        raise InputError(f"{wrong}; the model has {_listed(network.inputs)}")
    samples = {name: _samples(network, _meant(network, name, arrays[name]), arrays[name]) for name in network.inputs}
    counts = {len(values) for values in samples.values()}
    if len(counts) > 1:
        raise InputError(f"inputs have different numbers of samples: {sorted(counts)}")
    return [{name: values[i] for name, values in samples.items()} for i in range(counts.pop())] if counts else []


def _meant(network: Network, name: str, value: Array) -> Tensor:
    """Stored values are told by their type; anything else is meant as the model file takes it."""
    stored = network.tensors[name]
    return stored if value.dtype == stored.dtype.numpy else network.file_tensors.get(name, stored)


def read_arrays(path: Path) -> Array | dict[str, Array]:
    """The array in a .npy file, or those in an .npz by name."""
    try:
        with path.open("rb") as file:
            is_numpy = file.read(len(_NPY)).startswith((_NPY, _NPZ))
        if not is_numpy:
            raise InputError(f"'{path}' is no array of numpy (.npy or .npz); write one with numpy.save")
        # Mapped, a false size is found before it is allocated.
        found = np.load(path, allow_pickle=False, mmap_mode="r")
        if isinstance(found, np.lib.npyio.NpzFile):
            with found:
                return dict(found)
        return np.array(found)
    except OSError as error:
        raise InputError(f"cannot read the input '{path}': {error.strerror or error}") from None
    except _DAMAGE as error:
        raise InputError(
            f"'{path}' is no array of numpy in good order: {error}; write it again with numpy.save"
        ) from None


def _samples(network: Network, tensor: Tensor, value: Array) -> list[Array]:
    """One array per run. Where both layouts have the same shape, the file's is meant."""
    theirs = to_file_shape(network, tensor.name)
    for shape in (theirs, tensor.shape):
        if value.shape == shape:
            return [_ours(network, tensor, value, shape == theirs)]
        if value.shape == shape[1:] and shape[:1] == (1,):
            return [_ours(network, tensor, value[None], shape == theirs)]
        if shape[:1] == (1,) and value.shape[1:] == shape[1:] and value.ndim == len(shape) and len(value):
            return [_ours(network, tensor, value[i : i + 1], shape == theirs) for i in range(len(value))]
    either = f"{theirs} as in the model file" + ("" if theirs == tensor.shape else f" or {tensor.shape}, channels last")
    raise InputError(f"input '{tensor.name}' must have the shape {either}; got {value.shape}")


def _ours(network: Network, tensor: Tensor, value: Array, is_theirs: bool) -> Array:
    value = to_our_layout(network, tensor.name, value) if is_theirs else value
    if not np.issubdtype(value.dtype, np.number) and value.dtype != np.bool_:
        raise InputError(f"input '{tensor.name}' must be {tensor.dtype.value}; got {value.dtype}")
    with np.errstate(invalid="ignore", over="ignore"):
        stored = np.ascontiguousarray(value).astype(tensor.dtype.numpy)
    if not tensor.dtype.is_float and not np.array_equal(stored, value):
        raise InputError(
            f"input '{tensor.name}' must be {tensor.dtype.value}; got {value.dtype} that does not fit{_hint(tensor)}"
        )
    return stored


def _hint(tensor: Tensor) -> str:
    if tensor.quant is None or tensor.quant.is_per_channel:
        return ""
    return f" (stored = round(real / {tensor.quant.scale[0]:.6g}) + {tensor.quant.zero[0]})"


def _listed(names: Sequence[str]) -> str:
    return f"{len(names)} input{'s' if len(names) != 1 else ''}: {', '.join(names)}"
