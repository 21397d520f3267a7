"""How the running sums of a layer lie in memory while shares of its input are added to them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ...network import Tensor
from ...network.operators import Conv2d, Dense
from ...network.operators.shares import share_axes
from ..place import Place
from ..site import Site
from ..source import Expr, Source
from ..target import Family
from .dsp_numbers import Numbers
from .shares_numbers import summed_numbers

DUAL = (Family.DSP, Family.HELIUM)  # families with pairs of 16-bit products


@dataclass(frozen=True)
class Form:
    """What all steps of a layer agree on, whichever emitter writes them."""

    numbers: Numbers | None  # channels lie in pairs, as the kernels of `dsp` sum them: a, then 256 * b + a
    is_raw: bool  # x keeps its zero point

    def put(self, site: Site, c: Source, place: Place, at: tuple[Expr, ...]) -> None:
        """Adds `sum` to the running sum at these indices of the output."""
        if self.numbers is None:
            c.line(f"{place.pointer}[{place.offset(at)}] += sum;")
            return
        site.use("share")
        pixel = place.address((*at[:-1], 0))
        c.line(f"ew_share_put({pixel}, {at[-1]}, {site.result.shape[-1]}, sum);")


PLAIN = Form(None, False)


def form_of(site: Site) -> Form:
    """The form of a layer's sums: the same for every step of it."""
    op = site.op
    if not isinstance(op, Conv2d | Dense) or site.target.family not in DUAL or site.output.strides[-1] != 1:
        return PLAIN
    numbers = summed_numbers(site, isinstance(op, Dense))
    return Form(numbers, isinstance(op, Dense)) if numbers else PLAIN


def sums_place(site: Site, pointer: str | None = None) -> Place:
    """The running sums as a tensor of the output's shape; those of real numbers lie in the output."""
    if site.result.dtype.is_float:
        return site.output if pointer is None else _moved(site.output, pointer)
    assert site.sums is not None
    return Place(site.result, pointer or site.sums, dense_strides(site.result))


def _moved(place: Place, pointer: str) -> Place:
    return Place(place.tensor, pointer, place.strides, place.window, place.memory, place.first, place.last)


def dense_strides(tensor: Tensor) -> tuple[int, ...]:
    """In elements."""
    return tuple(stride // tensor.dtype.bytes for stride in tensor.strides)


def summed_type(site: Site) -> str:
    return "float" if site.result.dtype.is_float else "int32_t"


def summed(site: Site) -> Collection[int]:
    """The axes of the first input that are summed over."""
    return share_axes(site.op, site.shapes).keys()


def share_of(site: Site, axis: int) -> tuple[Expr, Expr]:
    """The part of the input along an axis that is summed over."""
    assert site.share is not None
    return site.share[axis]
