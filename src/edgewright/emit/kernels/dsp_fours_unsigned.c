#include "dsp_fours_unsigned.h"

EW_DSP_FOURS(ew_dsp_fours_unsigned, "uxtb16", 1, 1, EW_DSP_GENERAL_FOURS)
