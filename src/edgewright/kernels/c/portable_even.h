/* Part of libraries in which some layer stores float products of its sums, rounded half to even, as onnxruntime does. */
#ifndef EW_PORTABLE_EVEN_H
#define EW_PORTABLE_EVEN_H

#include "portable.h"

#define EW_HAS_EVEN 1

#undef EW_IS_EVEN
#define EW_IS_EVEN(p) ((p).shift == 0xfe)
#undef EW_EVEN_STEPS
#define EW_EVEN_STEPS(p, channel, sum) ew_fixed_even(&(p), channel, sum)

/* The float product itself, rounded; `bits` are those of its scale. */
int32_t ew_even_steps(int32_t sum, int32_t bits);

/* A sum in steps of the output. Where the product in integers is farther from a tie than it can be from the float
 * product, both are rounded alike; else the float product decides. The layer's offset is followed by the margin,
 * the shift and the zero point; scales stand where others have what negative sums lose. */
EW_INLINE int32_t ew_fixed_even(const ew_products *p, int32_t channel, int32_t sum)
{
    const int32_t *const more = p->offset;
    const int32_t steps = ew_high_add((int32_t)((uint32_t)sum << p->left), p->multiplier[channel], more[0]);
    const uint32_t from_tie = (uint32_t)(steps + more[1]) & ((1u << more[2]) - 1u);
    if (from_tie <= 2 * (uint32_t)more[1])
        return ew_even_steps(sum, p->drop[channel]) + more[3];
    return steps >> more[2];
}

#endif /* EW_PORTABLE_EVEN_H */
