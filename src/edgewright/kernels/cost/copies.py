"""What moving elements asks of a core: runs of bytes that are copied at once, or elements one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from ...network import Region
from ...network.operators import Gather
from ..printing.nest import joined_axes
from ..site import Site
from ..strided_tensor import Route
from .work import SHORT, Amounts, KernelWork, is_bent, type_of

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
    x, rank, size = site.inputs[part.which], len(part.bounds.bounds), part.bounds.size
    source, target = x.along(part.source, rank), site.output.along(part.target, rank)
    counts = part.bounds.shape
    if source and target:
        spans, strides, windows = joined_axes(part.bounds.bounds, [source[0], target[0]])
        counts = tuple(int(high) - int(low) for low, high in spans)
        is_run = all(steps[-1:] == [1] for steps in strides) and (len(spans) - 1) not in {w[0] for w in windows if w}
        if part.is_raw and is_run and not x.meets(site.output):
            return copied(prod(counts[:-1]), counts[-1] * site.result.dtype.bytes)
    counts = tuple(count for count in counts if count > 1)
    short = "short " if counts and counts[-1] <= SHORT else ""
    how = f"{short}moved" if part.is_raw else f"scaled {type_of(site)}"
    amounts: Amounts = {"nests": 1, f"{short}rows": prod(counts[:-1]), how: size}
    return amounts | {"outer rows": prod(counts[:-2]), "bent": size if is_bent(site) else 0}


def copied(lines: int, size: int) -> Amounts:
    """Lines of so many bytes: in place if they are short enough for that, else by a call."""
    how = next((f" up to {most}" for most in SHORT_COPIES if size <= most), "")
    blocks, rest = divmod(size, 16) if not how else (0, size)
    is_odd = size % 4 != 0
    return {
        f"lines{how}": lines,
        "blocks": 0 if is_odd else lines * blocks,
        f"words{how}": 0 if is_odd else lines * (rest // 4),
        f"bytes{how}": lines * size if is_odd else 0,
    }


def gather_work(site: Site, region: Region) -> KernelWork:
    """Lines that are copied from where indices say."""
    assert isinstance(site.op, Gather)
    first = site.op.axis % len(site.shapes[0]) + len(site.shapes[1])  # axis from which on elements lie side by side
    length = region.shape[-1] if first < len(region.shape) else 1
    lines, size = region.size // max(1, length), length * site.result.dtype.bytes
    return KernelWork(f"gather {8 * site.result.dtype.bytes} bits", {"calls": 1, **copied(lines, size)})
