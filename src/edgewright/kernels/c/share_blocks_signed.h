/* Taps of signed bytes (see share_blocks.h). */
#ifndef EW_SHARE_BLOCKS_SIGNED_H
#define EW_SHARE_BLOCKS_SIGNED_H

#include "share_blocks.h"

ew_share_tap ew_share_blocks_signed;

#endif /* EW_SHARE_BLOCKS_SIGNED_H */
