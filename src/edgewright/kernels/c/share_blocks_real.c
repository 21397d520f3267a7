#include "share_blocks_real.h"

/* Rounded once where the core does that in one instruction; within the tolerance of floats either way. */
#if defined(__ARM_FEATURE_FMA) && defined(__GNUC__)
#define EW_SHARE_REAL_MAC(a, x, w) __builtin_fmaf(x, w, a)
#else
#define EW_SHARE_REAL_MAC EW_SHARE_MAC
#endif

EW_SHARE_BLOCKS(ew_share_blocks_real, float, float, float, EW_SHARE_REAL, EW_SHARE_REAL_MAC)
