"""A network during rewriting, as passes edit it.

The cost of an edit depends on the readers it touches, not on the size of the network, so passes are nearly linear.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ..builder import unused_name
from ..network import Layer, Network
from ..operators import Op
from ..tensor import Array, DType, Quant, Tensor


class Draft:
    """A working copy of a network: layers by the tensor they write, and the readers of each tensor.

    A `blank` one has the tensors but no layers yet.
    """

    def __init__(self, network: Network, blank: bool = False) -> None:
        self.network = network
        self.inputs = frozenset(network.inputs)
        self.outputs = frozenset(network.outputs)
        self.tensors: dict[str, Tensor] = dict(network.tensors)
        self.constants: dict[str, Array] = dict(network.constants)
        self.layers: dict[str, Layer] = {}
        self._readers: dict[str, dict[str, None]] = {}  # tensor -> outputs of its readers, in order
        self._place: dict[str, int] = {}  # tensor -> position of its layer
        self._names = {layer.name for layer in network.layers}
        for layer in () if blank else network.layers:
            self.put(layer)

    # Looking

    def walk(self) -> Iterator[Layer]:
        """The layers at the time of the call, in order, each in its current state; removed ones are skipped."""
        for output in tuple(self.layers):
            if output in self.layers:
                yield self.layers[output]

    def producer(self, tensor: str) -> Layer | None:
        return self.layers.get(tensor)

    def readers(self, tensor: str) -> tuple[Layer, ...]:
        return tuple(self.layers[output] for output in self._readers.get(tensor, ()))

    def is_private(self, tensor: str) -> bool:
        """Whether exactly one layer reads the tensor and it is not an output."""
        return len(self._readers.get(tensor, ())) == 1 and tensor not in self.outputs

    def is_float(self, tensor: str) -> bool:
        return self.tensors[tensor].dtype is DType.FLOAT32

    # Editing

    def put(self, layer: Layer) -> None:
        """Adds the layer, replacing the one that wrote the same tensor."""
        if layer.output in self.layers:
            self.drop(layer.output)
        self.layers[layer.output] = layer
        self._place.setdefault(layer.output, len(self._place))
        self._names.add(layer.name)
        for name in layer.inputs:
            self._readers.setdefault(name, {})[layer.output] = None

    def drop(self, output: str) -> None:
        layer = self.layers.pop(output)
        for name in dict.fromkeys(layer.inputs):
            del self._readers[name][output]
        self._names.discard(layer.name)

    def rewire(self, layer: Layer, old: str, new: str) -> None:
        """Replaces input `old` by `new` in the layer, which keeps its position."""
        inputs = tuple(new if name == old else name for name in layer.inputs)
        self._readers[old].pop(layer.output, None)
        for name in inputs:
            self._readers.setdefault(name, {})[layer.output] = None
        self.layers[layer.output] = replace(layer, inputs=inputs)

    def bypass(self, output: str, source: str) -> bool:
        """Drops the layer that writes `output`, since `source` holds the same; False if names forbid it.

        An output of the network keeps its name, so the layer that computes `source` must be free to take that name.
        """
        if output not in self.outputs:
            self.drop(output)
            for reader in self.readers(output):
                self.rewire(reader, output, source)
            return True
        maker = self.layers.get(source)
        if maker is None or source in self.outputs:
            return False
        self.drop(output)
        self.rename(source, output)
        return True

    def rename(self, old: str, new: str) -> None:
        """Renames the tensor to an unused name; its layer keeps its position."""
        maker = self.layers[old]
        self.drop(old)
        self.tensors[new] = replace(self.tensors[old], name=new)
        self._place[new] = self._place[old]
        self.put(replace(maker, output=new))
        for reader in self.readers(old):
            self.rewire(reader, old, new)

    def absorb(self, layer: Layer, follower: Layer, op: Op, inputs: Iterable[str] | None = None) -> None:
        """`layer`, with another operator, takes over the work and the output of its only reader."""
        assert self.is_private(layer.output), f"'{layer.output}' is read elsewhere"
        self.drop(follower.output)
        self.drop(layer.output)
        self._place[follower.output] = self._place[layer.output]
        wires = layer.inputs if inputs is None else tuple(inputs)
        self.put(Layer(layer.name, op, wires, follower.output))

    def add_tensor(self, like: Tensor, name: str) -> str:
        """A new tensor like `tensor`, under this name or one made unique."""
        name = unused_name(name, self.tensors)
        self.tensors[name] = replace(like, name=name)
        return name

    def add_constant(self, name: str, value: Array, quant: Quant | None = None) -> str:
        name = self.add_tensor(Tensor(name, tuple(value.shape), DType(value.dtype.name), quant), name)
        self.constants[name] = value
        return name

    def add_layer(self, op: Op, inputs: Iterable[str], like: Tensor, name: str) -> str:
        """A new layer whose output is a new tensor like `tensor`; returns its name."""
        output = self.add_tensor(like, name)
        self.put(Layer(self.layer_name(name), op, tuple(inputs), output))
        return output

    def layer_name(self, name: str) -> str:
        """The name, with a number added if a layer already has it."""
        return unused_name(name, self._names)

    def finish(self) -> Network:
        """The network as edited: layers in their order where that is still valid; dead ones are dropped."""
        order: dict[str, Layer] = {}
        alive = self._alive()
        for output in sorted(self.layers, key=self._place.__getitem__):
            stack = [output] if output in alive else []
            while stack:
                layer = self.layers[stack[-1]]
                missing = [n for n in layer.inputs if n in self.layers and n not in order]
                if missing and layer.output not in order:
                    stack.extend(reversed(missing))
                else:
                    order[stack.pop()] = layer
        return self.network.with_layers(order.values(), self.tensors.values(), self.constants)

    def _alive(self) -> set[str]:
        alive: set[str] = set()
        stack = [name for name in self.outputs if name in self.layers]
        while stack:
            name = stack.pop()
            if name not in alive:
                alive.add(name)
                stack.extend(n for n in self.layers[name].inputs if n in self.layers)
        return alive


def is_same_storage(x: Tensor, y: Tensor) -> bool:
    """Whether equal integers represent equal real numbers in both."""
    return x.quant is not None and x.quant == y.quant and x.dtype is y.dtype
