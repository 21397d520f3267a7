#include "dsp_fours_wide.h"

EW_DSP_FOURS(ew_dsp_fours_wide, "sxtb16", 0, EW_DSP_WIDE, EW_DSP_WIDE_FOURS)
