/* Four channels of any range and rounding; x is unsigned. */
#ifndef EW_DSP_FOURS_UNSIGNED_GENERAL_H
#define EW_DSP_FOURS_UNSIGNED_GENERAL_H

#include "dsp_fours.h"

ew_dsp_fours ew_dsp_fours_unsigned_general;

#endif /* EW_DSP_FOURS_UNSIGNED_GENERAL_H */
