#include "dsp_fours_unsigned_wide.h"

EW_DSP_FOURS(ew_dsp_fours_unsigned_wide, "uxtb16", 1, EW_DSP_WIDE, EW_DSP_WIDE_FOURS)
