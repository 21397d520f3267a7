#include "share_dense.h"

#if EW_DSP
/* The registers of EW_DSP_FOURS. Frame: 0 x, 4 bytes of weights of four channels, 8 back, 12 end of all weights, 16
 * sums. */
#define EW_SHARE_FOUR(extend) EW_DSP_FOUR(extend, "smlad", ", r4", ", r5", ", r6", ", r7")
#define EW_SHARE_FOURS(name, extend, is_unsigned) \
    __attribute__((naked, noinline)) void name( \
        __attribute__((unused)) const ew_dsp_work *work, __attribute__((unused)) const uint8_t *x, \
        __attribute__((unused)) uint8_t *y, __attribute__((unused)) int32_t back) \
    { \
        __asm__ volatile("push {r4-r11, lr}\n" \
                         "sub sp, #20\n" \
                         "ldm r0, {r4-r7}\n" \
                         "lsls r7, r7, #2\n" \
                         "lsrs r6, r6, #2\n" \
                         "mla r6, r6, r7, r4\n" \
                         "strd r1, r7, [sp]\n" \
                         "strd r3, r6, [sp, #8]\n" \
                         "str r2, [sp, #16]\n" \
                         "mov r1, r4\n" \
                         "1:\n" \
                         "ldm sp, {r0, r2}\n" \
                         "ldr r12, [sp, #16]\n" \
                         "adds r2, r1\n" \
                         "ldm r12, {r4-r7}\n" EW_SHARE_FOUR(extend) \
                         "cmp r1, r2\n" \
                         "beq 4f\n" \
                         "ldr r3, [sp, #8]\n" \
                         "subs r0, r0, r3\n" \
                         "subs r3, r2, r1\n" \
                         "tst r3, #16\n" \
                         "bne 3f\n" \
                         "2:\n" EW_SHARE_FOUR(extend) "3:\n" EW_SHARE_FOUR(extend) \
                         "cmp r1, r2\n" \
                         "bne 2b\n" \
                         "4:\n" \
                         "ldrd r3, r12, [sp, #12]\n" \
                         "stm r12!, {r4-r7}\n" \
                         "str r12, [sp, #16]\n" \
                         "cmp r1, r3\n" \
                         "bne 1b\n" \
                         "add sp, #20\n" \
                         "pop {r4-r11, pc}\n"); \
    }
#else
#define EW_SHARE_FOURS(name, extend, is_unsigned) \
    void name(const ew_dsp_work *work, const uint8_t *x, uint8_t *y, int32_t back) \
    { \
        const int16_t *weights = work->weights; \
        const uint32_t flip = (is_unsigned) ? 0x80808080u : 0u, plus = (is_unsigned) ? 0x00800080u : 0u; \
        int32_t *sums = (int32_t *)(void *)y; \
        for (int32_t c = 0; c < work->count; c += 4, sums += 4) { \
            for (int32_t i = 0; i < 2 * work->taps; i += 4, weights += 4) { \
                const uint32_t bytes = ew_dsp_load(x + (i >> 3) * 4 - (i >= 8 ? back : 0)) ^ flip; \
                const uint32_t pair = i & 4 ? ew_dsp_odd(plus, bytes) : ew_dsp_even(plus, bytes); \
                for (int32_t j = 0; j < 2; j++) { \
                    const uint32_t w = ew_dsp_load(weights + 2 * j); \
                    sums[2 * j] = ew_dsp_mac(ew_dsp_even(0, w), pair, sums[2 * j]); \
                    sums[2 * j + 1] = ew_dsp_mac(w, pair, sums[2 * j + 1]); \
                } \
            } \
        } \
    }
#endif

EW_SHARE_FOURS(ew_share_signed, "sxtb16", 0)
EW_SHARE_FOURS(ew_share_unsigned, "uxtb16", 1)

void ew_share_dense(const ew_dsp_sums *layer, ew_dsp_fours *fours, const void *x, int32_t *sums, int32_t features)
{
    const uint8_t *from = (const uint8_t *)x;
    uint8_t few[4] = {0, 0, 0, 0};
    int32_t last[4] = {0, 0, 0, 0};
    const int32_t back = -features & 3, rest = layer->count & 3;
    ew_dsp_work work;
    ew_dsp_open(layer, &work);
    work.count -= rest;
    if (features < 4) {
        for (int32_t i = 0; i < features; i++)
            few[i] = from[i];
        from = few;
    }
    if (work.count)
        fours(&work, from, (uint8_t *)sums, back);
    if (!rest)
        return;
    work.weights += (work.count >> 1) * work.taps;
    sums += work.count;
    work.count = 4;
    for (int32_t i = 0; i < rest; i++)
        last[i] = sums[i];
    fours(&work, from, (uint8_t *)last, back);
    for (int32_t i = 0; i < rest; i++)
        sums[i] = last[i];
}
