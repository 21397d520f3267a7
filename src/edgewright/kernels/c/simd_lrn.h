/* Local response normalisation, float32: x / (bias + scale * sum of squares of neighbouring channels)^(3/4), which two
 * square roots make. Pixel by pixel, all channels of each. */
#ifndef EW_SIMD_LRN_H
#define EW_SIMD_LRN_H

#include "simd.h"

typedef struct {
    int32_t channels, before, after; /* neighbours on both sides of a channel */
    ew_image in, out;
    int32_t is_backward; /* pixels come in reverse order */
    float bias, scale;
} ew_simd_lrn;

void ew_simd_lrn_run(const ew_simd_lrn *lrn, const float *x, float *y, ew_part part);

#endif /* EW_SIMD_LRN_H */
