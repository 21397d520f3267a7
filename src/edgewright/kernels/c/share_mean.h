/* Sums of bytes over pixels, added to running sums. */
#ifndef EW_SHARE_MEAN_H
#define EW_SHARE_MEAN_H

#include "base.h"

/* Adds the channels of `count` pixels, `pixel` bytes apart, to the sums of these channels. */
void ew_share_signed_pixels(const int8_t *x, int32_t pixel, int32_t count, int32_t channels, int32_t *sums);
void ew_share_unsigned_pixels(const uint8_t *x, int32_t pixel, int32_t count, int32_t channels, int32_t *sums);

#endif /* EW_SHARE_MEAN_H */
