/* Convolutions of eight-bit images, one pixel and four channels at a time: for windows so large that there is no memory
 * for the columns of two pixels. */
#ifndef EW_DSP_WINDOWS_H
#define EW_DSP_WINDOWS_H

#include "dsp_dense.h"

typedef struct {
    ew_dsp_sums sums;
    ew_dsp_fours *fours; /* the kernel for them */
    ew_image x, y;
    int16_t height, width, depth; /* of x */
    uint8_t rows, columns; /* of a window */
    uint8_t row_stride, stride, row_step, step; /* from window to window, and from tap to tap */
    int8_t top, left; /* pads */
    uint8_t zero; /* the byte that padding consists of */
    uint8_t is_backward;
#ifdef EW_HAS_SPLIT
    uint8_t is_split; /* windows hold four channels of all taps, then the next four */
#endif
} ew_dsp_windows;

/* A part of the output. `window` is free memory, as many bytes as a window has: all that a pixel reads is copied there
 * before it is written. */
void ew_dsp_windows_run(const ew_dsp_windows *layer, const void *x, void *y, const ew_part *part, uint8_t *window);

#endif /* EW_DSP_WINDOWS_H */
