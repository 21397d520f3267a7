#include "dsp.h"
#include "share_mean.h"

#define EW_SHARE_MOST 255 /* pixels whose sums fit 16 bits */

#if EW_DSP
/* Four channels of at most EW_SHARE_MOST pixels, as pairs of 16-bit sums of signed bytes. */
EW_INLINE void ew_share_four(const uint8_t *x, int32_t pixel, int32_t count, uint32_t flip, int32_t *sums)
{
    uint32_t even = 0, odd = 0;
    const int32_t more = flip ? 128 * count : 0;
    for (; count > 0; count--, x += pixel) {
        const uint32_t word = ew_dsp_load(x) ^ flip;
        even = ew_dsp_even(even, word);
        odd = ew_dsp_odd(odd, word);
    }
    sums[0] += (int16_t)even + more;
    sums[1] += (int16_t)odd + more;
    sums[2] += ((int32_t)even >> 16) + more;
    sums[3] += ((int32_t)odd >> 16) + more;
}
#else
EW_INLINE void ew_share_four(const uint8_t *x, int32_t pixel, int32_t count, uint32_t flip, int32_t *sums)
{
    int32_t a = sums[0], b = sums[1], c = sums[2], d = sums[3];
    for (; count > 0; count--, x += pixel) {
        a += flip ? x[0] : (int8_t)x[0];
        b += flip ? x[1] : (int8_t)x[1];
        c += flip ? x[2] : (int8_t)x[2];
        d += flip ? x[3] : (int8_t)x[3];
    }
    sums[0] = a, sums[1] = b, sums[2] = c, sums[3] = d;
}
#endif

EW_INLINE void ew_share_pixels(const uint8_t *x, int32_t pixel, int32_t count, int32_t channels, uint32_t flip,
                               int32_t *sums)
{
    int32_t channel = 0;
    for (; channel + 4 <= channels; channel += 4)
        for (int32_t at = 0; at < count; at += EW_SHARE_MOST)
            ew_share_four(x + at * pixel + channel, pixel, ew_min(count - at, EW_SHARE_MOST), flip, sums + channel);
    for (; channel < channels; channel++)
        for (int32_t at = 0; at < count; at++)
            sums[channel] += flip ? x[at * pixel + channel] : (int8_t)x[at * pixel + channel];
}

void ew_share_signed_pixels(const int8_t *x, int32_t pixel, int32_t count, int32_t channels, int32_t *sums)
{
    ew_share_pixels((const uint8_t *)x, pixel, count, channels, 0, sums);
}

void ew_share_unsigned_pixels(const uint8_t *x, int32_t pixel, int32_t count, int32_t channels, int32_t *sums)
{
    ew_share_pixels(x, pixel, count, channels, 0x80808080u, sums);
}
