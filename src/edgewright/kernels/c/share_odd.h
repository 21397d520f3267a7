/* The same for an odd number of channels: the last one has no partner. */
#ifndef EW_SHARE_ODD_H
#define EW_SHARE_ODD_H

#include "share_pairs.h"

ew_dsp_pairs ew_share_odd;

#endif /* EW_SHARE_ODD_H */
