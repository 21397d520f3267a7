"""int8 convolutions of single pixels to a single channel, as dot products, on cores with pairs of 16-bit products.

Kernels for pairs of channels and pixels spend most of their time on what surrounds the products of such a layer.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...network import Region
from ...network.operators import Conv2d
from ..call import CCall
from ..cost.work import KernelWork, rounding
from ..kernel import Kernel, Offer, of_region
from ..nests.accumulator import accumulator, accumulator_type, can_accumulate
from ..nests.windows import fence
from ..printing.constants import number
from ..printing.nest import loops
from ..printing.source import CWriter, Expr, summand, times
from ..requantise.sums import flip, requantised
from ..site import Site, unwrap
from .conv import DSP, conv_window, is_image_conv
from .packing import ORDER

UNROLLED = 4  # words of a pixel that are written out


def offers(site: Site) -> Iterator[Offer]:
    is_single = site.result.shape[-1] == 1 and is_image_conv(site) and conv_window(site).is_pointwise
    is_plain = is_single and can_accumulate(site) and requantised(site) is not None
    if is_plain and accumulator_type(site) == "int32_t" and not site.inputs[0].window and not site.output.window:
        yield Offer()


def write(call: CCall, _: Offer, c: CWriter) -> None:
    op, acc, sums, x = call.op_as(Conv2d), accumulator(call), unwrap(requantised(call)), call.inputs[0]
    call.use("dsp")
    weights, above = sums.weights[0], flip(x.tensor)
    words, rest = divmod(len(weights), 4)
    pairs = weights[: 4 * words].reshape(-1, 4)[:, ORDER].astype(np.int16)
    base = (above - sums.zero) * int(weights.sum(dtype=np.int64))  # bytes keep their zero point
    turned = f" ^ 0x{above * 0x01010101:08X}u" if above else ""
    with c.block():
        c.line(f"const uint8_t *const px = (const uint8_t *){call.place(0).pointer};")
        c.line(f"{call.output.ctype} *const py = {call.output.pointer};")
        if words:
            c.line(f"const int16_t *const pw = {call.add(pairs, 'weights, pairs of taps')};")
        with loops(c, call.region[:-1], backward=call.is_backward) as at, c.block():
            source = (*(times(i, s) for i, s in zip(at, (1, *op.stride), strict=True)), 0)
            c.line(f"const uint8_t *const tap = px + {summand(x.offset(source))};")
            c.line(f"int32_t sum = {acc.start(0)} + {number(base, 'int32')};")
            if words > UNROLLED:
                with loops(c, [(0, words)], "word") as (word,):
                    _add_word(c, times(word, 4), turned)
            else:
                for word in range(words):
                    _add_word(c, 4 * word, turned)
            for k in range(4 * words, 4 * words + rest):
                flipped = f"(int8_t)(tap[{k}] ^ 128)" if above else f"(int8_t)tap[{k}]"
                c.line(f"sum += {flipped} * {int(weights[k])};")
            c.line(f"py[{call.output.offset((*at, 0))}] = {acc.store('sum', 0)};")
            fence(call, c)


def _add_word(c: CWriter, at: Expr, turned: str) -> None:
    """Four taps from `at` on."""
    with c.block():
        c.line(f"const uint32_t bytes = ew_dsp_load(tap + {summand(at)}){turned};")
        c.line(f"sum = ew_dsp_mac(ew_dsp_even(0, bytes), ew_dsp_load(pw + {summand(at)}), sum);")
        c.line(f"sum = ew_dsp_mac(ew_dsp_odd(0, bytes), ew_dsp_load(pw + {summand(at)} + 2), sum);")


def work(site: Site, region: Region) -> KernelWork:
    words, rest = divmod(site.shapes[0][-1], 4)
    return KernelWork(
        "single int8",
        {
            "calls": 1,
            "words": region.size * (words if words <= UNROLLED else 0),
            "looped words": region.size * (words if words > UNROLLED else 0),
            "macs": region.size * rest,
            f"outputs {rounding(site)}": region.size,
        },
    )


SINGLE = Kernel("dsp_single", (Conv2d,), offers, write, DSP, work=of_region(work))
