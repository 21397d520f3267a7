/* Depthwise convolutions, float32 and eight-bit: rows of the input are kept as floats, padding included, while windows
 * need them; each output row is computed from these copies.
 *
 * So input and output may share memory as far as a kernel that goes pixel by pixel allows, if all channels are done at
 * once; and lie in the same place, if channels are done in groups. Sums of eight-bit products are whole numbers below
 * 2^24, which floats add up without error.
 *
 * Where there is no room for rows, windows are read where they lie, pixel by pixel: half as fast. Few rows of floats that
 * share no memory with the output are read where they lie, several windows at once: nothing is copied, so that a single
 * row costs little more than its share of a whole layer. */
#ifndef EW_SIMD_DEPTHWISE_H
#define EW_SIMD_DEPTHWISE_H

#include "simd_math.h"
#include "simd_windows.h"

typedef struct {
    ew_simd_windows windows;
    const float *bias; /* whole panels */
    float low, high; /* where outputs are kept */
    int32_t kind; /* then this activation */
    float a, b;
} ew_simd_depthwise;

/* `rows` has room for as many rows as a window spans, of as many columns as the windows of a row span, of `group` floats. */
void ew_simd_depthwise_run(const ew_simd_depthwise *conv, const float *x, float *y, ew_part part, float *rows);
void ew_simd_depthwise8_run(const ew_simd_depthwise8 *conv, const void *x, void *y, ew_part part, float *rows);

#endif /* EW_SIMD_DEPTHWISE_H */
