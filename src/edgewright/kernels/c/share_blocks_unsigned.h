/* Taps of unsigned bytes (see share_blocks.h). */
#ifndef EW_SHARE_BLOCKS_UNSIGNED_H
#define EW_SHARE_BLOCKS_UNSIGNED_H

#include "share_blocks.h"

ew_share_tap ew_share_blocks_unsigned;

#endif /* EW_SHARE_BLOCKS_UNSIGNED_H */
