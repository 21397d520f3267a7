#include "tflite_l2.h"

/* 1 / sqrt(x) as a multiplier; gives its shift. Newton's iteration in Q3, five times; 0 is treated as 1. */
static int32_t ew_inverse_root(int32_t x, int32_t *power)
{
    int32_t shift = 11, pairs, half, root = 1 << 28;
    *power = 0;
    if (x <= 1)
        return INT32_MAX;
    for (; x >= 1 << 29; x /= 4)
        shift++;
    pairs = (ew_leading_zeros(x) - 1) / 2 - 1;
    shift -= pairs;
    half = ew_divide_by_power((int32_t)((uint32_t)x << (2 * pairs)) >> 1, 1);
    for (int32_t i = 0; i < 5; i++) {
        const int32_t cube = ew_shift_left(ew_high_multiply(ew_high_multiply(root, root), root), 6);
        root = ew_shift_left(ew_high_multiply(root, (1 << 28) + (1 << 27)) - ew_high_multiply(half, cube), 3);
    }
    root = ew_high_multiply(root, 1518500250); /* 2^-1/2 */
    if (shift < 0)
        return (int32_t)((uint32_t)root << -shift);
    *power = -shift;
    return root;
}

void ew_l2_normalize(const ew_l2_line *p, const uint8_t *x, uint8_t *y, int32_t first, int32_t last)
{
    int32_t total = 0, root, shift;
    for (int32_t i = 0; i < p->size; i++) {
        const int32_t v = (x[i * p->x_step] ^ p->flip) - p->zero;
        total += v * v;
    }
    root = ew_inverse_root(total, &shift);
    for (int32_t i = first; i < last; i++) {
        const int32_t v = (x[i * p->x_step] ^ p->flip) - p->zero;
        /* Unsigned bytes are scaled before the product, signed ones after it, which rounds differently. */
        const int32_t steps = p->flip ? ew_multiply(v, root, shift + 7) : ew_multiply(v * 128, root, shift);
        y[i * p->y_step] = (uint8_t)(ew_between(0, steps + 128, 255) ^ p->flip);
    }
}
