#include "share_finish_plain.h"

static EW_SHARE_TWO(ew_share_two_plain, EW_DSP_PLAIN, EW_DSP_PLAIN_PAIRS)

EW_SHARE_FINISH(ew_share_finish_plain, ew_share_two_plain, EW_DSP_PLAIN)
