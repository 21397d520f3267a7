/* Rows of pointwise convolutions of eight-bit images, two pixels and two channels at a time. */
#ifndef EW_DSP_ROW_H
#define EW_DSP_ROW_H

#include "dsp_conv.h"

/* The first row of a part of the output. `columns` is free memory, 4 * taps bytes: all that two pixels read is copied
 * there before either is written. */
void ew_dsp_row(const ew_dsp_convolution *layer, const void *x, void *y, const ew_part *part, void *columns);

#endif /* EW_DSP_ROW_H */
