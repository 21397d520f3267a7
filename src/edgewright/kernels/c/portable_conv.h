/* Convolution of int8 in plain C.
 *
 * Four pixels are gathered into a column buffer side by side ([k][4]; padding is the input's zero point), then
 * multiplied with four channels at a time: eight loads feed sixteen products, and all four pixels have been read
 * before the first of them is written. */
#ifndef EW_PORTABLE_CONV_H
#define EW_PORTABLE_CONV_H

#include "portable.h"

/* The pixels of `part`, all channels. `columns` has room for pixels * products.depth bytes. */
void ew_portable_conv(const ew_convolution *p, const uint8_t *x, uint8_t *y, ew_part part, int8_t *columns);

#endif /* EW_PORTABLE_CONV_H */
