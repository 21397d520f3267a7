/* Rows of pointwise convolutions of eight-bit images, two or three pixels and two channels at a time. */
#ifndef EW_DSP_ROW_H
#define EW_DSP_ROW_H

#include "dsp_conv.h"
#include "dsp_threes.h"

/* The first row of a part of the output. Of an odd number of pixels the last three are computed together, unless
 * `threes` is NULL. `columns` is free memory, 4 * taps bytes, 6 * taps with `threes`: all that pixels read is copied
 * there before the first of them is written. */
void ew_dsp_row(const ew_dsp_convolution *layer, ew_dsp_threes *threes, const void *x, void *y, const ew_part *part,
                void *columns);

#endif /* EW_DSP_ROW_H */
