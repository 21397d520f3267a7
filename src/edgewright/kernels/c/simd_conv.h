/* float32 convolutions and dense layers: tiles of pixels, packed, times panels of weights.
 *
 * A tile is what some pixels in raster order read (im2col), a block of EW_SIMD_DEPTH numbers per pixel at a time; where
 * windows lie side by side in long rows, the strips of the image that they read, which are packed once for them all. Sums
 * wait in the output for the next block; where input and output share memory, they wait beside the tile, so that all is
 * read before any of these pixels is written: as much as a kernel that goes pixel by pixel promises. */
#ifndef EW_SIMD_CONV_H
#define EW_SIMD_CONV_H

#include "simd_math.h"

/* Numbers of a pixel in one block, so that two vectors of weights stay in the nearest cache; and floats from pixel to
 * pixel there: a vector more, which copies may overwrite, and no power of two, lest all pixels fall on the same cache sets.
 * A strip is a row of a window: as many of its numbers make a block, where windows are not packed one by one. */
#if EW_LANES >= 8
#define EW_SIMD_DEPTH 192
#define EW_SIMD_PITCH 208
#define EW_SIMD_STRIP 192
#else
#define EW_SIMD_DEPTH 256
#define EW_SIMD_PITCH 272
#define EW_SIMD_STRIP 384
#endif
#define EW_SIMD_ROWS 112 /* most pixels in a tile */

typedef struct {
    const float *weights; /* [panels][taps * depth][EW_PANEL] */
    const float *bias; /* whole panels; NULL: sums go on from what the output holds */
    int32_t height, width, depth; /* of the input */
    int32_t kernel_y, kernel_x, stride_y, stride_x, dilation_y, dilation_x, top, left;
    int32_t channels; /* of the output */
    ew_image in, out;
    int32_t rows; /* pixels in a tile */
    int32_t is_shared; /* with the input: sums wait beside the tile */
    int32_t is_backward; /* tiles come in reverse order */
    float low, high; /* where outputs are kept */
    int32_t kind; /* then this activation */
    float a, b;
} ew_simd_conv;

/* Computes a part of the output. `tile` has room for rows * EW_SIMD_PITCH floats; and for rows * channels more, where
 * memory is shared and a pixel reads more than one block. */
void ew_simd_conv_run(const ew_simd_conv *conv, const float *x, float *y, ew_part part, float *tile);

/* The same for one pixel that needs no window: x are its `depth` numbers, side by side. */
void ew_simd_conv_line(const ew_simd_conv *conv, const float *x, float *y);

#endif /* EW_SIMD_CONV_H */
