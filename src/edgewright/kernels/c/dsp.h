/* Sums of products with pairs of 16-bit products (SMLAD), for two output channels at once.
 *
 * Weights of channels a and b share a 16-bit number, 256 * b + a, which multiplies as it is: it gives 256 times the
 * sum of b plus the sum of a. The lower byte alone gives the sum of a. So two channels cost one SXTB16 for each pair
 * of taps, where bytes of one channel would cost two. */
#ifndef EW_DSP_H
#define EW_DSP_H

#include "base.h"
#include "requant.h"

#if defined(__ARM_FEATURE_DSP) && defined(__GNUC__) && defined(__thumb2__)
#define EW_DSP 1
#else
#define EW_DSP 0
#endif
#if EW_DSP && defined(__ARM_FP)
#define EW_DSP_HAS_FLOAT 1
#else
#define EW_DSP_HAS_FLOAT 0
#endif

/* What becomes of the sums of a channel (see ew_fixed). Kernels named plain take the first kind. Those named general
 * take the second: negative sums are rounded otherwise, or the range is not that of signed bytes; `bias` comes shifted
 * by the layer's `left`. Those named wide take the third: an offset of 64 bits and a shift of its own, where narrow
 * ones are not exact. Those named float take the fourth: a float `scale` of shifted sums, rounded half to even. */
typedef struct {
    int32_t multiplier, offset;
} ew_dsp_channel;

typedef struct {
    int32_t multiplier, offset, drop, bias;
} ew_dsp_general_channel;

typedef struct {
    int32_t multiplier;
    uint32_t offset;
    int32_t shift, offset_high, drop, bias;
} ew_dsp_wide_channel;

typedef struct {
    float scale;
    int32_t bias, zero;
} ew_dsp_float_channel;

#define EW_DSP_PLAIN 2 /* numbers of a channel */
#define EW_DSP_FLOAT 3
#define EW_DSP_GENERAL 4
#define EW_DSP_WIDE 6

typedef struct {
    const int16_t *weights;
    const int32_t *channels;
    int16_t count; /* of channels */
    int16_t taps;  /* of a channel: a multiple of 4, with zeros where there is nothing */
    uint8_t left, shift; /* of the sums (8 or more), and of the result */
    int8_t low, high;    /* the range of results as signed bytes */
    uint8_t flip;        /* 128 turns them into unsigned ones */
    uint8_t numbers;     /* of a channel */
#ifdef EW_HAS_VIEWS
    int16_t pitch; /* taps from a row of weights to the next */
#endif
} ew_dsp_sums;

/* The same unpacked, for `count` channels from some channel on. The assembler code knows the order of the fields. */
typedef struct {
    const int16_t *weights;
    const int32_t *channels;
    int32_t count, taps, left, shift;
    uint32_t low, high, flip; /* four times each */
#ifdef EW_HAS_VIEWS
    int32_t skip; /* taps between the end of a row of weights and the next */
#endif
} ew_dsp_work;

#ifdef EW_HAS_VIEWS
#define EW_DSP_SKIP(work) (work)->skip
#else
#define EW_DSP_SKIP(work) 0
#endif
#define EW_DSP_PITCH(work) ((work)->taps + EW_DSP_SKIP(work))

EW_INLINE void ew_dsp_open(const ew_dsp_sums *layer, ew_dsp_work *work)
{
    work->weights = layer->weights;
    work->channels = layer->channels;
    work->count = layer->count;
    work->taps = layer->taps;
    work->left = layer->left;
    work->shift = layer->shift;
    work->low = (uint8_t)layer->low * 0x01010101u;
    work->high = (uint8_t)layer->high * 0x01010101u;
    work->flip = layer->flip * 0x01010101u;
#ifdef EW_HAS_VIEWS
    work->skip = layer->pitch - layer->taps;
#endif
}

EW_INLINE uint32_t ew_dsp_load(const void *at)
{
    uint32_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* Four bytes as signed 16-bit numbers, plus those in `plus`: bytes 0 and 2, or 1 and 3. */
EW_INLINE uint32_t ew_dsp_even(uint32_t plus, uint32_t bytes)
{
#if EW_DSP
    uint32_t result;
    __asm__("sxtab16 %0, %1, %2" : "=r"(result) : "r"(plus), "r"(bytes));
    return result;
#else
    const uint32_t low = ((bytes & 255u) ^ 128u) - 128u, high = (((bytes >> 16) & 255u) ^ 128u) - 128u;
    return ((plus + low) & 0xFFFFu) | (((plus >> 16) + high) << 16);
#endif
}

EW_INLINE uint32_t ew_dsp_odd(uint32_t plus, uint32_t bytes)
{
#if EW_DSP
    uint32_t result;
    __asm__("sxtab16 %0, %1, %2, ror #8" : "=r"(result) : "r"(plus), "r"(bytes));
    return result;
#else
    return ew_dsp_even(plus, bytes >> 8);
#endif
}

/* sum + the products of the upper and of the lower halves. */
EW_INLINE int32_t ew_dsp_mac(uint32_t a, uint32_t b, int32_t sum)
{
    const int32_t low = (int16_t)(a & 0xFFFFu) * (int16_t)(b & 0xFFFFu);
    const int32_t high = (int16_t)(a >> 16) * (int16_t)(b >> 16);
    return (int32_t)((uint32_t)sum + (uint32_t)low + (uint32_t)high);
}

/* A shifted sum in steps of the output, rounded half to even. */
EW_INLINE int32_t ew_dsp_float_steps(uint32_t sum, const ew_dsp_float_channel *channel)
{
    const float whole = 12582912.0f; /* 1.5 * 2^23: floats from here on are whole */
    float steps = (float)(int32_t)(sum + (uint32_t)channel->bias) * channel->scale;
    steps = steps < -1024.0f ? -1024.0f : steps > 1024.0f ? 1024.0f : steps;
    steps += whole;
    return (int32_t)(steps - whole) + channel->zero;
}

/* A shifted sum in steps of the output, before the last shift; `numbers` are those of its channel. */
EW_INLINE int32_t ew_dsp_steps(uint32_t sum, const int32_t *numbers, int32_t kind)
{
    const ew_dsp_general_channel *general = (const ew_dsp_general_channel *)(const void *)numbers;
    const ew_dsp_wide_channel *wide = (const ew_dsp_wide_channel *)(const void *)numbers;
    if (kind == EW_DSP_PLAIN)
        return ew_high_add((int32_t)sum, numbers[0], numbers[1]);
    if (kind == EW_DSP_FLOAT)
        return ew_dsp_float_steps(sum, (const ew_dsp_float_channel *)(const void *)numbers);
    const int32_t total = (int32_t)(sum + (uint32_t)(kind == EW_DSP_WIDE ? wide->bias : general->bias));
    if (kind == EW_DSP_GENERAL)
        return ew_high_add(total, general->multiplier, general->offset) - (total < 0 ? general->drop : 0);
    const int64_t product = (int64_t)total * wide->multiplier + wide->offset;
    return ((int32_t)(product >> 32) + wide->offset_high - (total < 0 ? wide->drop : 0)) >> wide->shift;
}

/* Two sums of a pair of channels as stored values. */
EW_INLINE void ew_dsp_finish(const ew_dsp_work *work, int32_t channel, int32_t a, int32_t both, int32_t kind,
                             uint8_t *to)
{
    const uint32_t sums[2] = {(uint32_t)a << work->left, ((uint32_t)both - (uint32_t)a) << (work->left - 8)};
    for (int32_t i = 0; i < 2; i++) {
        const int32_t steps = ew_dsp_steps(sums[i], work->channels + (channel + i) * kind, kind) >> work->shift;
        const int32_t result = ew_clamp(steps, (int8_t)(work->low & 255u), (int8_t)(work->high & 255u));
        to[i] = (uint8_t)(((uint32_t)result ^ work->flip) & 255u);
    }
}

/* Pieces of the assembler code: where all weights of r6 channels end, of which `shift` says how many share a row; r7 are
 * the bytes of a row. Then what comes behind a row: the next one, and the end of all in r12. */
#ifdef EW_HAS_VIEWS
#define EW_DSP_END(shift) \
    "ldr lr, [r0, #36]\n" \
    "lsls r7, r7, #" shift "\n" \
    "lsrs r6, r6, #" shift "\n" \
    "lsl lr, lr, #" shift "\n" \
    "str lr, [sp, #48]\n" \
    "add lr, r7\n" \
    "mla r6, r6, lr, r4\n"
#define EW_DSP_NEXT_ROW \
    "ldrd r12, lr, [sp, #44]\n" \
    "add r1, lr\n"
#else
#define EW_DSP_END(shift) \
    "lsls r7, r7, #" shift "\n" \
    "lsrs r6, r6, #" shift "\n" \
    "mla r6, r6, r7, r4\n"
#define EW_DSP_NEXT_ROW "ldr r12, [sp, #44]\n"
#endif

/* r10: shift. */
#define EW_DSP_SCALED(sum, m, k) "smmla " sum ", " sum ", " m ", " k "\n"
#define EW_DSP_SIGNED(sum) /* r8, r9, r11, r12: multiplier, offset, drop, bias */ \
    "add " sum ", " sum ", r12\n" \
    "and lr, r11, " sum ", asr #31\n" \
    "smmla " sum ", " sum ", r8, r9\n" \
    "sub " sum ", " sum ", lr\n"
#define EW_DSP_NUMBERS "ldm r0!, {r8-r12, lr}\n" /* multiplier, offset, shift, upper half of the offset, drop, bias */
#define EW_DSP_WIDE_SUM(sum) \
    EW_DSP_NUMBERS \
    "add " sum ", " sum ", lr\n" \
    "and lr, r12, " sum ", asr #31\n" \
    "sub r11, r11, lr\n" \
    "smlal r9, r11, " sum ", r8\n" \
    "asr " sum ", r11, r10\n"
#define EW_DSP_WIDE_SUMS(a, b) /* of one channel */ \
    EW_DSP_NUMBERS \
    "add " a ", " a ", lr\n" \
    "add " b ", " b ", lr\n" \
    "and lr, r12, " a ", asr #31\n" \
    "sub lr, r11, lr\n" \
    "and r12, r12, " b ", asr #31\n" \
    "sub r11, r11, r12\n" \
    "mov r12, r9\n" \
    "smlal r12, lr, " a ", r8\n" \
    "smlal r9, r11, " b ", r8\n" \
    "asr " a ", lr, r10\n" \
    "asr " b ", r11, r10\n"
#define EW_DSP_FLOAT_SUM(sum) \
    "ldm r0!, {r8, r9, r11}\n" /* scale, bias, zero */ \
    "add " sum ", " sum ", r9\n" \
    "vmov s0, s1, " sum ", r8\n" \
    "vcvt.f32.s32 s0, s0\n" \
    "vmul.f32 s0, s0, s1\n" \
    "vcvtr.s32.f32 s0, s0\n" \
    "vmov " sum ", s0\n" \
    "add " sum ", " sum ", r11\n"
#define EW_DSP_FLOAT_SUMS(a, b) /* of one channel */ \
    "ldm r0!, {r8, r9, r11}\n" \
    "add " a ", " a ", r9\n" \
    "add " b ", " b ", r9\n" \
    "vmov s0, s1, " a ", " b "\n" \
    "vmov s2, r8\n" \
    "vcvt.f32.s32 s0, s0\n" \
    "vcvt.f32.s32 s1, s1\n" \
    "vmul.f32 s0, s0, s2\n" \
    "vmul.f32 s1, s1, s2\n" \
    "vcvtr.s32.f32 s0, s0\n" \
    "vcvtr.s32.f32 s1, s1\n" \
    "vmov " a ", " b ", s0, s1\n" \
    "add " a ", " a ", r11\n" \
    "add " b ", " b ", r11\n"
#define EW_DSP_SATURATED(sum) \
    "asr " sum ", " sum ", r10\n" \
    "ssat " sum ", #8, " sum "\n"
#define EW_DSP_RESULTS EW_DSP_SATURATED("r4") EW_DSP_SATURATED("r5") EW_DSP_SATURATED("r6") EW_DSP_SATURATED("r7")
#define EW_DSP_CLAMPED(low_high, flip) /* four results in one word, r4 */ \
    "bfi r4, r5, #8, #8\n" \
    "bfi r4, r6, #16, #8\n" \
    "bfi r4, r7, #24, #8\n" \
    "ldrd r8, r9, [sp, #" low_high "]\n" \
    "ldr r11, [sp, #" flip "]\n" \
    "ssub8 r12, r4, r8\n" \
    "sel r4, r4, r8\n" \
    "ssub8 r12, r9, r4\n" \
    "sel r4, r4, r9\n" \
    "eors r4, r11\n"

#endif /* EW_DSP_H */
