/* Eight-bit convolutions and dense layers: pixels, from packed rows or tiles, times panels of weights, four products at a
 * time.
 *
 * Bytes are multiplied as the processor likes them, signed or not; what that adds to the sums is taken off their start,
 * with padding stored as the input's zero point. All that some pixels read is packed before the first of them is
 * written: as much as a kernel that goes pixel by pixel promises. */
#ifndef EW_SIMD_INT8_H
#define EW_SIMD_INT8_H

#include "simd_tiles.h"

/* Computes a part of the output. `tile` has room for rows * EW_SIMD_STEP bytes, times the number of blocks. */
void ew_simd_int8_run(const ew_simd_int8 *conv, const void *x, void *y, ew_part part, uint8_t *tile);

#endif /* EW_SIMD_INT8_H */
