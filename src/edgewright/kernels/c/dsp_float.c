#include "dsp_float.h"

#if EW_DSP_HAS_FLOAT
EW_DSP_PAIRS(ew_dsp_float, EW_DSP_FLOAT, EW_DSP_FLOAT_PAIRS)
#else
EW_DSP_PAIRS_IN_C(ew_dsp_float, EW_DSP_FLOAT)
#endif
