#include "dsp_odd_general.h"

EW_DSP_ODD(ew_dsp_odd_general, ew_dsp_general, EW_DSP_GENERAL)
