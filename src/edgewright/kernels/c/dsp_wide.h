/* Pairs of channels of any range and rounding, with offsets of 64 bits. */
#ifndef EW_DSP_WIDE_H
#define EW_DSP_WIDE_H

#include "dsp_pairs.h"

ew_dsp_pairs ew_dsp_wide;

#endif /* EW_DSP_WIDE_H */
