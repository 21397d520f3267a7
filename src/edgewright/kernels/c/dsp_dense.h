/* Dense layers, and whatever else multiplies bytes that lie side by side: four channels at a time. */
#ifndef EW_DSP_DENSE_H
#define EW_DSP_DENSE_H

#include "dsp_fours.h"

/* One output. x keeps its zero point: it is in the offsets, or in the bias. Where the number of features or of
 * channels is no multiple of four, the first four and those after the rest overlap (with zero weights, or with the same
 * results); fewer than four are completed. */
void ew_dsp_dense(const ew_dsp_sums *layer, ew_dsp_fours *fours, const void *x, void *y, int32_t features);

#endif /* EW_DSP_DENSE_H */
