"""Crops and scaled images passed between networks: the reader gets layers in front, so that it takes the whole
image."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..errors import InputError
from ..network import Network, Shape
from ..network.builder import unused_name
from ..network.network import Arithmetic, Layer, check
from ..network.operators import Coordinates, NearestMode, Op, Resize, ResizeMode, Slice
from ..program.deployment import RelationKind
from .description import ApplicationFile, RelationEntry


def with_handed_images(file: ApplicationFile, networks: Mapping[str, Network], where: str) -> dict[str, Network]:
    """The networks, with layers that crop or scale in front of those that read part of a passed image."""
    adapted = dict(networks)
    for kind in (RelationKind.AFTER, RelationKind.SAME_INPUT):
        for index, relation in enumerate(file.relations):
            if relation.kind is kind and (relation.crop or relation.resize):
                first, *readers = relation.networks
                source = adapted[first]
                ends, wanted = (
                    (source.outputs, relation.output) if kind is RelationKind.AFTER else (source.inputs, relation.input)
                )
                tensor = _end(ends, wanted)
                for reader in readers if tensor in source.tensors else ():
                    image = source.tensors[tensor].shape
                    adapted[reader] = _reading(adapted[reader], relation, image, f"{where}: relation[{index}]", reader)
    return adapted


def _end(ends: tuple[str, ...], wanted: str | None) -> str:
    """The named end; empty if there is none, which the relations report."""
    return wanted if wanted in ends else ends[0] if wanted is None and len(ends) == 1 else ""


def _reading(network: Network, relation: RelationEntry, image: Shape, key: str, reader: str) -> Network:
    """The network with layers in front of its input, which then has the size of the image."""
    name = _end(network.inputs, relation.input)
    if not name:
        return network
    if len(image) != 4 or len(network.tensors[name].shape) != 4:
        raise InputError(f"{key}: crop and resize are for images, and '{name}' of '{reader}' or its source is none")
    (batch, *wanted, channels), (_, rows, columns, _) = network.tensors[name].shape, image
    operators: list[Op] = []
    size = [rows, columns]
    if relation.crop is not None:
        top, left, *size = relation.crop
        if top + size[0] > rows or left + size[1] > columns:
            raise InputError(
                f"{key}.crop is {list(relation.crop)}, and the image has {rows} rows and {columns} columns; "
                "expected [top, left, height, width] inside it"
            )
        operators.append(Slice((0, top, left, 0), (batch, *size, channels), (1, 1, 1, 1)))
    if relation.resize is not None:
        size = list(relation.resize)
        operators.append(_scaling(relation, network.arithmetic, (size[0], size[1])))
    if size != wanted:
        raise InputError(
            f"{key} hands over {size[0]} rows and {size[1]} columns, and '{name}' of '{reader}' has {wanted[0]} and "
            f"{wanted[1]}; expected resize = {wanted}"
        )
    return _with_front(network, name, (batch, rows, columns, channels), operators)


def _scaling(relation: RelationEntry, arithmetic: Arithmetic, size: tuple[int, int]) -> Resize:
    """Pixels are squares whose centres are half a pixel from the border, as in LiteRT and PyTorch."""
    mode = ResizeMode.LINEAR if relation.scaling == "bilinear" else ResizeMode.NEAREST
    if arithmetic is not Arithmetic.TFLITE:
        return Resize(size, mode)
    drift = 1e-4 + (max(size) + 1) / 1024  # error of fixed-point positions
    return Resize(size, mode, Coordinates.HALF_PIXEL, NearestMode.HALF_UP, slack=drift, by_product=True)


def _with_front(network: Network, name: str, shape: Shape, operators: list[Op]) -> Network:
    """The network whose input `name` has this shape, and passes through the operators first."""
    tensors, layers = dict(network.tensors), []
    taken = {layer.name for layer in network.layers}
    old = tensors[name]
    tensors[name], current = replace(old, shape=shape), name
    for operator in operators:
        made = unused_name(f"{name}_{type(operator).__name__.lower()}", tensors, taken)
        tensors[made] = replace(old, name=made, shape=operator.output_shape([tensors[current].shape]))
        layers.append(Layer(made, operator, (current,), made))
        current = made
    for layer in network.layers:
        layers.append(replace(layer, inputs=tuple(current if one == name else one for one in layer.inputs)))
    changed = replace(
        network,
        layers=tuple(layers),
        tensors=tensors,
        outputs=tuple(current if one == name else one for one in network.outputs),
        file_tensors={end: tensor for end, tensor in network.file_tensors.items() if end != name},
        origins={end: origin for end, origin in network.origins.items() if end != name},
    )
    return check(changed)
