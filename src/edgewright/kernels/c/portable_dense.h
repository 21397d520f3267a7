/* One row of int8 times a matrix in plain C: sixteen channels at a time, so that each input is loaded once for
 * sixteen products. */
#ifndef EW_PORTABLE_DENSE_H
#define EW_PORTABLE_DENSE_H

#include "portable.h"

/* All channels of one pixel. Weights: [k][16] for blocks of sixteen channels, then [k][4], then channel by channel. */
void ew_portable_dense(const ew_products *p, const int8_t *x, uint8_t *y);

#endif /* EW_PORTABLE_DENSE_H */
