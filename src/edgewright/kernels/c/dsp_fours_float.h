/* Four channels that are scaled in float and rounded half to even; x is signed. */
#ifndef EW_DSP_FOURS_FLOAT_H
#define EW_DSP_FOURS_FLOAT_H

#include "dsp_fours.h"

ew_dsp_fours ew_dsp_fours_float;

#endif /* EW_DSP_FOURS_FLOAT_H */
