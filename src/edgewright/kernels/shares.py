"""Running sums: which emitters add shares of the input to them, fastest first, and which make the output of them."""

from __future__ import annotations

from .dsp import shares as shares_dsp
from .nests import means as shares_means
from .nests import shares as shares_products
from .portable import shares as shares_taps
from .simd import shares as shares_simd

ADD_CONV2D = (shares_simd.add_conv2d, shares_dsp.ADD_CONV, shares_taps.ADD_CONV, shares_products.add_conv2d)
ADD_DENSE = (shares_simd.add_dense, shares_dsp.ADD_DENSE, shares_taps.ADD_DENSE, shares_products.add_dense)
ADD_MEAN = (shares_means.add_by_pixels, shares_means.add)
FINISH_MEAN = (shares_means.finish,)
FINISH_PRODUCTS = (shares_dsp.FINISH, shares_taps.FINISH, shares_products.finish)
