#include "fixed.h"
#include "pool.h"

#define EW_POOL_LANES 4 /* channels at a time: a word */

/* What happens to the elements under a window, in `sums` of n channels. */
typedef void (*ew_pool_gather)(const ew_pool *p, const int8_t *x, const ew_part *window, int32_t n, int32_t *sums);
typedef int32_t (*ew_pool_finish)(const ew_pool *p, int32_t sum, int32_t count);

static void ew_gather_sums(const ew_pool *p, const int8_t *x, const ew_part *window, int32_t n, int32_t *sums)
{
    const int32_t width = window->right - window->left;
#if defined(__ARM_FEATURE_DSP) && defined(__GNUC__)
    if (n == EW_POOL_LANES && (window->bottom - window->top) * width < 256) { /* so that sums fit 16 bits */
        uint32_t even = 0, odd = 0, word, pair;
        for (int32_t i = window->top; i < window->bottom; i++) {
            const int8_t *at = x + ew_row(&p->x, i) + window->left * p->x.pixel;
            for (int32_t j = 0; j < width; j++, at += p->x.pixel) {
                memcpy(&word, at, sizeof word);
                __asm__("sxtb16 %0, %1" : "=r"(pair) : "r"(word));
                __asm__("sadd16 %0, %0, %1" : "+r"(even) : "r"(pair));
                __asm__("sxtb16 %0, %1, ror #8" : "=r"(pair) : "r"(word));
                __asm__("sadd16 %0, %0, %1" : "+r"(odd) : "r"(pair));
            }
        }
        sums[0] = (int16_t)even;
        sums[1] = (int16_t)odd;
        sums[2] = (int32_t)even >> 16;
        sums[3] = (int32_t)odd >> 16;
        return;
    }
#endif
    for (int32_t lane = 0; lane < n; lane++)
        sums[lane] = 0;
    for (int32_t i = window->top; i < window->bottom; i++) {
        const int8_t *at = x + ew_row(&p->x, i) + window->left * p->x.pixel;
        if (n == EW_POOL_LANES) {
            int32_t s0 = sums[0], s1 = sums[1], s2 = sums[2], s3 = sums[3];
            for (int32_t j = 0; j < width; j++, at += p->x.pixel)
                s0 += at[0], s1 += at[1], s2 += at[2], s3 += at[3];
            sums[0] = s0, sums[1] = s1, sums[2] = s2, sums[3] = s3;
            continue;
        }
        for (int32_t j = 0; j < width; j++, at += p->x.pixel)
            for (int32_t lane = 0; lane < n; lane++)
                sums[lane] += at[lane];
    }
}

static void ew_gather_largest(const ew_pool *p, const int8_t *x, const ew_part *window, int32_t n, int32_t *largest)
{
    const int32_t width = window->right - window->left;
#if defined(__ARM_FEATURE_DSP) && defined(__GNUC__)
    if (n == EW_POOL_LANES) {
        uint32_t best = 0x80808080u, word;
        for (int32_t i = window->top; i < window->bottom; i++) {
            const int8_t *at = x + ew_row(&p->x, i) + window->left * p->x.pixel;
            for (int32_t j = 0; j < width; j++, at += p->x.pixel) {
                uint32_t unused;
                memcpy(&word, at, sizeof word);
                __asm__("ssub8 %1, %2, %0\n\tsel %0, %2, %0" : "+r"(best), "=&r"(unused) : "r"(word) : "cc");
            }
        }
        for (int32_t lane = 0; lane < n; lane++, best >>= 8)
            largest[lane] = (int8_t)(uint8_t)best;
        return;
    }
#endif
    for (int32_t lane = 0; lane < n; lane++) {
        int32_t best = -128;
        for (int32_t i = window->top; i < window->bottom; i++) {
            const int8_t *at = x + lane + ew_row(&p->x, i) + window->left * p->x.pixel;
            for (int32_t j = 0; j < width; j++, at += p->x.pixel)
                best = ew_max(best, *at);
        }
        largest[lane] = best;
    }
}

/* Rounded half away from zero. */
static int32_t ew_finish_average(const ew_pool *p, int32_t sum, int32_t count)
{
    return ew_between(p->low, (sum < 0 ? sum - count / 2 : sum + count / 2) / ew_max(1, count), p->high);
}

static int32_t ew_finish_mean(const ew_pool *p, int32_t sum, int32_t count)
{
    return ew_placed(ew_multiply(sum - p->zero * count, p->multiplier, p->shift), p->offset, p->low, p->high);
}

static int32_t ew_finish_max(const ew_pool *p, int32_t largest, int32_t count)
{
    (void)count;
    return ew_between(p->low, largest, p->high);
}

EW_INLINE void ew_pool_run(const ew_pool *p, const int8_t *x, int8_t *y, const ew_part *part, int32_t first,
                           int32_t last, int32_t backward, ew_pool_gather gather, ew_pool_finish finish)
{
    const int32_t columns = part->right - part->left, pixels = (part->bottom - part->top) * columns;
    for (int32_t i = 0; i < pixels; i++) {
        const int32_t at = backward ? pixels - 1 - i : i;
        const int32_t row = part->top + at / columns, column = part->left + at % columns;
        const int32_t top = row * p->stride_h - p->pad_h, left = column * p->stride_w - p->pad_w;
        const ew_part window = {ew_max(0, top), ew_min(p->height, top + p->kernel_h), ew_max(0, left),
                                ew_min(p->width, left + p->kernel_w)};
        const int32_t count = ew_max(0, window.bottom - window.top) * ew_max(0, window.right - window.left);
        int8_t *to = y + ew_row(&p->y, row) + column * p->y.pixel;
        for (int32_t channel = first; channel < last; channel += EW_POOL_LANES) {
            int32_t sums[EW_POOL_LANES];
            const int32_t n = ew_min(last - channel, EW_POOL_LANES);
            gather(p, x + channel, &window, n, sums);
            for (int32_t lane = 0; lane < n; lane++)
                to[channel + lane] = (int8_t)finish(p, sums[lane], count);
        }
    }
}

void ew_pool_average(const ew_pool *p, const int8_t *x, int8_t *y, const ew_part *part, int32_t first, int32_t last,
                     int32_t backward)
{
    ew_pool_run(p, x, y, part, first, last, backward, ew_gather_sums, ew_finish_average);
}

void ew_pool_mean(const ew_pool *p, const int8_t *x, int8_t *y, const ew_part *part, int32_t first, int32_t last,
                  int32_t backward)
{
    ew_pool_run(p, x, y, part, first, last, backward, ew_gather_sums, ew_finish_mean);
}

void ew_pool_max(const ew_pool *p, const int8_t *x, int8_t *y, const ew_part *part, int32_t first, int32_t last,
                 int32_t backward)
{
    ew_pool_run(p, x, y, part, first, last, backward, ew_gather_largest, ew_finish_max);
}
