/* Complete sums of channels of the kind named plain. */
#ifndef EW_SHARE_FINISH_PLAIN_H
#define EW_SHARE_FINISH_PLAIN_H

#include "share_finish.h"

ew_share_finish ew_share_finish_plain;

#endif /* EW_SHARE_FINISH_PLAIN_H */
