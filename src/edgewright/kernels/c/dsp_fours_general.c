#include "dsp_fours_general.h"

EW_DSP_FOURS(ew_dsp_fours_general, "sxtb16", 0, EW_DSP_GENERAL, EW_DSP_GENERAL_FOURS)
