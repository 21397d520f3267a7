/* Pairs of channels that are scaled in float and rounded half to even. */
#ifndef EW_DSP_FLOAT_H
#define EW_DSP_FLOAT_H

#include "dsp_pairs.h"

ew_dsp_pairs ew_dsp_float;

#endif /* EW_DSP_FLOAT_H */
