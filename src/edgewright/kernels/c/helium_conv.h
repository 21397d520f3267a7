/* Convolution of int8 with M-profile vectors, pixel by pixel: a pixel is read as it lies, or gathered into a column. */
#ifndef EW_HELIUM_CONV_H
#define EW_HELIUM_CONV_H

#include "helium.h"

/* The pixels of `part`, all channels. `column` has room for products.depth bytes, unless pixels are read as they lie. */
void ew_helium_conv(const ew_convolution *p, const uint8_t *x, uint8_t *y, ew_part part, int8_t *column);

#endif /* EW_HELIUM_CONV_H */
