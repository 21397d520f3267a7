#include "dsp_fours_unsigned_float.h"

#if EW_DSP_HAS_FLOAT
EW_DSP_FOURS(ew_dsp_fours_unsigned_float, "uxtb16", 1, EW_DSP_FLOAT, EW_DSP_FLOAT_FOURS)
#else
EW_DSP_FOURS_IN_C(ew_dsp_fours_unsigned_float, 1, EW_DSP_FLOAT)
#endif
