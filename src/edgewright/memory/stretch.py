"""A stretch of layers that runs row by row as one stage, and how many rows it keeps of every tensor inside.

Nothing is assumed about the network's shape: the stretch is traced as it will run (`program.Flow`), and a window is as
large as the most rows that are ever there and still needed (M 4; as rolling windows there is no self-loop channel).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ..network import Layer, Network, Region
from ..network.operators import Grain
from ..program import ROWS, Flow, Step, Stream, rows_needed
from .layout.problem import align_up
from .overlap import Distance, distance
from .views import Place, Views

HEAVY = 128 * 1024  # bytes of weights that are better not read again for each row
PIXELS = 28  # in a step, so that reading them pays
_FAR = 1 << 60  # beyond any address: what is not needed any more


@dataclass(frozen=True)
class Stretch:
    """One stage of several layers. Roots in `windows` live inside it alone."""

    layers: tuple[str, ...]
    stream: Stream
    windows: Mapping[str, int]  # rows kept of each root; as many as it has where it cannot roll
    shares: Mapping[tuple[str, str], Distance]  # (X, Y): how an output may trail an input that dies here

    @property
    def name(self) -> str:
        first, last = self.layers[0], self.layers[-1]
        return first if first == last else f"{first} .. {last}"


def streamable(network: Network, layer: Layer, free: Collection[str]) -> bool:
    """Whether the layer can go from top to bottom, on inputs that come row by row."""
    shape = network.tensors[layer.output].shape
    if len(shape) != 4 or shape[0] != 1:
        return False
    return all(_comes_by_rows(network, layer, name, free) for name in network.activations(layer))


def _comes_by_rows(network: Network, layer: Layer, name: str, free: Collection[str]) -> bool:
    if rows_needed(network, layer, name) is None:
        return False
    producer = network.producers.get(name)
    if producer is None or producer.name not in free:
        return True
    return all(_comes_by_rows(network, producer, source, free) for source in network.activations(producer))


def sinks(network: Network, layers: Iterable[str], free: Collection[str]) -> tuple[str, ...]:
    """The layers whose output somebody outside reads."""
    inside = {*layers, *free}

    def is_read_outside(tensor: str) -> bool:
        if tensor in network.outputs or not network.readers[tensor]:
            return True
        return any(
            reader.name not in inside or (reader.name in free and is_read_outside(reader.output))
            for reader in network.readers[tensor]
        )

    return tuple(name for name in layers if is_read_outside(network.by_name[name].output))


def stream_of(
    network: Network, layers: Sequence[str], free: Collection[str], rows: Mapping[str, int] | None = None
) -> Stream:
    """The layers row by row, or so many `rows` at a time; they must be listed so that producers come first."""
    steps = []
    for name in layers:
        whole = Region.whole(network.tensors[network.by_name[name].output].shape)
        steps.append(Step(name, whole.with_axis(ROWS, (0, min((rows or {}).get(name, 1), whole.shape[ROWS])))))
    return Stream(tuple(steps), sinks(network, layers, free))


def comfortable_rows(network: Network, layers: Iterable[str]) -> Mapping[str, int]:
    """The layers that run much faster with several rows in a step: those that read many weights for few pixels."""
    found = {}
    for name in layers:
        layer = network.by_name[name]
        width = network.tensors[layer.output].shape[ROWS + 1]
        reads_image = any(source in network.inputs for source in layer.inputs)  # of which few rows may be there
        if weights_read(network, layer) >= HEAVY and width < PIXELS and not reads_image:
            found[name] = -(-PIXELS // width)
    return found


def weights_read(network: Network, layer: Layer) -> int:
    """Bytes of constants that each step of the layer reads."""
    return sum(network.tensors[name].bytes for name in layer.inputs if name in network.constants)


def with_rows_in_place(network: Network, views: Views, layers: Collection[str]) -> Views:
    """The views with element-wise layers of stretches in place: a row is computed where it will be overwritten."""
    places = dict(views.places)
    alone = {names[0] for names in views.members().values() if len(names) == 1}
    interface = {*network.inputs, *network.outputs}
    for layer in reversed(network.layers):
        if layer.name not in layers or layer.op.grain is not Grain.ELEMENT:
            continue
        for source in network.activations(layer):
            producer = network.producers.get(source)
            inside = producer is not None and producer.name in layers and source not in interface
            if inside and source in alone and _replaces(network, layer, source):
                places[source] = places[layer.output]
                alone -= {source, layer.output}
                break
    return replace(views, places=places)


def _replaces(network: Network, layer: Layer, source: str) -> bool:
    """Whether each element of the output can take the place of the input's at the same index."""
    x, y = network.tensors[source], network.tensors[layer.output]
    if network.sole_reader(source) is not layer or x.shape != y.shape or x.dtype is not y.dtype:
        return False
    safe = distance(network, layer, source)
    return max(safe.below, safe.above) <= 0


class Trace:
    """A stretch as it runs: rows kept of every root, and how far outputs stay behind inputs."""

    def __init__(self, network: Network, views: Views, stream: Stream) -> None:
        self.network, self.views, self.flow = network, views, Flow(network, stream)
        self.reads = self._reads()
        self.rows: dict[str, int] = {}  # the most rows of each written root that were there and still needed
        # (X, Y): the most bytes by which writing Y was ahead of reading X, both from the start of their buffers.
        self.lags: dict[tuple[str, str], int] = {}
        self._run()

    def rows_kept(self, root: str, members: Iterable[str]) -> int:
        """Rows of a root that must be kept: all, unless its members roll together."""
        height = self.network.tensors[root].shape[ROWS]
        rolls = all(_is_row_aligned(self.network, name, self.views.places[name]) for name in members)
        return max(1, min(self.rows.get(root, height), height)) if rolls else height

    def window(self, root: str, members: Iterable[str], alignment: int) -> int:
        """Bytes of the rows that must be kept, in whole words."""
        return align_up(self.rows_kept(root, members) * self._row_bytes(root), alignment)

    def _reads(self) -> Mapping[str, list[tuple[int, tuple[int, ...]]]]:
        """For each root who reads it, and from which byte on in each step."""
        found: dict[str, list[tuple[int, tuple[int, ...]]]] = {}
        for index, step in enumerate(self.flow.stream.steps):
            layer = self.network.by_name[step.layer]
            for name in self.network.activations(layer):
                place = self.views.places[name]
                starts = (place.offset + start * place.strides[ROWS] for start, _ in self.flow.reads(index, name))
                found.setdefault(place.root, []).append((index, tuple(starts)))
        return found

    def _run(self) -> None:
        flow = self.flow
        layers = [self.network.by_name[step.layer] for step in flow.stream.steps]
        places = [self.views.places[layer.output] for layer in layers]
        touched: list[list[str]] = [[] for _ in layers]
        for root, readers in self.reads.items():
            for index, _ in readers:
                touched[index].append(root)
        first = dict.fromkeys(self.reads, 0)  # the first byte of each root that is still needed
        done = [0] * len(layers)
        row = {place.root: self._row_bytes(place.root) for place in places}
        leaving = {places[sink].root for sink in flow.sinks}
        for at, step in flow.order():
            root, stop = places[at].root, min((step + 1) * flow.rows[at], flow.heights[at])
            oldest = min(first.get(root, stop * row[root]) // row[root], stop)
            self.rows[root] = max(self.rows.get(root, 0), stop - oldest)
            if root in leaving:
                written = places[at].offset + stop * places[at].strides[ROWS]
                for x, needed in first.items():
                    lag = written - needed
                    self.lags[x, root] = max(lag, self.lags.get((x, root), lag))
            done[at] += 1
            for name in touched[at]:
                first[name] = min(
                    starts[done[i]] if done[i] < len(starts) else _FAR for i, starts in self.reads[name]
                )

    def _row_bytes(self, root: str) -> int:
        tensor = self.network.tensors[root]
        return tensor.bytes // tensor.shape[ROWS] if len(tensor.shape) == 4 else tensor.bytes


def stretch(
    network: Network, views: Views, layers: Sequence[str], rows: Mapping[str, int] | None = None
) -> Stretch:
    """The layers as one stage, traced; `rows` at a time, where that is said."""
    stream = stream_of(network, layers, views.free, rows)
    trace = Trace(network, views, stream)
    inner = inner_roots(network, views, layers)
    windows = {root: trace.rows_kept(root, members) for root, members in inner.items()}
    shares = {
        (x, y): Distance(below=lag, above=network.tensors[x].bytes)
        for (x, y), lag in trace.lags.items()
        if x not in inner and y not in inner and x != y
    }
    return Stretch(tuple(layers), stream, windows, shares)


def inner_roots(network: Network, views: Views, layers: Collection[str]) -> Mapping[str, tuple[str, ...]]:
    """The roots that are written and read by these layers alone, with the tensors in each."""
    inside = {*layers, *views.free}
    outer = {views.places[name].root for name in (*network.inputs, *network.outputs)}
    for layer in network.layers:
        if layer.name not in inside:
            outer.update(views.places[name].root for name in (*network.activations(layer), layer.output))
    members = views.members()
    written = {views.places[network.by_name[name].output].root for name in layers}
    return {root: members[root] for root in sorted(written - outer)}


def _is_row_aligned(network: Network, name: str, place: Place) -> bool:
    """Whether row i of the tensor lies in row i of its root, so that both roll together."""
    tensor, root = network.tensors[name], network.tensors[place.root]
    if len(tensor.shape) != 4 or len(root.shape) != 4 or tensor.shape[ROWS] != root.shape[ROWS]:
        return False
    step = root.strides[ROWS]
    rest = [(n, s) for axis, (n, s) in enumerate(zip(tensor.shape, place.strides, strict=True)) if axis > ROWS]
    reach = place.offset + sum((n - 1) * s for n, s in rest) + tensor.dtype.bytes
    return place.strides[ROWS] == step and reach <= step
