#include "dsp_general.h"

EW_DSP_PAIRS(ew_dsp_general, EW_DSP_GENERAL, EW_DSP_GENERAL_PAIRS)
