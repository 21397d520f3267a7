"""Schedules given by hand: "conv1..conv3:rows=4" names the layers and the number of parts along an axis."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..errors import InputError
from ..memory import Techniques
from ..memory.streamed import unfused_problem
from ..network import Network
from ..program import CHANNELS, COLUMNS, ROWS, FusedLayers, FusionSchedule, Split, Tiling, even_ends
from ..program.legal import AXES as WORDS
from ..program.legal import can_split, known_layers, streaming

FORM = "FIRST..LAST:rows=4"
STRIPES = "stripes"  # column stripes that run row by row; within bands if rows are divided too
AXES = {"rows": ROWS, "columns": COLUMNS, "channels": CHANNELS, STRIPES: COLUMNS}


@dataclass(frozen=True, slots=True)
class TileRequest:
    """A parsed request: a layer or FIRST..LAST, and the number of parts along each axis, the outermost first."""

    layers: str
    parts: tuple[tuple[str, int], ...]  # by axis names as in `AXES`

    @property
    def by_rows(self) -> bool:
        return self.parts[-1][0] == STRIPES


def parse_tile(text: str) -> TileRequest:
    """Parses such a text; layer names are not checked.

    >>> parse_tile("conv1..conv3:rows=2,columns=3").parts
    (('rows', 2), ('columns', 3))
    """
    layers, _, cuts = text.rpartition(":")
    parts = tuple(_part(text, cut) for cut in cuts.split(","))
    names = [name for name, _ in parts]
    if not layers.strip():
        raise InputError(f"'{text}' names no layers: write {FORM}")
    if len(set(names)) < len(names):
        raise InputError(f"'{text}' cuts the same axis twice")
    if STRIPES in names and names not in ([STRIPES], ["rows", STRIPES]):
        raise InputError(
            f"'{text}': stripes are columns that run row by row inside, and go with no other cut but rows= before them"
        )
    return TileRequest(layers.strip(), parts)


def _part(text: str, cut: str) -> tuple[str, int]:
    name, _, count = (word.strip() for word in cut.partition("="))
    if name not in AXES or not count.isdecimal() or not 2 <= int(count) <= 10**6:
        raise InputError(
            f"'{text}' is not of the form {FORM}: after the colon come rows=, columns=, channels= or stripes=, "
            "each with a number of parts from 2"
        )
    return name, int(count)


def layer_range(network: Network, text: str) -> tuple[str, ...]:
    """The layers of "NAME" or "FIRST..LAST", in network order, both ends included."""
    names = list(network.by_name)
    if text in network.by_name:
        return (text,)
    first, last = _ends(network, text)
    known_layers(network, (first, last))
    a, b = names.index(first), names.index(last)
    if a > b:
        raise InputError(f"layer '{last}' comes before '{first}': write {last}..{first}")
    return tuple(names[a : b + 1])


def _ends(network: Network, text: str) -> tuple[str, str]:
    """The two layer names of FIRST..LAST. Names may contain dots: the split is where both names exist."""
    at = [i for i in range(len(text)) if text.startswith("..", i)]
    splits = [(text[:i].strip(), text[i + 2 :].strip()) for i in at]
    known = [ends for ends in splits if set(ends) <= set(network.by_name)]
    return (known or splits or [(text, text)])[0]


def schedule_of(network: Network, tile: TileRequest) -> FusionSchedule:
    """The schedule of these layers, in parts as equal as possible."""
    free = unfused_problem(network, Techniques(), 1).views.free
    layers = tuple(name for name in layer_range(network, tile.layers) if name not in free)
    if not layers:
        raise InputError(f"'{tile.layers}' computes nothing: its output lies where its input does, so nothing is cut")
    counts = tuple(Split(AXES[name], (count,)) for name, count in tile.parts)
    fused = FusedLayers(network, FusionSchedule(layers, counts, tile.by_rows), free)
    for problem in streaming(fused):
        raise InputError(problem)
    return replace(fused.schedule, splits=tuple(_even(fused, split) for split in counts))


def _even(fused: FusedLayers, split: Split) -> Split:
    """A split into this many parts, with the end of each. Needs the sinks of the group."""
    (count,) = split.ends
    if not all(can_split(fused.driven(name, split.axis), split.axis) for name in fused.schedule.layers):
        return split  # refused by the check of schedules, which names the layer
    size, what = Tiling(fused, split).size(fused.sinks[0]), WORDS[split.axis]
    if count > size:
        raise InputError(
            f"'{fused.schedule.name}' cannot be cut into {count} parts along {what}: there are {size} {what} at "
            f"'{fused.sinks[0]}'"
        )
    return Split(split.axis, even_ends(size, count))
