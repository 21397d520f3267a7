/* Convolution of int8 in plain C, two products in one multiplication.
 *
 * Two pixels are gathered into one number, a + b * 65536, so that a multiplication by a weight gives both products. Two
 * of these are added before the halves are told apart: a half has room for two products and no more. The lower half is
 * shifted up so that it is never negative, and then the upper one can be read off. Four pixels and four channels at a
 * time; all four pixels have been read before the first of them is written. */
#ifndef EW_PORTABLE_PAIRS_H
#define EW_PORTABLE_PAIRS_H

#include "portable.h"

/* The pixels of `part`, all channels: a multiple of four of them. Products.depth is even: where a window has an odd
 * number of bytes, weights of 0 follow. `columns` has room for 2 * products.depth numbers. */
void ew_portable_pairs(const ew_convolution *p, const uint8_t *x, uint8_t *y, const ew_part *part, int32_t *columns);

#endif /* EW_PORTABLE_PAIRS_H */
