#include "dsp_odd_float.h"

EW_DSP_ODD(ew_dsp_odd_float, ew_dsp_float, EW_DSP_FLOAT)
