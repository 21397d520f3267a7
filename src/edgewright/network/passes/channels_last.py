"""Converts NCHW to NHWC: Transposes move down the network until they meet their inverse.

ONNX computes on NCHW and our operators on NHWC, so a network read literally has a Transpose on either side of every
window operator. Here each tensor of the file is *held* in the order in which it was computed, and is reordered only
when a reader requires it.
"""

from __future__ import annotations

from dataclasses import replace

from ..network import Arithmetic, Layer, Network, Origin
from ..operators import Concat, MatMul, Op, Reshape, Transpose
from ..region import Perm, Shape, inverse, pick
from ..tensor import Tensor
from .draft import Draft
from .identities import moves_only_ones
from .reorder import (
    channels_last,
    compose,
    identity,
    reordered,
    reshape_held,
    reshape_towards,
)


def to_channels_last(network: Network) -> Network:
    """The network with images channels last, and only the Transposes that its own reordering needs.

    Inputs and outputs that a Transpose converts are channels last in the interface; `layouts` and a note say so.
    """
    return _Reorder(network).run()


class _Reorder:
    def __init__(self, network: Network) -> None:
        self.network = network
        self.draft = Draft(network, blank=True)
        self.held: dict[str, tuple[str, Perm]] = {}  # tensor of the file -> (tensor here, perm)
        self.made: dict[tuple[str, Perm], str] = {}  # reordered copies, each made once
        self.preferred = _preferred_orders(network)
        self.layouts = dict(network.layouts)
        self.notes: list[str] = []

    def run(self) -> Network:
        for name, tensor in self.network.tensors.items():
            if name in self.network.inputs or name in self.network.constants:
                self.held[name] = (name, identity(len(tensor.shape)))
        for name in self.network.inputs:
            self._take(name)
        for layer in self.network.layers:
            self._layer(layer)
        for name in self.network.outputs:
            self._give(name)
        done = replace(self.draft.finish(), layouts=self.layouts, origins=self._origins())
        return replace(done, notes=(*done.notes, *self.notes))

    def _origins(self) -> dict[str, Origin]:
        """The file's tensors that still exist, in the order in which they are held."""
        origins: dict[str, Origin] = {}
        for name, (source, perm) in self.held.items():
            origin = self.network.origins.get(name)
            if origin is not None:
                origins.setdefault(source, replace(origin, axes=compose(origin.axes, inverse(perm))))
        return origins

    # Inputs and outputs

    def _take(self, name: str) -> None:
        """Changes an input to channels last if a Transpose would convert it."""
        tensor = self.network.tensors[name]
        perm = channels_last(len(tensor.shape)) if len(tensor.shape) >= 3 else ()
        if not perm or self.preferred.get(name) != perm or name in (*self.network.outputs, *self.network.states):
            return
        self.draft.tensors[name] = replace(tensor, shape=pick(tensor.shape, perm))
        self.held[name] = (name, inverse(perm))
        self._note("input", "taken", name, perm)

    def _give(self, name: str) -> None:
        """Returns an output channels last if it is held so; any other order is reversed first."""
        source, perm = self.held[name]
        if source == name and perm == identity(len(perm)):
            return
        tensor = self.network.tensors[name]
        last = channels_last(len(perm)) if len(perm) >= 3 else ()
        free = source in self.draft.layers and (source == name or source not in self.network.outputs)
        if free and inverse(perm) == last and name not in self.network.states.values():
            if source != name:
                self._rename(source, name)
            self._note("output", "given", name, last)
            return
        if source == name:  # computed under its own name in another order: free the name
            source = self.draft.add_tensor(self.draft.tensors[name], f"{name}_held")
            self._rename(name, source)
        self.draft.tensors[name] = tensor
        self.draft.put(Layer(self.draft.layer_name(name), Transpose(perm), (source,), name))

    def _rename(self, old: str, new: str) -> None:
        self.draft.rename(old, new)
        for name, (source, perm) in self.held.items():
            if source == old:
                self.held[name] = (new, perm)

    def _note(self, what: str, verb: str, name: str, perm: Perm) -> None:
        old = self.layouts.get(name, identity(len(perm)))
        self.layouts[name] = compose(old, perm)
        ours = self.network.tensors[name].shape
        file = pick(ours, inverse(old))
        order = "NHWC" if len(perm) == 4 else "channels last"
        self.notes.append(f"{what} '{name}' is {verb} as {_by(pick(ours, perm))} ({order}); the file has {_by(file)}")

    # Layers

    def _layer(self, layer: Layer) -> None:
        match layer.op:
            case Transpose(perm):
                source, held = self.held[layer.inputs[0]]
                self.held[layer.output] = (source, compose(held, perm))
            case Reshape():
                self._reshape(layer)
            case MatMul():
                self._matmul(layer)
            case _:
                self._other(layer)

    def _other(self, layer: Layer) -> None:
        perm = self._best_order(layer)
        exact = self.network.arithmetic is Arithmetic.TFLITE and any(
            self.network.tensors[name].quant is not None for name in (*layer.inputs, layer.output)
        )
        shapes = self.network.shapes(layer)
        turned = reordered(layer.op, perm, shapes, exact) if perm != identity(len(perm)) else None
        if turned is None:
            self._emit(layer, layer.op, [self._plain(name) for name in layer.inputs], None)
            return
        op, out = turned
        held = inverse(perm)
        # Operands after the first share its axes only if the operator broadcasts or joins them.
        along = len(layer.inputs) if op.pointwise or isinstance(op, Concat) else 1
        inputs = [self._ordered(name, held) if i < along else self._plain(name) for i, name in enumerate(layer.inputs)]
        self._emit(layer, op, inputs, out)

    def _best_order(self, layer: Layer) -> Perm:
        """The order of the largest operand; of equals, one that differs from the file's."""
        rank = len(self.network.tensors[layer.inputs[0]].shape)
        if layer.op.pointwise:
            rank = len(self.network.tensors[layer.output].shape)
        best, size = identity(rank), -1
        for name in layer.inputs:
            source, perm = self.held[name]
            if len(perm) != rank or source in self.draft.constants:
                continue
            own = self.draft.tensors[source].size
            if own > size or (own == size and best == identity(rank)):
                best, size = perm, own
        return best

    def _reshape(self, layer: Layer) -> None:
        x = layer.inputs[0]
        source, perm = self.held[x]
        before, after = self.network.tensors[x].shape, self.network.tensors[layer.output].shape
        plain = identity(len(after))
        out = reshape_held(perm, before, after)
        if out is not None:
            self._emit(layer, Reshape(pick(after, inverse(out))), [source], out)
            return
        order = self.preferred.get(layer.output, channels_last(4) if len(after) == 4 else plain)
        towards = reshape_towards(order, before, after)
        if towards is None:
            towards, order = identity(len(before)), plain
        self._emit(layer, Reshape(pick(after, order)), [self._ordered(x, towards)], inverse(order))

    def _matmul(self, layer: Layer) -> None:
        """A product can read either operand transposed for free."""
        assert isinstance(layer.op, MatMul)
        flags, inputs = [layer.op.transpose_a, layer.op.transpose_b], []
        for i, name in enumerate(layer.inputs):
            source, perm = self.held[name]
            swapped = (*range(len(perm) - 2), len(perm) - 1, len(perm) - 2)
            flags[i] ^= perm == swapped
            inputs.append(source if perm == swapped else self._plain(name))
        self._emit(layer, MatMul(*flags), inputs, None)

    def _emit(self, layer: Layer, op: Op, inputs: list[str], perm: Perm | None) -> None:
        """Adds the layer to the new network; its output, held with `perm`, keeps its name."""
        tensor = self.network.tensors[layer.output]
        perm = perm or identity(len(tensor.shape))
        held = inverse(perm)
        quant = tensor.quant and tensor.quant.transposed(held)
        self.draft.tensors[layer.output] = replace(tensor, shape=pick(tensor.shape, held), quant=quant)
        self.draft.put(Layer(layer.name, op, tuple(inputs), layer.output))
        self.held[layer.output] = (layer.output, perm)

    # Operands

    def _plain(self, name: str) -> str:
        return self._ordered(name, identity(len(self.held[name][1])))

    def _ordered(self, name: str, order: Perm) -> str:
        """The tensor for the file's tensor, with leading ones added to its shape, transposed by `order`."""
        source, perm = self.held[name]
        if missing := len(order) - len(perm):
            shape = (1,) * missing + self.network.tensors[name].shape
            source = self._moved(self._plain(name), Reshape(shape), (-1,) * missing + identity(len(perm)))
            perm = identity(len(order))
        total = compose(perm, order)
        if total == identity(len(total)):
            return source
        if (source, total) not in self.made:
            shape = self.draft.tensors[source].shape
            free = moves_only_ones(total, shape) and source not in self.draft.constants
            op = Reshape(pick(shape, total)) if free else Transpose(total)
            self.made[source, total] = self._moved(source, op, total)
        return self.made[source, total]

    def _moved(self, source: str, op: Reshape | Transpose, axes: Perm) -> str:
        """A copy whose axis i is axis axes[i] of the source, or new if that is -1; a view for constants."""
        tensor = self.draft.tensors[source]
        shape = op.output_shape([tensor.shape])
        quant = tensor.quant and tensor.quant.transposed(axes)
        name = f"{source}_{_by(shape)}"
        if source in self.draft.constants:
            value = self.draft.constants[source]
            value = value.reshape(shape) if isinstance(op, Reshape) else value.transpose(op.perm)
            return self.draft.add_constant(name, value, quant)
        return self.draft.add_layer(op, [source], Tensor(name, shape, tensor.dtype, quant), name)


def _preferred_orders(network: Network) -> dict[str, Perm]:
    """For each tensor, the order that a later Transpose needs, seen through layers that pass it on."""
    preferred: dict[str, Perm] = {}
    for layer in reversed(network.layers):
        shape = network.tensors[layer.output].shape
        order = preferred.get(layer.output, identity(len(shape)))
        if isinstance(layer.op, Transpose):
            order = compose(layer.op.perm, order)
        elif isinstance(layer.op, Reshape):
            before = network.tensors[layer.inputs[0]].shape
            order = reshape_towards(order, before, shape) or identity(len(before))
        elif order == identity(len(order)) or not _passes_on(network, layer):
            continue
        if order != identity(len(order)):
            for name in layer.inputs:
                if len(network.tensors[name].shape) == len(order):
                    preferred.setdefault(name, order)
    return preferred


def _passes_on(network: Network, layer: Layer) -> bool:
    """Whether the layer can be computed with its operands' axes in another order."""
    shapes = network.shapes(layer)
    return reordered(layer.op, identity(len(shapes[0])), shapes, exact=False) is not None


def _by(shape: Shape) -> str:
    return "x".join(map(str, shape))
