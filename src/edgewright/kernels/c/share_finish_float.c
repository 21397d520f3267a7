#include "share_finish_float.h"

#if EW_DSP_HAS_FLOAT
static EW_SHARE_TWO(ew_share_two_float, EW_DSP_FLOAT, EW_DSP_FLOAT_PAIRS)
#else
static EW_SHARE_TWO_IN_C(ew_share_two_float, EW_DSP_FLOAT)
#endif

EW_SHARE_FINISH(ew_share_finish_float, ew_share_two_float, EW_DSP_FLOAT)
