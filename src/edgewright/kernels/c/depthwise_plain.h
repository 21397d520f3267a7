/* Rows of depthwise convolutions in plain C, one output at a time. */
#ifndef EW_DEPTHWISE_PLAIN_H
#define EW_DEPTHWISE_PLAIN_H

#include "depthwise.h"

#endif /* EW_DEPTHWISE_PLAIN_H */
