#include "dsp_threes_general.h"

EW_DSP_THREES(ew_dsp_threes_general, EW_DSP_GENERAL, EW_DSP_GENERAL_THREES)
