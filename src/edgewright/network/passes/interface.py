"""Leaves the conversions at a network's ends to its caller: stored integers are passed in and out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...errors import InputError
from ..interface import conversion
from ..network import Layer, Network, check
from ..operators import Dequantize, Quantize, Reshape, Transpose
from ..tensor import Tensor
from .draft import Draft

MOVES = (Reshape, Transpose)  # allowed between an end and its conversion, since they treat all elements alike


def with_quantised_interface(network: Network, inputs: bool = True, outputs: bool = False) -> Network:
    """The network without the layers that quantise its inputs or dequantise its outputs.

    Names and layouts stay; `file_tensors` and the notes say what the caller must convert. Ends without such a layer
    stay as they are; if there is none at all, an error is raised.
    """
    if inputs:
        network = _without(network, network.inputs, is_input=True)
    if outputs:
        network = _without(network, network.outputs, is_input=False)
    return check(network)


@dataclass(frozen=True)
class _End:
    """An input or an output, the adjacent layers that only convert, and those between that only move data."""

    name: str
    moved: tuple[str, ...]  # tensors between the conversion and the outside, including the input or output itself
    layers: tuple[Layer, ...]
    stored: Tensor


def _without(network: Network, names: tuple[str, ...], is_input: bool) -> Network:
    find, drop = (_entry, _without_first) if is_input else (_exit, _without_last)
    reasons = []
    dropped = False
    for name in dict.fromkeys(names):
        end = find(network, name)
        if isinstance(end, str):
            reasons.append(f"'{name}' {end}")
        else:
            network, dropped = _noted(drop(network, end), network.tensors[name]), True
    if not dropped:
        what = "input" if is_input else "output"
        raise InputError(
            f"'{network.name}' has no {what} whose quantisation could be left to the caller: {'; '.join(reasons)}. "
            f"Leave out --quantised-{what}"
        )
    return network


def _noted(network: Network, theirs: Tensor) -> Network:
    name = theirs.name
    known = replace(network, file_tensors={**network.file_tensors, name: theirs})
    way = "output '{}' is given" if name in network.outputs else "input '{}' is taken"
    note = f"{way.format(name)} as {known.tensors[name].dtype.value}: {conversion(known, name)}"
    return replace(known, notes=(*network.notes, note))


def _entry(network: Network, name: str) -> _End | str:
    """Where the input is quantised; or a sentence on why it is not."""
    theirs, moved = network.tensors[name], [name]
    if not theirs.dtype.is_float and theirs.quant is None:
        return f"holds {theirs.dtype.value} that stand for themselves"
    while moved[-1] not in network.outputs:
        readers = network.readers[moved[-1]]
        if len(readers) == 1 and isinstance(readers[0].op, MOVES):
            moved.append(readers[0].output)
            continue
        kinds = {(network.tensors[r.output].dtype, network.tensors[r.output].quant) for r in readers}
        if not all(isinstance(layer.op, Quantize) for layer in readers) or len(kinds) != 1:
            return _otherwise(theirs, readers)
        if any(layer.output in network.outputs for layer in readers):
            break
        stored = network.tensors[readers[0].output]
        return _refused(theirs, stored) or _End(name, tuple(moved), readers, stored)
    return "leads straight to an output"


def _otherwise(theirs: Tensor, readers: tuple[Layer, ...]) -> str:
    if not theirs.dtype.is_float:
        return f"is {theirs.dtype.value} already"
    shown = " and ".join(f"'{layer.name}' ({type(layer.op).__name__})" for layer in readers[:2])
    more = f" and {len(readers) - 2} more" if len(readers) > 2 else ""
    return f"is read by {shown}{more}, which take{'s' * (len(readers) == 1)} {theirs.dtype.value}"


def _exit(network: Network, name: str) -> _End | str:
    """Where the output is dequantised; or a sentence on why it is not."""
    theirs, moved = network.tensors[name], [name]
    while (layer := network.producers.get(moved[-1])) is not None:
        source = network.tensors[layer.inputs[0]]
        is_move = isinstance(layer.op, MOVES)
        if not is_move and (not isinstance(layer.op, Dequantize | Quantize) or source.dtype.is_float):
            kind = f"is computed as {theirs.dtype.value} by '{layer.name}' ({type(layer.op).__name__})"
            return kind if theirs.dtype.is_float else f"is {theirs.dtype.value} already"
        if _is_read_elsewhere(network, moved) or source.name in network.outputs:
            return "is needed elsewhere too"
        if not is_move and source.name in network.producers:
            return _refused(theirs, source) or _End(name, tuple(moved), (layer,), source)
        moved.append(source.name)
    return "is an input or a constant in another form"


def _is_read_elsewhere(network: Network, moved: Sequence[str]) -> bool:
    """Whether the last of these has readers that do not lead to the output alone."""
    return len(network.readers[moved[-1]]) > min(len(moved) - 1, 1)


def _refused(theirs: Tensor, stored: Tensor) -> str:
    if stored.quant is None or stored.quant.is_per_channel:
        return "has a scale for each channel"
    return f"is {theirs.dtype.value} already" if stored.dtype is theirs.dtype else ""


def _without_first(network: Network, end: _End) -> Network:
    draft = _storing(network, end)
    for layer in end.layers:
        draft.bypass(layer.output, end.moved[-1])
    return draft.finish()


def _without_last(network: Network, end: _End) -> Network:
    draft = _storing(network, end)
    draft.bypass(end.moved[-1], end.stored.name)
    return draft.finish()


def _storing(network: Network, end: _End) -> Draft:
    """The network with stored integers between the end and its conversion."""
    draft = Draft(network)
    for name in end.moved:
        draft.tensors[name] = replace(draft.tensors[name], dtype=end.stored.dtype, quant=end.stored.quant)
    return draft
