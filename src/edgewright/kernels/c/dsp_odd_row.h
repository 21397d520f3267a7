/* Rows of pointwise convolutions with an odd number of pixels: the last three of them together. */
#ifndef EW_DSP_ODD_ROW_H
#define EW_DSP_ODD_ROW_H

#include "dsp_row.h"
#include "dsp_threes.h"

/* The same as ew_dsp_row, with a kernel for three pixels and 6 * taps bytes of columns. */
void ew_dsp_odd_row(const ew_dsp_convolution *layer, ew_dsp_threes *threes, const void *x, void *y,
                    const ew_part *part, void *columns);

#endif /* EW_DSP_ODD_ROW_H */
