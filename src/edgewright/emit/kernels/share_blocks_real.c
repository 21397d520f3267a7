#include "share_blocks_real.h"

EW_SHARE_BLOCKS(ew_share_blocks_real, float, float, float, EW_SHARE_REAL)
