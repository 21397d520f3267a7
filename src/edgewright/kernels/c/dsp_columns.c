#include "dsp_columns.h"

uint32_t ew_dsp_rest(const uint8_t *source, int32_t rest, int32_t length)
{
    if (length >= 4) /* those before them are there */
        return ew_dsp_load(source + rest - 4) >> (32 - 8 * rest);
    uint32_t word = source[0];
    for (int32_t i = 1; i < rest; i++)
        word |= (uint32_t)source[i] << (8 * i);
    return word;
}

#if EW_DSP
__attribute__((naked, noinline)) uint32_t *ew_dsp_two_words(
    __attribute__((unused)) const uint8_t *one, __attribute__((unused)) const uint8_t *two,
    __attribute__((unused)) uint32_t *to, __attribute__((unused)) int32_t words,
    __attribute__((unused)) uint32_t minus, __attribute__((unused)) uint32_t flip)
{
    __asm__ volatile("push {r4-r7, lr}\n"
                     "ldrd r4, r5, [sp, #20]\n"
                     "1:\n"
                     "ldr r6, [r0], #4\n"
                     "ldr r7, [r1], #4\n"
                     "eors r6, r5\n"
                     "eors r7, r5\n"
                     "sxtab16 r12, r4, r6, ror #8\n"
                     "sxtab16 lr, r4, r7, ror #8\n"
                     "sxtab16 r6, r4, r6\n"
                     "sxtab16 r7, r4, r7\n"
                     "subs r3, #1\n"
                     "stm r2!, {r6, r7, r12, lr}\n"
                     "bne 1b\n"
                     "mov r0, r2\n"
                     "pop {r4-r7, pc}\n");
}

#ifdef EW_HAS_SPLIT
__attribute__((naked, noinline)) void ew_dsp_two_split(
    __attribute__((unused)) const uint8_t *one, __attribute__((unused)) const uint8_t *two,
    __attribute__((unused)) uint32_t *to, __attribute__((unused)) int32_t words,
    __attribute__((unused)) uint32_t minus, __attribute__((unused)) int32_t jump,
    __attribute__((unused)) int32_t taps, __attribute__((unused)) int32_t gap)
{
    __asm__ volatile("push {r4, r6-r11, lr}\n"
                     "ldrd r4, r8, [sp, #32]\n"
                     "ldrd r10, r11, [sp, #40]\n"
                     "1:\n"
                     "mov r9, r3\n"
                     "2:\n"
                     "ldr r6, [r0], #4\n"
                     "ldr r7, [r1], #4\n"
                     "sxtab16 r12, r4, r6, ror #8\n"
                     "sxtab16 lr, r4, r7, ror #8\n"
                     "sxtab16 r6, r4, r6\n"
                     "sxtab16 r7, r4, r7\n"
                     "stm r2, {r6, r7, r12, lr}\n"
                     "subs r9, #1\n"
                     "add r2, r8\n"
                     "bne 2b\n"
                     "mls r2, r3, r8, r2\n"
                     "add r0, r11\n"
                     "add r1, r11\n"
                     "adds r2, #16\n"
                     "subs r10, #1\n"
                     "bne 1b\n"
                     "pop {r4, r6-r11, pc}\n");
}
#endif
#else
uint32_t *ew_dsp_two_words(const uint8_t *one, const uint8_t *two, uint32_t *to, int32_t words, uint32_t minus,
                           uint32_t flip)
{
    for (; words > 0; words--, one += 4, two += 4, to += 4) {
        ew_dsp_put(to, ew_dsp_load(one) ^ flip, minus);
        ew_dsp_put(to + 1, ew_dsp_load(two) ^ flip, minus);
    }
    return to;
}

#ifdef EW_HAS_SPLIT
void ew_dsp_two_split(const uint8_t *one, const uint8_t *two, uint32_t *to, int32_t words, uint32_t minus,
                      int32_t jump, int32_t taps, int32_t gap)
{
    for (; taps > 0; taps--, one += gap, two += gap, to += 4)
        for (int32_t i = 0; i < words; i++, one += 4, two += 4)
            ew_dsp_two_words(one, two, to + i * (jump >> 2), 1, minus, 0);
}
#endif
#endif
