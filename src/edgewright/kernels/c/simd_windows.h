/* Windows of depthwise convolutions, and those of bytes. */
#ifndef EW_SIMD_WINDOWS_H
#define EW_SIMD_WINDOWS_H

#include "simd_ending.h"

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
    const int32_t *bias; /* whole panels */
    ew_simd_finish finish;
    int32_t is_signed, zero; /* the input's bytes and zero point */
} ew_simd_depthwise8;

#endif /* EW_SIMD_WINDOWS_H */
