"""Running sums: which emitters add shares of the input to them, fastest first, and which make the output of them."""

from __future__ import annotations

from .dsp import shares as shares_dsp
from .nests import means as shares_means
from .nests import shares as shares_products
from .portable import shares as shares_taps
from .simd import shares as shares_simd

ADD_CONV2D = (shares_simd.add_conv2d, shares_dsp.ADD_CONV, shares_taps.add_conv2d, shares_products.ADD_CONV)
ADD_DENSE = (shares_simd.add_dense, shares_dsp.ADD_DENSE, shares_taps.add_dense, shares_products.ADD_DENSE)
ADD_MEAN = (shares_means.ADD_PIXELS, shares_means.ADD_ELEMENTS)
FINISH_MEAN = (shares_means.FINISH,)
FINISH_PRODUCTS = (shares_dsp.FINISH, shares_taps.finish, shares_products.FINISH)
