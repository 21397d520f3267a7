/* Complete sums of channels of the kind named general. */
#ifndef EW_SHARE_FINISH_GENERAL_H
#define EW_SHARE_FINISH_GENERAL_H

#include "share_finish.h"

ew_share_finish ew_share_finish_general;

#endif /* EW_SHARE_FINISH_GENERAL_H */
