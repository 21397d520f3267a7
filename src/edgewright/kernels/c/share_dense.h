/* Shares of dense layers: bytes that lie side by side, times weights of four channels at a time, added to running
 * sums (see share.h). */
#ifndef EW_SHARE_DENSE_H
#define EW_SHARE_DENSE_H

#include "dsp_fours.h"

/* A multiple of four channels; y points to their sums. */
ew_dsp_fours ew_share_signed;
ew_dsp_fours ew_share_unsigned;

/* `features` bytes of x, which keeps its zero point; weights as ew_dsp_dense has them, with zeros for the channels that
 * the last four lack. */
void ew_share_dense(const ew_dsp_sums *layer, ew_dsp_fours *fours, const void *x, int32_t *sums, int32_t features);

#endif /* EW_SHARE_DENSE_H */
