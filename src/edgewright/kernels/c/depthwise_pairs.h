/* Rows of depthwise convolutions two outputs at a time, with pairs of 16-bit products. */
#ifndef EW_DEPTHWISE_PAIRS_H
#define EW_DEPTHWISE_PAIRS_H

#include "depthwise.h"

/* ew_pair_bt(a, b, c): the bottom half of a times the top half of b, plus c. ew_pair_both: both products. */
#if defined(__ARM_FEATURE_DSP) && defined(__GNUC__)
#define EW_PAIR(name, instruction)                                                                                    \
    EW_INLINE int32_t name(uint32_t a, uint32_t b, int32_t c)                                                         \
    {                                                                                                                 \
        int32_t result;                                                                                               \
        __asm__(instruction " %0, %1, %2, %3" : "=r"(result) : "r"(a), "r"(b), "r"(c));                               \
        return result;                                                                                                \
    }
EW_PAIR(ew_pair_both, "smlad")
EW_PAIR(ew_pair_bt, "smlabt")
EW_PAIR(ew_pair_tb, "smlatb")
#undef EW_PAIR
#else
EW_INLINE int32_t ew_bottom(uint32_t a) { return (int16_t)(uint16_t)a; }
EW_INLINE int32_t ew_top(uint32_t a) { return (int16_t)(uint16_t)(a >> 16); }
EW_INLINE int32_t ew_pair_bt(uint32_t a, uint32_t b, int32_t c) { return ew_bottom(a) * ew_top(b) + c; }
EW_INLINE int32_t ew_pair_tb(uint32_t a, uint32_t b, int32_t c) { return ew_top(a) * ew_bottom(b) + c; }
EW_INLINE int32_t ew_pair_both(uint32_t a, uint32_t b, int32_t c)
{
    return ew_bottom(a) * ew_bottom(b) + ew_top(a) * ew_top(b) + c;
}
#endif

EW_INLINE uint32_t ew_pair_at(const int16_t *x)
{
    uint32_t pair;
    memcpy(&pair, x, sizeof pair);
    return pair;
}

#endif /* EW_DEPTHWISE_PAIRS_H */
