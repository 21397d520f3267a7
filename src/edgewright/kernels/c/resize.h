/* Images scaled: the two neighbours of a place along an axis, with their weights. */
#ifndef EW_RESIZE_H
#define EW_RESIZE_H

#include "base.h"

typedef struct {
    int32_t low, high;
    float before, after; /* weights of the two */
} ew_neighbours;

/* Beyond the border it is the border itself: both neighbours are the same element there, each half. */
static inline ew_neighbours ew_around(float place, int32_t end)
{
    ew_neighbours found;
    float low;
    place = place > 0.0f ? place : 0.0f;
    place = place < (float)end ? place : (float)end;
    found.low = (int32_t)place;
    low = (float)found.low;
    found.high = place > low ? found.low + 1 : found.low;
    found.before = found.low == end ? 0.5f : low + 1.0f - place;
    found.after = found.low == end ? 0.5f : place - low;
    return found;
}

#endif /* EW_RESIZE_H */
