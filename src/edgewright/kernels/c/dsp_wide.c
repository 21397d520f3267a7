#include "dsp_wide.h"

EW_DSP_PAIRS(ew_dsp_wide, EW_DSP_WIDE, EW_DSP_WIDE_PAIRS)
