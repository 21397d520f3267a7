"""What the vector kernels ask of a site: how images lie, which part is computed, where there is room to work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ...network.operators import Activation, Clamp, Elu, HardSigmoid, LeakyRelu, Unary, UnaryKind
from ...platform.target import Family
from ..call import Call as Site
from ..nests.activations import activated
from ..printing.constants import number
from ..printing.nest import elements
from ..printing.source import Expr, Source, braced, moved, plus, times
from ..printing.tensor import CTensor as Place

PANEL = 16  # EW_PANEL
ROOM = 64 << 10  # bytes of stack where the arena has no room

_KINDS = {
    UnaryKind.SIGMOID: "EW_SIMD_SIGMOID",
    UnaryKind.SILU: "EW_SIMD_SILU",
    UnaryKind.HARD_SWISH: "EW_SIMD_HARD_SWISH",
    UnaryKind.TANH: "EW_SIMD_TANH",
}


@dataclass(frozen=True, slots=True)
class Ending:
    """What follows a sum: limits, a function with two numbers; or something that the kernels leave to a second pass."""

    low: str = "-INFINITY"
    high: str = "INFINITY"
    kind: str = "EW_SIMD_AS_IS"
    a: str = "0.0f"
    b: str = "0.0f"
    rest: Activation | None = None

    @property
    def fields(self) -> tuple[str, ...]:
        return self.low, self.high, self.kind, self.a, self.b

    @property
    def function(self) -> tuple[str, str, str]:
        """Limits and function as one function, where there is no rest."""
        is_clamp = (self.low, self.high) != ("-INFINITY", "INFINITY")
        return ("EW_SIMD_CLAMP", self.low, self.high) if is_clamp else (self.kind, self.a, self.b)


def ending(activation: Activation | None) -> Ending:
    match activation:
        case None:
            return Ending()
        case Clamp(low, high):
            return Ending(number(low), number(high))
        case LeakyRelu(alpha):
            return Ending(kind="EW_SIMD_LEAKY", a=number(alpha))
        case Elu(alpha, gamma):
            return Ending(kind="EW_SIMD_ELU", a=number(alpha), b=number(gamma))
        case HardSigmoid(alpha, beta):
            return Ending(kind="EW_SIMD_HARD_SIGMOID", a=number(alpha), b=number(beta))
        case Unary(kind) if kind in _KINDS:
            return Ending(kind=_KINDS[kind])
        case _:
            return Ending(rest=activation)


def finish(site: Site, c: Source, end: Ending) -> None:
    """The second pass, over what has been written, for activations that the kernels do not know."""
    if end.rest is None:
        return
    with elements(c, site.region, [site.output]) as ((at,), _):
        y = f"{site.output.pointer}[{at}]"
        c.line(f"{y} = {activated(site, end.rest, y)};")


def is_ours(site: Site, *dtypes: str) -> bool:
    """Whether vectors are wanted, and the activations and the output have one of these types."""
    tensors = [place.tensor for place in (site.inputs[0], site.output)]
    return site.target.family is Family.SIMD and all(tensor.dtype.value in dtypes for tensor in tensors)


def is_image(place: Place) -> bool:
    """Whether channels, if there are several, lie side by side, and nothing but rows rolls."""
    has_pixels = len(place.strides) == 4 and (place.strides[3] == 1 or place.tensor.shape[3] == 1)
    return has_pixels and (place.window is None or place.window[0] == 1)


def is_plain_image(site: Site) -> bool:
    """Whether input and output are images, of which all channels are computed pixel by pixel."""
    return (
        is_image(site.inputs[0])
        and is_image(site.output)
        and site.region[3] == (0, site.result.shape[3])
        and all(isinstance(bound, int) for bound in site.region[0])
    )


@contextmanager
def pictures(site: Site, c: Source) -> Iterator[tuple[str, str]]:
    """A block for each picture of the batch with its part of the output; gives pointers to input and output."""
    low, high = site.region[0]
    assert isinstance(low, int) and isinstance(high, int)
    (top, bottom), (left, right) = site.region[1:3]
    count = high - low
    at: Expr = low
    with c.block("" if count == 1 else f"for (int32_t picture = 0; picture < {count}; picture++)"):
        if count > 1:
            at = f"{high - 1} - picture" if site.is_backward else plus("picture", low)
        c.line(f"const ew_part part = {braced((top, bottom, left, right))};")
        x, y = (moved(place.pointer, times(at, place.strides[0])) for place in (site.inputs[0], site.output))
        yield x, y


def room_for(site: Site, least: int, best: int) -> tuple[str | None, int]:
    """(where, bytes) to work in: the arena's hole (a C expression) or the stack (None); 0 bytes: neither has room."""
    hole = site.hole[1] if site.hole else 0
    if hole >= best or hole > ROOM:
        return (site.free(min(hole, best)), min(hole, best)) if hole >= least else (None, 0)
    return (None, min(ROOM, best)) if least <= ROOM else (None, 0)


def working_room(c: Source, where: str | None, size: int, ctype: str) -> str:
    """The C expression of the room as `ctype *`; declares it where it is on the stack."""
    if where is not None:
        return where if ctype == "uint8_t" else f"({ctype} *)(void *){where}"
    width = 4 if ctype == "float" else 1
    c.line(f"EW_ALIGNED(64) {ctype} room[{-(-size // width)}];")
    return "room"
