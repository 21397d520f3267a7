/* Running sums of pairs of channels, as dsp.h sums them: that of channel a, then 256 times that of b plus that of a. A
 * last channel without a partner lies alone. */
#ifndef EW_SHARE_H
#define EW_SHARE_H

#include "base.h"

/* Adds to the sum of one channel of a pixel. */
EW_INLINE void ew_share_put(int32_t *pixel, int32_t channel, int32_t channels, int32_t sum)
{
    int32_t *const at = pixel + channel;
    const uint32_t once = (uint32_t)sum;
    at[0] = (int32_t)((uint32_t)at[0] + (channel & 1 ? once << 8 : once));
    if (!(channel & 1) && channel + 1 < channels)
        at[1] = (int32_t)((uint32_t)at[1] + once);
}

/* The sum of one channel of a pixel. */
EW_INLINE int32_t ew_share_sum(const int32_t *pixel, int32_t channel)
{
    const int32_t *const at = pixel + channel;
    return channel & 1 ? (int32_t)((uint32_t)at[0] - (uint32_t)at[-1]) >> 8 : at[0];
}

#endif /* EW_SHARE_H */
