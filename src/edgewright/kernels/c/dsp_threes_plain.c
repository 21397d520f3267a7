#include "dsp_threes_plain.h"

EW_DSP_THREES(ew_dsp_threes_plain, EW_DSP_PLAIN, EW_DSP_PLAIN_THREES)
