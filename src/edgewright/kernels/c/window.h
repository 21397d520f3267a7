/* What pooling windows need beside sums. */
#ifndef EW_WINDOW_H
#define EW_WINDOW_H

#include "base.h"

/* Minus infinity, without the mathematics library. */
static inline float ew_least(void)
{
    const uint32_t bits = 0xff800000u;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* total / count, rounded half away from zero. */
static inline int32_t ew_mean(int32_t total, int32_t count)
{
    return (total < 0 ? total - count / 2 : total + count / 2) / count;
}

#endif /* EW_WINDOW_H */
