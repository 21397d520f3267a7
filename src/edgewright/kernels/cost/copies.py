"""What moving elements asks of a core: runs of bytes that are copied at once, or elements one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from ...network import Region, Shape
from ...network.operators import Gather
from ..printing.nest import joined_axes
from ..site import Site
from ..strided_tensor import Route
from .work import SHORT, Amounts, KernelWork, is_circular, type_of

DEEP = 2  # loops in each other, beyond which registers are short
SHORT_COPIES = (16, 64)  # bytes that compilers move without a call, some more than others


@dataclass(frozen=True, slots=True)
class CopyPart:
    """A nest of loops in which elements of an input become those of the output."""

    which: int  # of the inputs
    bounds: Region
    source: Route
    target: Route
    is_raw: bool  # what is stored passes through


def copy_work(site: Site, parts: Sequence[CopyPart]) -> KernelWork:
    amounts: Counter[str] = Counter(calls=1)
    for part in parts:
        amounts.update(_nest(site, part))
    return KernelWork(f"copy {8 * site.result.dtype.bytes} bits", dict(amounts))


def _nest(site: Site, part: CopyPart) -> Amounts:
    """As `Copy.nest` prints it: runs of bytes where elements lie side by side in both, and in no common memory."""
    x, rank = site.inputs[part.which], len(part.bounds.bounds)
    source, target = x.along(part.source, rank), site.output.along(part.target, rank)
    counts = part.bounds.shape
    if source and target:
        spans, strides, windows = joined_axes(part.bounds.bounds, [source[0], target[0]])
        counts = tuple(int(high) - int(low) for low, high in spans)
        is_run = all(steps[-1:] == [1] for steps in strides) and (len(spans) - 1) not in {w[0] for w in windows if w}
        if part.is_raw and is_run and not x.meets(site.output):
            return copied(prod(counts[:-1]), counts[-1] * site.result.dtype.bytes)
    return _moved(site, part, tuple(count for count in counts if count > 1))


def _moved(site: Site, part: CopyPart, counts: Shape) -> Amounts:
    """Elements one by one in loops of so many rounds; a few rounds are written out by some compilers."""
    size, rows = part.bounds.size, prod(counts[:-1])
    amounts: Amounts = {"nests": 1, "circular": size if is_circular(site) else 0, "outer rows": prod(counts[:-2])}
    if not part.is_raw:
        return amounts | {"rows": rows, f"scaled {type_of(site)}": size}
    if counts and counts[-1] <= SHORT:
        return amounts | {f"rows of {counts[-1]}": rows}
    return amounts | {"rows": rows, "moved": size, "deep moved": size if len(counts) > DEEP else 0}


def copied(lines: int, size: int) -> Amounts:
    """Lines of so many bytes: in place if they are short enough for that, else by a call.

    In place, words are moved where addresses may be odd, and then what remains; else all bytes one by one.
    """
    how = next((f" up to {most}" for most in SHORT_COPIES if size <= most), "")
    amounts: Amounts = {f"{'lines' if lines > 1 else 'copies'}{how}": lines}
    if how:
        words, rest = divmod(size, 4)
        return amounts | {f"moves{how}": lines * (words + (rest + 1) // 2), f"bytes{how}": lines * size}
    blocks, rest = divmod(size, 16)
    if size % 4:
        return amounts | {"bytes": lines * size}
    return amounts | {"blocks": lines * blocks, "words": lines * (rest // 4)}


def gather_work(site: Site, region: Region) -> KernelWork:
    """Lines that are copied from where indices say."""
    assert isinstance(site.op, Gather)
    first = site.op.axis % len(site.shapes[0]) + len(site.shapes[1])  # axis from which on elements lie side by side
    length = region.shape[-1] if first < len(region.shape) else 1
    lines, size = region.size // max(1, length), length * site.result.dtype.bytes
    return KernelWork(f"gather {8 * site.result.dtype.bytes} bits", {"calls": 1, **copied(lines, size)})
