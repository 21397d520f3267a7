/* Complete sums of channels of the kind named float. */
#ifndef EW_SHARE_FINISH_FLOAT_H
#define EW_SHARE_FINISH_FLOAT_H

#include "share_finish.h"

ew_share_finish ew_share_finish_float;

#endif /* EW_SHARE_FINISH_FLOAT_H */
