/* float16 as storage: its bits widened to float, and a float rounded to them. */
#ifndef EW_HALF_H
#define EW_HALF_H

#include "base.h"

static inline float ew_from_half(uint16_t bits)
{
    const uint32_t sign = (uint32_t)(bits & 0x8000u) << 16;
    const uint32_t rest = bits & 0x7fffu;
    uint32_t wide;
    float value;
    if (rest < 0x0400u) { /* zero or subnormal: rest * 2^-24 is exact */
        value = (float)rest * 5.9604644775390625e-8f;
        memcpy(&wide, &value, sizeof wide);
    } else {
        wide = (rest << 13) + (rest >= 0x7c00u ? 0x70000000u : 0x38000000u); /* infinity and NaN stay on top */
    }
    wide |= sign;
    memcpy(&value, &wide, sizeof value);
    return value;
}

/* Rounded half to even; too large becomes infinity. */
static inline uint16_t ew_to_half(float value)
{
    uint32_t wide, sign, rest, bits;
    memcpy(&wide, &value, sizeof wide);
    sign = (wide >> 16) & 0x8000u;
    rest = wide & 0x7fffffffu;
    if (rest > 0x7f800000u) {
        bits = 0x7e00u; /* NaN */
    } else if (rest >= 0x47800000u) {
        bits = 0x7c00u; /* 65536 and more */
    } else if (rest < 0x38800000u) { /* subnormal: adding 0.5 leaves multiples of 2^-24 in the lower bits, rounded */
        float size;
        memcpy(&size, &rest, sizeof size);
        size += 0.5f;
        memcpy(&bits, &size, sizeof bits);
        bits -= 0x3f000000u;
    } else {
        bits = (rest - 0x38000000u + 0x0fffu + ((rest >> 13) & 1u)) >> 13;
    }
    return (uint16_t)(sign | bits);
}

#endif /* EW_HALF_H */
