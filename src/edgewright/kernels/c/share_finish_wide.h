/* Complete sums of channels of the kind named wide. */
#ifndef EW_SHARE_FINISH_WIDE_H
#define EW_SHARE_FINISH_WIDE_H

#include "share_finish.h"

ew_share_finish ew_share_finish_wide;

#endif /* EW_SHARE_FINISH_WIDE_H */
