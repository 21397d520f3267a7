/* Eight-bit convolutions and dense layers as tiles of pixels and panels of weights. */
#ifndef EW_SIMD_TILES_H
#define EW_SIMD_TILES_H

#include "simd_ending.h"

#define EW_SIMD_BYTES 1024 /* bytes of a pixel in one block of a tile */
#define EW_SIMD_STEP 1088 /* bytes from pixel to pixel there: 64 more, which copies may overwrite */
#define EW_SIMD_LINES 56 /* most pixels in a tile */

typedef struct {
    const int8_t *weights; /* [panels][taps * depth / 4][EW_PANEL][4], zero beyond the last */
    const int32_t *start; /* of each channel's sums, EW_START in whole panels */
    ew_simd_finish finish;
    int32_t height, width, depth; /* of the input */
    int32_t kernel_y, kernel_x, stride_y, stride_x, dilation_y, dilation_x, top, left;
    int32_t channels; /* of the output */
    ew_image in, out;
    int32_t rows; /* pixels in a tile */
    int32_t is_backward; /* tiles come in reverse order */
    int32_t is_signed, zero; /* the input's bytes and zero point */
    int32_t is_share; /* nothing is finished: y are int32 sums that are added to, and `out` counts bytes */
} ew_simd_int8;

#endif /* EW_SIMD_TILES_H */
