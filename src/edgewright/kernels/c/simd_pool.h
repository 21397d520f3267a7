/* Maxima and averages of windows, float32: pixel by pixel, all channels of each. */
#ifndef EW_SIMD_POOL_H
#define EW_SIMD_POOL_H

#include "simd_math.h"

typedef struct {
    int32_t height, width, channels;
    int32_t kernel_y, kernel_x, stride_y, stride_x, dilation_y, dilation_x, top, left;
    ew_image in, out;
    int32_t is_backward; /* pixels come in reverse order */
    int32_t is_max;
    ew_part counted; /* where the taps lie that an average divides by: the image, or more */
    int32_t kind; /* activation */
    float a, b;
} ew_simd_pool;

void ew_simd_pool_run(const ew_simd_pool *pool, const float *x, float *y, ew_part part);

#endif /* EW_SIMD_POOL_H */
