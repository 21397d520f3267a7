#include "dsp_odd_wide.h"

EW_DSP_ODD(ew_dsp_odd_wide, ew_dsp_wide, EW_DSP_WIDE)
