"""A relaxed ordering problem: a lower bound for every plan of a network."""

from __future__ import annotations

from itertools import pairwise

from ..network import Layer, Network
from ..network.operators import Concat, Slice
from .layout.problem import align_up
from .ordering.problem import OrderProblem, Store
from .overlap import distance, most_shared, plane_scratch
from .problems import dependencies
from .techniques import Techniques


def relaxed_problem(network: Network, techniques: Techniques, alignment: int) -> OrderProblem:
    """An ordering problem whose peak no plan can beat, for any treatment of concats, slices and in-place layers.

    Tensors are divided into pieces: a concat's output is the pieces of its inputs, a slice's output the pieces it
    selects. A piece is counted once, from its computation to its last use. A copy would hold it twice, and a view would
    hold the surrounding bytes too.
    """
    moving = {layer.name for layer in network.layers if _moves_data(network, layer)}
    layers = [layer for layer in network.layers if layer.name not in moving]
    pieces = _pieces(network, moving, alignment)
    pulled = dict(techniques.pulled)
    for name in pulled:
        pieces[name] = ((name, align_up(techniques.bytes(network.tensors[name]), alignment)),)
    elsewhere = {piece for name in techniques.outside for piece, _ in pieces[name]}
    touched: dict[str, tuple[list[int], list[int]]] = {}
    sizes: dict[str, int] = {}
    for names in pieces.values():
        for name, size in names:
            sizes[name] = 0 if name in elsewhere else size
            touched.setdefault(name, ([], []))
    for step, layer in enumerate(layers):
        for name, _ in pieces[layer.output]:
            touched[name][0].append(step)
        for name in dict.fromkeys(n for t in network.activations(layer) for n, _ in pieces[t]):
            touched[name][1].append(step)
    for name in pulled:
        touched[name] = (touched[name][1], touched[name][1])
    given = {n for t in network.inputs if t not in pulled for n, _ in pieces[t]}
    wanted = {n for t in network.outputs if t in pieces for n, _ in pieces[t]}
    index = {name: i for i, name in enumerate(sizes)}
    stores = tuple(
        Store(name, size, tuple(touched[name][0]), tuple(touched[name][1]), name in given, name in wanted)
        for name, size in sizes.items()
    )
    savings = {}
    for step, layer in enumerate(layers):
        for source in (name for name in network.activations(layer) if name not in pulled):
            shared = _best_sharing(network, layer, source, techniques, alignment)
            for x, x_size in pieces[source]:
                for y, y_size in pieces[layer.output]:
                    if shared and x not in wanted and not {x, y} & elsewhere:
                        savings[step, index[x], index[y]] = min(shared, x_size, y_size)
    return OrderProblem(tuple(x.name for x in layers), dependencies(network, [[x] for x in layers]), stores, savings)


def _moves_data(network: Network, layer: Layer) -> bool:
    """Whether the layer could be free: it moves elements without changing them."""
    y = network.tensors[layer.output]
    alike = all(
        name not in network.constants
        and network.tensors[name].quant == y.quant
        and network.tensors[name].dtype is y.dtype
        for name in layer.inputs
    )
    return layer.op.may_be_view and alike


def _pieces(network: Network, moving: set[str], alignment: int) -> dict[str, tuple[tuple[str, int], ...]]:
    """The pieces (name, bytes) of each computed tensor: divided by slices, joined by concats."""
    pieces: dict[str, tuple[tuple[str, int], ...]] = {}
    for name in network.inputs:
        pieces[name] = _cut(network, name, moving, alignment)
    for layer in network.layers:
        if layer.name not in moving:
            pieces[layer.output] = _cut(network, layer.output, moving, alignment)
        elif isinstance(layer.op, Slice):
            pieces[layer.output] = _selected(network, layer, pieces[layer.inputs[0]])
        else:
            parts = (piece for name in dict.fromkeys(layer.inputs) for piece in pieces[name])
            pieces[layer.output] = tuple(dict.fromkeys(parts))
    return pieces


def _cut(network: Network, name: str, moving: set[str], alignment: int) -> tuple[tuple[str, int], ...]:
    """The tensor divided by its slices along one axis; in one piece if they are more complex."""
    tensor = network.tensors[name]
    slices = [r.op for r in network.readers[name] if r.name in moving and isinstance(r.op, Slice)]
    axes = {axis for op in slices for axis, n in enumerate(op.sizes) if n != tensor.shape[axis]}
    if not slices or len(axes) != 1 or any(step != 1 for op in slices for step in op.steps):
        joined = any(r.name in moving and isinstance(r.op, Concat) for r in network.readers[name])
        return ((name, tensor.bytes if joined else align_up(tensor.bytes, alignment)),)
    axis = axes.pop()
    ends = {0, tensor.shape[axis]}
    for op in slices:
        ends |= {op.starts[axis], op.starts[axis] + op.sizes[axis]}
    marks = sorted(ends)
    unit = tensor.bytes // tensor.shape[axis]
    return tuple((f"{name}[{a}:{b}]", (b - a) * unit) for a, b in pairwise(marks))


def _selected(network: Network, layer: Layer, pieces: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
    """The pieces that a slice takes; none if it cuts through one."""
    assert isinstance(layer.op, Slice)
    source = layer.inputs[0]
    shape = network.tensors[source].shape
    axes = [axis for axis, n in enumerate(layer.op.sizes) if n != shape[axis]]
    if not axes:
        return pieces
    if len(axes) > 1 or not all(name.startswith(f"{source}[") for name, _ in pieces):
        return ()
    start, stop = layer.op.starts[axes[0]], layer.op.starts[axes[0]] + layer.op.sizes[axes[0]]
    marks = [tuple(map(int, name[len(source) + 1 : -1].split(":"))) for name, _ in pieces]
    return tuple(p for p, (a, b) in zip(pieces, marks, strict=True) if start <= a and b <= stop)


def _best_sharing(network: Network, layer: Layer, source: str, techniques: Techniques, alignment: int) -> int:
    """The most bytes that the layer's output can share with a dying input, by any technique in use."""
    x, y = (align_up(network.tensors[name].bytes, alignment) for name in (source, layer.output))
    shared = 0
    if techniques.allows(layer.op.grain):
        shared = most_shared(x, y, distance(network, layer, source), alignment)
    scratch = plane_scratch(network, layer, source, alignment) if techniques.planes else None
    return shared if scratch is None else max(shared, y - scratch)
