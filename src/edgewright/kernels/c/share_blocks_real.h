/* Taps of floats (see share_blocks.h). */
#ifndef EW_SHARE_BLOCKS_REAL_H
#define EW_SHARE_BLOCKS_REAL_H

#include "share_blocks.h"

ew_share_tap ew_share_blocks_real;

#endif /* EW_SHARE_BLOCKS_REAL_H */
