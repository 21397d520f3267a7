/* The same for eight taps and a multiple of four channels, which are multiplied together: each pixel's taps stay in
 * registers. */
#ifndef EW_SHARE_EIGHT_H
#define EW_SHARE_EIGHT_H

#include "share_pairs.h"

ew_dsp_pairs ew_share_eight;

#endif /* EW_SHARE_EIGHT_H */
