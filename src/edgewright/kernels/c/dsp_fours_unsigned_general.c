#include "dsp_fours_unsigned_general.h"

EW_DSP_FOURS(ew_dsp_fours_unsigned_general, "uxtb16", 1, EW_DSP_GENERAL, EW_DSP_GENERAL_FOURS)
