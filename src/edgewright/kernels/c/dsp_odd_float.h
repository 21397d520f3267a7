/* ew_dsp_float for an odd number of channels. */
#ifndef EW_DSP_ODD_FLOAT_H
#define EW_DSP_ODD_FLOAT_H

#include "dsp_float.h"
#include "dsp_odd.h"

ew_dsp_pairs ew_dsp_odd_float;

#endif /* EW_DSP_ODD_FLOAT_H */
