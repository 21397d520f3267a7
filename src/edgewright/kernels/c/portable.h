/* Products of int8 in plain C, blocked for cores without vectors (RV32, Cortex-M0+).
 *
 * Weights lie as the inner loops read them: four output channels (sixteen where there is one pixel only) side by
 * side for each k. */
#ifndef EW_PORTABLE_H
#define EW_PORTABLE_H

#include "products.h"

#ifndef EW_FEW_REGISTERS
#if defined(__thumb__) && !defined(__thumb2__)
#define EW_FEW_REGISTERS 1 /* eight that arithmetic can use */
#else
#define EW_FEW_REGISTERS 0
#endif
#endif

/* Whether each channel has an offset of 64 bits and a shift of its own, see portable_wide.h; or sums are stored as a
 * float product says, see portable_even.h. */
#define EW_IS_WIDE(p) 0
#define EW_IS_EVEN(p) 0
#define EW_EVEN_STEPS(p, channel, sum) 0
#define EW_IS_EXACT(p) (EW_IS_WIDE(p) || EW_IS_EVEN(p))

/* `exact` is what such a layer has for an offset: its lower and upper half, and the shift. */
EW_INLINE int32_t ew_fixed_wide(int32_t sum, int32_t left, int32_t multiplier, const int32_t *exact, int32_t drop)
{
    const int64_t offset = (int64_t)(((uint64_t)(uint32_t)exact[1] << 32) | (uint32_t)exact[0]);
    const int64_t product = (int64_t)(int32_t)((uint32_t)sum << left) * multiplier + offset;
    return ((int32_t)(product >> 32) - (sum < 0 ? drop : 0)) >> exact[2];
}
#define EW_EXACT_STEPS(p, channel, sum)                                                                             \
    (EW_IS_EVEN(p) ? EW_EVEN_STEPS(p, channel, sum)                                                                 \
                   : ew_fixed_wide(sum, (p).left, (p).multiplier[channel], (p).offset + 3 * (channel),              \
                                   (p).drop ? (p).drop[channel] : 0))

/* Stores a channel of one pixel. A branch for each bound is cheaper than conditional moves that do not exist. */
#define EW_PORTABLE_STORE(p, sum, multiplier, offset, drop, to)                                                     \
    EW_PORTABLE_PUT(p, ew_fixed_signed(sum, (p).left, multiplier, offset, drop, (p).shift), to)
#define EW_PORTABLE_PUT(p, value, to)                                                                               \
    do {                                                                                                            \
        int32_t byte_ = value;                                                                                      \
        if (byte_ < (p).low)                                                                                        \
            byte_ = (p).low;                                                                                        \
        if (byte_ > (p).high)                                                                                       \
            byte_ = (p).high;                                                                                       \
        *(to) = (uint8_t)byte_;                                                                                     \
    } while (0)

/* Products of one number with the weights of four channels. */
#define EW_PORTABLE_TAP(k)                                                                                          \
    v = x[(k) * step];                                                                                              \
    a0 += v * w[(k) * next];                                                                                        \
    a1 += v * w[(k) * next + 1];                                                                                    \
    a2 += v * w[(k) * next + 2];                                                                                    \
    a3 += v * w[(k) * next + 3]

/* Sums of four channels of one pixel, whose bytes lie `step` apart; w: weights [k][4], `next` bytes from k to k + 1. */
EW_INLINE void ew_portable_1x4(const int8_t *x, int32_t step, const int8_t *w, int32_t next, int32_t depth,
                           const int32_t *bias, int32_t *sums)
{
    int32_t a0 = bias[0], a1 = bias[1], a2 = bias[2], a3 = bias[3], v;
    const int8_t *const end = x + step * depth, *const fours = x + step * (depth & ~3);
    for (; x != fours; x += 4 * step, w += 4 * next) {
        EW_PORTABLE_TAP(0);
        EW_PORTABLE_TAP(1);
        EW_PORTABLE_TAP(2);
        EW_PORTABLE_TAP(3);
    }
    for (; x != end; x += step, w += next) {
        EW_PORTABLE_TAP(0);
    }
    sums[0] = a0, sums[1] = a1, sums[2] = a2, sums[3] = a3;
}

/* Stores `count` channels of one pixel from `channel` on. */
void ew_portable_store(const ew_products *products, int32_t channel, int32_t count, const int32_t *sums, uint8_t *y);

/* The channels from `channel` on of one pixel, four at a time and then one by one; w: their weights. */
void ew_portable_pixel(const ew_products *p, int32_t channel, const int8_t *w, const int8_t *column, uint8_t *y);

/* The sum of one channel of one pixel: of its column every `step`-th byte counts. */
int32_t ew_portable_dot(const int8_t *x, int32_t step, const int8_t *w, int32_t depth, int32_t bias);

#endif /* EW_PORTABLE_H */
