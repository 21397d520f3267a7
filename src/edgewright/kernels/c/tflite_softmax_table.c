#include "tflite_softmax_table.h"

enum { EW_TABLE_SUM_BITS = 12 }; /* integer bits of the sum of a line */

void ew_softmax_table(const ew_softmax_table_line *p, const uint8_t *x, uint8_t *y, int32_t first, int32_t last)
{
    const int32_t *const exps = p->exps;
    const uint32_t count = p->count, flip = (uint32_t)p->flip;
    const int32_t x_step = p->x_step, y_step = p->y_step;
    const uint8_t *at = x;
    uint32_t largest = 0, total = 0, half;
    int32_t inverse, power, shift;
    for (int32_t i = p->size; i > 0; i--, at += x_step) {
        const uint32_t value = *at ^ flip;
        largest = value > largest ? value : largest;
    }
    at = x;
    for (int32_t i = p->size; i > 0; i--, at += x_step) {
        const uint32_t below = largest - (*at ^ flip);
        if (below < count)
            total += ((uint32_t)exps[below] + (1u << (EW_TABLE_SUM_BITS - 1))) >> EW_TABLE_SUM_BITS;
    }
    inverse = ew_reciprocal_of((int32_t)total, EW_TABLE_SUM_BITS, &power);
    shift = power + 31 - 8; /* at least 23, as a sum is at least 1 */
    half = shift > 31 ? 0 : 1u << (shift - 1);
    at = x + first * x_step;
    y += first * y_step;
    for (int32_t i = last - first; i > 0; i--, at += x_step, y += y_step) {
        const uint32_t below = largest - (*at ^ flip);
        uint32_t share = 0;
        if (below < count && shift <= 31) {
            /* Both factors are positive: the upper half of twice their product, rounded, then the power of two. */
            share = (uint32_t)(((uint64_t)(uint32_t)inverse * (uint32_t)exps[below] + (1u << 30)) >> 31);
            share = (share + half) >> shift;
            share = share > 255 ? 255 : share;
        }
        *y = (uint8_t)(share ^ flip);
    }
}
