#include "dsp_plain.h"

EW_DSP_PAIRS(ew_dsp_plain, EW_DSP_PLAIN, EW_DSP_PLAIN_PAIRS)
