#include "share_blocks_unsigned.h"

EW_SHARE_BLOCKS(ew_share_blocks_unsigned, uint8_t, int8_t, int32_t, EW_SHARE_CENTRED, EW_SHARE_MAC)
