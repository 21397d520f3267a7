/* Eight-bit convolutions and dense layers: tiles of pixels, packed, times panels of weights, four products at a time.
 *
 * Bytes are multiplied as the processor likes them, signed or not; what that adds to the sums is taken off their start,
 * with padding stored as the input's zero point. All that a tile's pixels read is packed before the first of them is
 * written: as much as a kernel that goes pixel by pixel promises. */
#ifndef EW_SIMD_INT8_H
#define EW_SIMD_INT8_H

#include "simd_int.h"

#define EW_SIMD_BYTES 1024 /* bytes of a pixel in one block of a tile */
#define EW_SIMD_STEP 1088 /* bytes from pixel to pixel there: 64 more, which copies may overwrite */
#define EW_SIMD_LINES 56 /* most pixels in a tile */

typedef struct {
    const int8_t *weights; /* [panels][taps * depth / 4][EW_PANEL][4], zero beyond the last */
    const int32_t *totals; /* of each channel's weights, whole panels */
    ew_simd_finish finish;
    int32_t height, width, depth; /* of the input */
    int32_t kernel_y, kernel_x, stride_y, stride_x, dilation_y, dilation_x, top, left;
    int32_t channels; /* of the output */
    ew_image in, out;
    int32_t rows; /* pixels in a tile */
    int32_t is_backward; /* tiles come in reverse order */
    int32_t is_signed, zero; /* the input's bytes and zero point */
} ew_simd_int8;

/* Computes a part of the output. Without a bias nothing is finished: y are int32 sums that are added to, `out` counts
 * bytes. `tile` has room for rows * EW_SIMD_STEP bytes, times the number of blocks. */
void ew_simd_int8_run(const ew_simd_int8 *conv, const void *x, void *y, ew_part part, uint8_t *tile);

#endif /* EW_SIMD_INT8_H */
