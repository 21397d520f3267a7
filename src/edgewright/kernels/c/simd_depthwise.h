/* Depthwise convolutions, float32 and eight-bit: rows of the input are kept as floats, padding included, while windows
 * need them; each output row is computed from these copies.
 *
 * So input and output may share memory as far as a kernel that goes pixel by pixel allows, if all channels are done at
 * once; and lie in the same place, if channels are done in groups. Sums of eight-bit products are whole numbers below
 * 2^24, which floats add up without error.
 *
 * Where there is no room for rows, windows are read where they lie, pixel by pixel: half as fast. Floats that share no
 * memory with the output are read where they lie, several windows at once: nothing is copied, so that a single row costs
 * no more than its share of a whole layer. */
#ifndef EW_SIMD_DEPTHWISE_H
#define EW_SIMD_DEPTHWISE_H

#include "simd_int.h"
#include "simd_math.h"

typedef struct {
    const float *weights; /* [taps][channels], whole panels */
    int32_t height, width, channels;
    int32_t kernel_y, kernel_x, stride_y, stride_x, dilation_y, dilation_x, top, left;
    ew_image in, out;
    int32_t group; /* channels at a time, whole panels; 0: no rows are kept; -1: and no memory is shared */
    int32_t is_backward; /* rows come in reverse order */
} ew_simd_windows;

typedef struct {
    ew_simd_windows windows;
    const float *bias; /* whole panels */
    float low, high; /* where outputs are kept */
    int32_t kind; /* then this activation */
    float a, b;
} ew_simd_depthwise;

typedef struct {
    ew_simd_windows windows;
    ew_simd_finish finish;
    int32_t is_signed, zero; /* the input's bytes and zero point */
} ew_simd_depthwise8;

/* `rows` has room for as many rows as a window spans, of as many columns as the windows of a row span, of `group` floats. */
void ew_simd_depthwise_run(const ew_simd_depthwise *conv, const float *x, float *y, ew_part part, float *rows);
void ew_simd_depthwise8_run(const ew_simd_depthwise8 *conv, const void *x, void *y, ew_part part, float *rows);

#endif /* EW_SIMD_DEPTHWISE_H */
