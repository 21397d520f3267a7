#include "share_blocks_signed.h"

EW_SHARE_BLOCKS(ew_share_blocks_signed, int8_t, int8_t, int32_t, EW_SHARE_CENTRED, EW_SHARE_MAC)
