/* Vectors of bytes as they lie, times weights of four channels at a time. */
#ifndef EW_DSP_FOURS_H
#define EW_DSP_FOURS_H

#include "dsp.h"

/* A multiple of four channels. `back`: after its first four bytes x is read again from so many bytes before their
 * end, so that the number of features need not be a multiple of four. */
typedef void ew_dsp_fours(const ew_dsp_work *work, const uint8_t *x, uint8_t *y, int32_t back);

#define EW_DSP_FOURS_IN_C(name, is_unsigned, kind) \
    void name(const ew_dsp_work *work, const uint8_t *x, uint8_t *y, int32_t back) \
    { \
        const int16_t *weights = work->weights; \
        const uint32_t flip = (is_unsigned) ? 0x80808080u : 0u, plus = (is_unsigned) ? 0x00800080u : 0u; \
        for (int32_t c = 0; c < work->count; c += 4, weights += 2 * EW_DSP_SKIP(work)) { \
            int32_t sums[4] = {0, 0, 0, 0}; \
            for (int32_t i = 0; i < 2 * work->taps; i += 4, weights += 4) { \
                const uint32_t bytes = ew_dsp_load(x + (i >> 3) * 4 - (i >= 8 ? back : 0)) ^ flip; \
                const uint32_t pair = i & 4 ? ew_dsp_odd(plus, bytes) : ew_dsp_even(plus, bytes); \
                for (int32_t j = 0; j < 2; j++) { \
                    const uint32_t w = ew_dsp_load(weights + 2 * j); \
                    sums[2 * j] = ew_dsp_mac(ew_dsp_even(0, w), pair, sums[2 * j]); \
                    sums[2 * j + 1] = ew_dsp_mac(w, pair, sums[2 * j + 1]); \
                } \
            } \
            ew_dsp_finish(work, c, sums[0], sums[1], kind, y + c); \
            ew_dsp_finish(work, c + 2, sums[2], sums[3], kind, y + c + 2); \
        } \
    }

#if EW_DSP
/* r4-r7: sums of channel a, of both, of c, of both. r0 x, r1 weights, r2 their end. Four taps of four channels take
 * 16 instructions. Frame: 0 channels, 4 y, 8 left, 12 left - 8, 16 shift, 20 x, 24 bytes of weights of four channels,
 * 28 flip, 32 back, 36 low, 40 high, 44 end of all weights, 48 bytes between rows. */
#define EW_DSP_CHANNELS_2(mac, w, x, a, b, plus_a, plus_b) \
    "sxtb16 lr, " w "\n" mac " " a ", lr, " x plus_a "\n" mac " " b ", " w ", " x plus_b "\n"
#define EW_DSP_FOUR(extend, mac, a, b, c, d) \
    "ldr r3, [r0], #4\n" \
    "ldm r1!, {r8-r11}\n" extend " r12, r3, ror #8\n" extend " r3, r3\n" \
    EW_DSP_CHANNELS_2(mac, "r8", "r3", "r4", "r5", a, b) EW_DSP_CHANNELS_2(mac, "r9", "r3", "r6", "r7", c, d) \
    EW_DSP_CHANNELS_2("smlad", "r10", "r12", "r4", "r5", ", r4", ", r5") \
    EW_DSP_CHANNELS_2("smlad", "r11", "r12", "r6", "r7", ", r6", ", r7")
#define EW_DSP_FOURS(name, extend, is_unsigned, kind, finish) \
    __attribute__((naked, noinline)) void name( \
        __attribute__((unused)) const ew_dsp_work *work, __attribute__((unused)) const uint8_t *x, \
        __attribute__((unused)) uint8_t *y, __attribute__((unused)) int32_t back) \
    { \
        __asm__ volatile("push {r4-r11, lr}\n" \
                         "sub sp, #52\n" \
                         "ldm r0, {r4-r12}\n" \
                         "strd r5, r2, [sp]\n" \
                         "sub r2, r8, #8\n" \
                         "strd r8, r2, [sp, #8]\n" \
                         "str r9, [sp, #16]\n" \
                         EW_DSP_END("2") \
                         "strd r1, r7, [sp, #20]\n" \
                         "strd r12, r3, [sp, #28]\n" \
                         "strd r10, r11, [sp, #36]\n" \
                         "str r6, [sp, #44]\n" \
                         "mov r1, r4\n" \
                         "1:\n" \
                         "ldrd r0, r2, [sp, #20]\n" \
                         "adds r2, r1\n" EW_DSP_FOUR(extend, "smuad", "", "", "", "") \
                         "ldr r3, [sp, #32]\n" \
                         "cmp r1, r2\n" \
                         "beq 4f\n" \
                         "subs r0, r0, r3\n" \
                         "subs r3, r2, r1\n" \
                         "tst r3, #16\n" \
                         "bne 3f\n" \
                         "2:\n" EW_DSP_FOUR(extend, "smlad", ", r4", ", r5", ", r6", ", r7") \
                         "3:\n" EW_DSP_FOUR(extend, "smlad", ", r4", ", r5", ", r6", ", r7") \
                         "cmp r1, r2\n" \
                         "bne 2b\n" \
                         "4:\n" \
                         "ldm sp, {r0, r2, r3, r8, r10}\n" \
                         "subs r5, r5, r4\n" \
                         "subs r7, r7, r6\n" \
                         "lsls r4, r3\n" \
                         "lsls r6, r3\n" \
                         "lsl r5, r5, r8\n" \
                         "lsl r7, r7, r8\n" finish \
                         "strd r0, r2, [sp]\n" \
                         EW_DSP_NEXT_ROW \
                         "cmp r1, r12\n" \
                         "bne 1b\n" \
                         "add sp, #52\n" \
                         "pop {r4-r11, pc}\n"); \
    }
#define EW_DSP_STORED_FOURS EW_DSP_RESULTS EW_DSP_CLAMPED("36", "28") "str r4, [r2], #4\n"
#define EW_DSP_GENERAL_FOURS \
    "ldm r0!, {r8, r9, r11, r12}\n" EW_DSP_SIGNED("r4") \
    "ldm r0!, {r8, r9, r11, r12}\n" EW_DSP_SIGNED("r5") \
    "ldm r0!, {r8, r9, r11, r12}\n" EW_DSP_SIGNED("r6") \
    "ldm r0!, {r8, r9, r11, r12}\n" EW_DSP_SIGNED("r7") EW_DSP_STORED_FOURS
#define EW_DSP_FLOAT_FOURS \
    EW_DSP_FLOAT_SUM("r4") EW_DSP_FLOAT_SUM("r5") EW_DSP_FLOAT_SUM("r6") EW_DSP_FLOAT_SUM("r7") EW_DSP_STORED_FOURS
#define EW_DSP_WIDE_FOURS \
    EW_DSP_WIDE_SUM("r4") EW_DSP_WIDE_SUM("r5") EW_DSP_WIDE_SUM("r6") EW_DSP_WIDE_SUM("r7") \
    "mov r10, #0\n" EW_DSP_STORED_FOURS
#else
#define EW_DSP_GENERAL_FOURS
#define EW_DSP_WIDE_FOURS
#define EW_DSP_FOURS(name, extend, is_unsigned, kind, finish) EW_DSP_FOURS_IN_C(name, is_unsigned, kind)
#endif

#endif /* EW_DSP_FOURS_H */
