"""Which tensors share a buffer because one is part of the other: reshape, slice, split and concat without copies.

A concat is free if its parts are written to their final place; a slice is free if its readers use a view of the whole.
Each tensor is a view (offset and strides) of a root tensor, and views nest: in a DenseNet every partial concat is a
view of the last one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from ..network import Array, Layer, Network, Tensor
from ..network.operators import Concat, Reshape, Slice


@dataclass(frozen=True, slots=True)
class Subview:
    """A tensor inside its root: offset and strides in bytes."""

    root: str
    offset: int
    strides: tuple[int, ...]


@dataclass(frozen=True)
class Views:
    places: Mapping[str, Subview]  # for each tensor that is not a constant
    free: frozenset[str]  # layers with nothing left to do
    in_place: Mapping[str, tuple[int, ...]]  # for a concat that still copies: the inputs that need no copy
    planes: Mapping[str, int] = field(default_factory=dict)  # layers in place by channel: their scratch

    @cached_property
    def members(self) -> Mapping[str, tuple[str, ...]]:
        """The tensors in each root's buffer."""
        members: dict[str, list[str]] = {}
        for name, place in self.places.items():
            members.setdefault(place.root, []).append(name)
        return {root: tuple(names) for root, names in members.items()}


def no_views(network: Network) -> Views:
    """Every tensor in a buffer of its own; reshapes and concats copy."""
    names = [name for name in network.tensors if name not in network.constants]
    return Views({name: Subview(name, 0, network.tensors[name].strides) for name in names}, frozenset(), {})


def find_views(network: Network, copied: Collection[str] = (), outside: Collection[str] = ()) -> Views:
    """Uses views wherever data is already in place, except for the layers in `copied`.

    Concats are visited last to first, so that the largest one takes the parts and earlier ones find them in place.
    Inputs and outputs in `outside` have their buffer to themselves.
    """
    finder = _Finder(network, frozenset(outside))
    for layer in network.layers:
        if layer.name not in copied and isinstance(layer.op, Reshape | Slice):
            finder.look_into(layer)
    for layer in reversed(network.layers):
        if layer.name not in copied and isinstance(layer.op, Concat):
            finder.take_parts(layer)
    return finder.views()


def with_copies(network: Network, tensors: Collection[str]) -> Network:
    """The network with these tensors copied before they are joined, so that they need not be created in the concat's
    buffer."""
    layers, wanted = [], set(tensors)
    renamed = {name: f"{name}:copy" for name in network.tensors if name in wanted}  # in network order
    added = [replace(network.tensors[name], name=copy) for name, copy in renamed.items()]
    for layer in network.layers:
        if isinstance(layer.op, Concat):
            layer = replace(layer, inputs=tuple(renamed.get(name, name) for name in layer.inputs))
        layers.append(layer)
        if layer.output in renamed:
            shape = network.tensors[layer.output].shape
            whole = Slice((0,) * len(shape), shape, (1,) * len(shape))
            layers.append(Layer(renamed[layer.output], whole, (layer.output,), renamed[layer.output]))
    return network.with_layers(layers, added)


def is_aligned(network: Network, name: str, place: Subview, axes: tuple[int, ...]) -> bool:
    """Whether indices along these axes mean the same in the tensor and in its root, so that one cut suits both."""
    tensor, root = network.tensors[name], network.tensors[place.root]
    for axis in axes:
        if axis >= len(root.shape) or (root.shape[axis] > 1 and not _has_axis(network, name, place, axis)):
            return False
        if place.offset >= root.strides[axis] * (1 if axis < len(root.shape) - 1 else root.shape[-1]):
            return False
    rest = sum(
        (n - 1) * s for n, s in zip(tensor.shape, place.strides, strict=True) if n > 1 and s < root.strides[min(axes)]
    )
    return place.offset + rest + tensor.dtype.bytes <= root.strides[min(axes)] or min(axes) == len(root.shape) - 1


def _has_axis(network: Network, name: str, place: Subview, axis: int) -> bool:
    """Whether the tensor has the root's axis, with the same length and stride."""
    tensor, root = network.tensors[name], network.tensors[place.root]
    steps = list(zip(tensor.shape, place.strides, strict=True))
    return (root.shape[axis], root.strides[axis]) in steps


class _Finder:
    """Views under construction. Tensors are represented by numpy arrays that are never accessed: numpy does the stride
    arithmetic."""

    def __init__(self, network: Network, outside: frozenset[str]) -> None:
        self.network = network
        self.outside = outside
        self.parents: dict[str, str] = {}
        self.children: dict[str, list[str]] = {}  # inverse of the parents
        self.looks: dict[str, list[Layer]] = {}  # free layers, by the tensor they view
        self.drawn: dict[str, Array] = {}
        self.free: set[str] = set()
        self.in_place: dict[str, tuple[int, ...]] = {}

    def look_into(self, layer: Layer) -> None:
        """Makes the output of a reshape or slice a view of its input."""
        source = layer.inputs[0]
        if source in self.network.constants or not self._same_numbers(source, layer.output):
            return
        array = _look(layer, self._drawing(source))
        if array is not None and self._may_join(layer.output, source, array):
            self._join(layer, source, array)

    def take_parts(self, layer: Layer) -> None:
        """Makes the inputs of a concat views of its output, or uses their existing place."""
        assert isinstance(layer.op, Concat)
        target, axis = layer.output, layer.op.axis
        if self._lies_in_order(layer):
            first = layer.inputs[0]
            root = self.root(first)
            array = self._shaped_like(target, first)
            if self._may_join(target, root, array) and target not in self.parents:
                self._join(layer, root, array)
                return
        taken, start = [], 0
        whole = self._drawing(target)
        for position, source in enumerate(layer.inputs):
            extent = self.network.tensors[source].shape[axis]
            index = [slice(None)] * whole.ndim
            index[axis] = slice(start, start + extent)
            start += extent
            if layer.inputs.count(source) == 1 and self._may_move(source, target, whole[tuple(index)]):
                taken.append(position)
        if len(taken) == len(layer.inputs):
            self.free.add(layer.name)
        elif taken:
            self.in_place[layer.name] = tuple(taken)

    def root(self, name: str) -> str:
        while name in self.parents:
            name = self.parents[name]
        return name

    def views(self) -> Views:
        places = {}
        for name in self.network.tensors:
            if name in self.network.constants:
                continue
            array = self.drawn.get(name)
            if array is None:
                places[name] = Subview(name, 0, self.network.tensors[name].strides)
            else:
                places[name] = Subview(self.root(name), _address(array) - _BASE, array.strides)
        return Views(places, frozenset(self.free), self.in_place)

    def _drawing(self, name: str) -> Array:
        if name not in self.drawn:
            self.drawn[name] = _draw(self.network.tensors[name])
        return self.drawn[name]

    def _same_numbers(self, a: str, b: str) -> bool:
        x, y = self.network.tensors[a], self.network.tensors[b]
        return x.dtype is y.dtype and x.quant == y.quant

    def _may_join(self, name: str, source: str, array: Array) -> bool:
        """Whether `name` may live in `source`'s buffer: inputs and outputs are visible outside, so they must be
        dense."""
        interface = {*self.network.inputs, *self.network.outputs}
        if name in interface and not self.network.tensors[name].is_dense(array.strides):
            return False
        root = self.root(source)
        if name in self.outside and self.network.tensors[name].bytes != self.network.tensors[root].bytes:
            return False
        together = [n for n in self.network.tensors if self.root(n) == root] if name in interface else []
        return not any(n in interface for n in together)

    def _may_move(self, source: str, target: str, array: Array) -> bool:
        """Moves a tensor, with all views of it, into `target`; False if that is impossible."""
        network = self.network
        if source in self.parents or source in network.constants or source in network.inputs:
            return False
        if not self._same_numbers(source, target) or self.root(target) == source:
            return False
        moved, todo = {source: array}, [source]
        while todo:  # its views move along, if numpy can express them
            name = todo.pop()
            for layer in self.looks.get(name, ()):
                seen = _look(layer, moved[name])
                if seen is None:
                    return False
                moved[layer.output] = seen
                todo.append(layer.output)
        if any(child not in moved for name in moved for child in self.children.get(name, ())):
            return False
        for name, drawn in moved.items():
            is_seen = name in network.inputs or name in network.outputs
            if is_seen and (self.outside or not network.tensors[name].is_dense(drawn.strides)):
                return False
        self.parents[source] = target
        self.children.setdefault(target, []).append(source)
        self.drawn.update(moved)
        return True

    def _join(self, layer: Layer, parent: str, array: Array) -> None:
        """Makes the layer's output a view of the parent, so that the layer is free."""
        self.parents[layer.output], self.drawn[layer.output] = parent, array
        self.children.setdefault(parent, []).append(layer.output)
        self.looks.setdefault(layer.inputs[0], []).append(layer)
        self.free.add(layer.name)

    def _lies_in_order(self, layer: Layer) -> bool:
        """Whether the inputs already lie in one buffer in the layout of the output."""
        network = self.network
        if any(name in network.constants or not self._same_numbers(name, layer.output) for name in layer.inputs):
            return False
        if len(layer.inputs) < 2 or len({self.root(name) for name in layer.inputs}) != 1:
            return False
        assert isinstance(layer.op, Concat)
        axis, first = layer.op.axis, self._drawing(layer.inputs[0])
        address = _address(first)
        for name in layer.inputs:
            array = self._drawing(name)
            if array.strides != first.strides or _address(array) != address:
                return False
            address += array.shape[axis] * array.strides[axis]
        return True

    def _shaped_like(self, target: str, first: str) -> Array:
        """A view of the output's shape at the address of its first input."""
        tensor, array = self.network.tensors[target], self._drawing(first)
        return _draw(tensor, _address(array) - _BASE, array.strides)


_CANVAS = np.zeros(1, dtype=np.uint8)
_BASE: int = _CANVAS.__array_interface__["data"][0]


def _draw(tensor: Tensor, offset: int = 0, strides: tuple[int, ...] | None = None) -> Array:
    """An array of the tensor's shape, for its address and strides only; never accessed."""
    interface = {
        "shape": tensor.shape,
        "typestr": tensor.dtype.numpy.str,
        "data": (_BASE + offset, True),
        "strides": strides or tensor.strides,
        "version": 3,
    }
    holder = type("Drawing", (), {"__array_interface__": interface})()
    return np.asarray(holder)


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def _look(layer: Layer, source: Array) -> Array | None:
    """The layer's output as a view of the input, or None if it needs a copy."""
    match layer.op:
        case Slice(starts=starts, sizes=sizes, steps=steps) if min(steps) > 0:
            index = tuple(slice(a, a + (n - 1) * s + 1, s) for a, n, s in zip(starts, sizes, steps, strict=True))
            return source[index]
        case Reshape(shape=shape):
            try:
                return source.reshape(shape, copy=False)
            except ValueError:
                return None
        case _:
            return None
