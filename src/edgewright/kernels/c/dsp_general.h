/* Pairs of channels of any range and rounding. */
#ifndef EW_DSP_GENERAL_H
#define EW_DSP_GENERAL_H

#include "dsp_pairs.h"

ew_dsp_pairs ew_dsp_general;

#endif /* EW_DSP_GENERAL_H */
