#include "add.h"

#define EW_ADD_BLOCK 32 /* sums on the stack: three passes need fewer registers at a time than one */

#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#define EW_ADD_HOT __attribute__((noinline, optimize("O2")))
#else
#define EW_ADD_HOT
#endif

/* The upper half of a * b, rounded half up, plus c. */
EW_INLINE int32_t ew_high_round_add(int32_t a, int32_t b, int32_t c)
{
#if defined(__ARM_FEATURE_DSP) && defined(__GNUC__)
    int32_t result;
    __asm__("smmlar %0, %1, %2, %3" : "=r"(result) : "r"(a), "r"(b), "r"(c));
    return result;
#else
    const int64_t product = (int64_t)a * b;
    return (int32_t)(product >> 32) + (int32_t)((uint32_t)product >> 31) + c;
#endif
}

EW_ADD_HOT static void ew_add_sums(const ew_add *p, const int8_t *a, const int8_t *b, int32_t *sums, int32_t n)
{
    const int32_t multiplier = p->b.multiplier, shift = p->b.shift, half = p->b.half, sign = p->b.sign;
    const int32_t zero_a = p->zero_a, zero_b = p->zero_b;
    for (const int32_t *end = sums + n; sums != end; sums++) {
        /* Twice the number: the product's upper half is then that of the number with 31 bits cut off. What rounds to 0
         * from below gives 0 with either sign, so that the number's own sign will do for the product's. */
        const int32_t twice = *b++ * (1 << 21) - zero_b;
        const int32_t scaled = ew_high_round_add(twice, multiplier, half + ((twice >> 31) & sign)) >> shift;
        *sums = scaled + *a++ * (1 << 19) - zero_a;
    }
}

EW_ADD_HOT static void ew_add_store(const ew_add *p, const int32_t *sums, int8_t *y, int32_t n)
{
    const int32_t multiplier = p->out.multiplier, shift = p->out.shift, half = p->out.half;
    for (const int32_t *end = sums + n; sums != end; sums++) {
        const int32_t v = ew_high_round_add(*sums * 2, multiplier, half + (*sums >> 31)) >> shift;
#if defined(__ARM_FEATURE_DSP) && defined(__GNUC__)
        int32_t kept;
        __asm__("ssat %0, #8, %1" : "=r"(kept) : "r"(v));
        *y++ = (int8_t)kept;
#else
        *y++ = (int8_t)((uint32_t)v + 128u > 255u ? (v < 0 ? -128 : 127) : v);
#endif
    }
}

void ew_add_int8(const ew_add *p, const int8_t *a, const int8_t *b, int8_t *y, int32_t n, int32_t backward)
{
    int32_t sums[EW_ADD_BLOCK];
    for (int32_t done = 0; done < n; done += EW_ADD_BLOCK) {
        const int32_t count = ew_min(n - done, EW_ADD_BLOCK), at = backward ? n - done - count : done;
        ew_add_sums(p, a + at, b + at, sums, count);
        ew_add_store(p, sums, y + at, count);
        for (int32_t i = 0; (p->low > -128 || p->high < 127) && i < count; i++)
            y[at + i] = (int8_t)ew_between(p->low, y[at + i], p->high);
    }
}
