/* The same for at most 32 taps, without a loop over them. */
#ifndef EW_SHARE_FEW_H
#define EW_SHARE_FEW_H

#include "share_pairs.h"

ew_dsp_pairs ew_share_few;

#endif /* EW_SHARE_FEW_H */
