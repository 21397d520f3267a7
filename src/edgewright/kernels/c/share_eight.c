#include "share_eight.h"

#if EW_DSP
/* r4-r7: sums of channel a, of both, of c, of both. r8-r11: taps. r0 weights, r1 their end, r2 sums. Frame: 0 second
 * pixel, 4 columns, 8 weights. */
#define EW_SHARE_TWO_TAPS(x) \
    "ldrd r3, r12, [r0], #8\n" \
    "sxtb16 lr, r3\n" \
    "smlad r4, lr, " x ", r4\n" \
    "smlad r5, r3, " x ", r5\n" \
    "sxtb16 lr, r12\n" \
    "smlad r6, lr, " x ", r6\n" \
    "smlad r7, r12, " x ", r7\n"
__attribute__((naked, noinline)) void ew_share_eight(
    __attribute__((unused)) const ew_dsp_work *work, __attribute__((unused)) const uint32_t *columns,
    __attribute__((unused)) uint8_t *one, __attribute__((unused)) uint8_t *two)
{
    __asm__ volatile("push {r4-r11, lr}\n"
                     "sub sp, #12\n"
                     "ldm r0, {r4-r7}\n" /* weights, channels, count, taps */
                     "cmp r2, r3\n"
                     "it eq\n"
                     "moveq r3, #0\n" /* a pixel that is its own partner is summed up once */
                     "strd r3, r1, [sp]\n"
                     "str r4, [sp, #8]\n"
                     "mov r0, r4\n"
                     "ldr r8, [r1]\n"
                     "ldr r9, [r1, #8]\n"
                     "ldr r10, [r1, #16]\n"
                     "ldr r11, [r1, #24]\n"
                     "add r1, r4, r6, lsl #3\n"
                     "1:\n"
                     "ldm r2, {r4-r7}\n" EW_SHARE_TWO_TAPS("r8") EW_SHARE_TWO_TAPS("r9") EW_SHARE_TWO_TAPS("r10")
                         EW_SHARE_TWO_TAPS("r11")
                     "stm r2!, {r4-r7}\n"
                     "cmp r0, r1\n"
                     "bne 1b\n"
                     "ldrd r2, r3, [sp]\n"
                     "cbz r2, 2f\n"
                     "movs r0, #0\n"
                     "str r0, [sp]\n"
                     "ldr r0, [sp, #8]\n"
                     "ldr r8, [r3, #4]\n"
                     "ldr r9, [r3, #12]\n"
                     "ldr r10, [r3, #20]\n"
                     "ldr r11, [r3, #28]\n"
                     "b 1b\n"
                     "2:\n"
                     "add sp, #12\n"
                     "pop {r4-r11, pc}\n");
}
#else
void ew_share_eight(const ew_dsp_work *work, const uint32_t *columns, uint8_t *one, uint8_t *two)
{
    for (int32_t pixel = 0; pixel < (one == two ? 1 : 2); pixel++) {
        const int16_t *weights = work->weights;
        int32_t *sums = (int32_t *)(void *)(pixel ? two : one);
        for (int32_t c = 0; c < work->count; c += 4, sums += 4)
            for (int32_t i = 0; i < 8; i += 2)
                for (int32_t j = 0; j < 4; j += 2, weights += 2) {
                    const uint32_t w = ew_dsp_load(weights), x = columns[i + pixel];
                    sums[j] = ew_dsp_mac(ew_dsp_even(0, w), x, sums[j]);
                    sums[j + 1] = ew_dsp_mac(w, x, sums[j + 1]);
                }
    }
}
#endif
