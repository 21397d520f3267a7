"""Which depthwise convolutions of bytes the kernels of microcontrollers take, whichever way they go through them."""

from __future__ import annotations

from ...network.operators import Conv2d
from ...program import Sweep
from ..site import Site

MOST_SIZE = 8192  # of an axis: tables of the kernels have 16 bits for sizes, pads and strides included


def fits_depthwise(site: Site, op: Conv2d) -> bool:
    """Whether each output channel reads one input channel, of images that lie as the kernels expect."""
    x, y, w = site.inputs[0], site.output, site.shapes[1]
    return (
        w[3] == 1
        and op.groups == site.shapes[0][3] > 1  # one channel is an ordinary convolution, and quicker as such
        and x.tensor.shape[0] == 1
        and site.bounds[0] == (0, 1)
        and max(x.tensor.shape[1:] + y.tensor.shape[1:]) <= MOST_SIZE
        and x.strides[3] == y.strides[3] == 1
        and all(place.window is None or place.window[0] == 1 for place in (x, y))
        and (site.sweep is not Sweep.CHANNELS or op.pads[0] < extent(w[1], op.dilation[0]))
    )


def extent(taps: int, dilation: int) -> int:
    """Rows or columns from the first tap to the last."""
    return (taps - 1) * dilation + 1
