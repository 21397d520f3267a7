/* Four channels of any range and rounding, with offsets of 64 bits; x is unsigned. */
#ifndef EW_DSP_FOURS_UNSIGNED_WIDE_H
#define EW_DSP_FOURS_UNSIGNED_WIDE_H

#include "dsp_fours.h"

ew_dsp_fours ew_dsp_fours_unsigned_wide;

#endif /* EW_DSP_FOURS_UNSIGNED_WIDE_H */
