#include "share_finish_wide.h"

static EW_SHARE_TWO(ew_share_two_wide, EW_DSP_WIDE, EW_DSP_WIDE_PAIRS)

EW_SHARE_FINISH(ew_share_finish_wide, ew_share_two_wide, EW_DSP_WIDE)
