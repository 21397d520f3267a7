/* Where moved elements come from: indices beyond a border, and those that the network computes. */
#ifndef EW_MOVES_H
#define EW_MOVES_H

#include "base.h"

/* An axis of `size` elements continued by mirroring it at its border elements. */
static inline int32_t ew_reflected(int32_t i, int32_t size)
{
    const int32_t period = size > 1 ? 2 * (size - 1) : 1;
    i = (i % period + period) % period;
    return size > 1 ? ew_min(i, period - i) : 0;
}

/* The same with the border elements repeated. */
static inline int32_t ew_mirrored(int32_t i, int32_t size)
{
    i = (i % (2 * size) + 2 * size) % (2 * size);
    return ew_min(i, 2 * size - 1 - i);
}

/* An index given at run time; negative ones count from the end. One outside is kept inside: no read goes astray. */
static inline int32_t ew_index(int64_t i, int32_t size)
{
    i = i < 0 ? i + size : i;
    return i < 0 ? 0 : i >= size ? size - 1 : (int32_t)i;
}

#endif /* EW_MOVES_H */
