/* Convolutions of eight-bit images, two pixels and two channels at a time. */
#ifndef EW_DSP_CONV_H
#define EW_DSP_CONV_H

#include "dsp_columns.h"
#include "dsp_pairs.h"

/* What a window reads is cut into runs of neighbours: a row of the window, or each of its taps alone. */
typedef struct {
    ew_dsp_sums sums;
    ew_dsp_pairs *pairs; /* the kernel for them */
    ew_image x, y;
    int16_t height, width, depth; /* of x */
    uint8_t rows, runs;           /* of a window, and of a row of it */
    uint8_t pixels;               /* of a run */
    uint8_t row_stride, stride, row_step, step; /* from window to window, and from tap to tap */
    int8_t top, left;             /* pads */
    int8_t zero;                  /* of x, as a signed byte */
    uint8_t flip;                 /* 128 makes unsigned bytes of x signed */
    uint8_t is_backward;
#ifdef EW_HAS_SPLIT
    uint8_t is_split; /* columns hold four channels of all taps, then the next four */
#endif
} ew_dsp_convolution;

/* A part of the output. `columns` is free memory, 4 * taps bytes: all that two pixels read is copied there before
 * either is written. */
void ew_dsp_conv(const ew_dsp_convolution *layer, const void *x, void *y, const ew_part *part, void *columns);

/* The same where x is a rolling buffer. */
void ew_dsp_conv_circular(const ew_dsp_convolution *layer, const void *x, void *y, const ew_part *part, void *columns);

#endif /* EW_DSP_CONV_H */
