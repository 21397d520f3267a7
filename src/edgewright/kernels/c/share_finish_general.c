#include "share_finish_general.h"

static EW_SHARE_TWO(ew_share_two_general, EW_DSP_GENERAL, EW_DSP_GENERAL_PAIRS)

EW_SHARE_FINISH(ew_share_finish_general, ew_share_two_general, EW_DSP_GENERAL)
