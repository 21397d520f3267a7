#include "real_conv.h"

/* Rounded once where the core does that in one instruction; within the tolerance of floats either way. */
#if defined(__ARM_FEATURE_FMA) && defined(__GNUC__)
#define EW_REAL_MAC(a, x, w) __builtin_fmaf(x, w, a)
#else
#define EW_REAL_MAC(a, x, w) ((a) + (x) * (w))
#endif

/* Adds n products of x with the weights of four channels. */
static const float *ew_real_run(const float *x, const float *w, int32_t n, float *sums)
{
    float a = sums[0], b = sums[1], c = sums[2], d = sums[3];
    if (n & 1) {
        a = EW_REAL_MAC(a, x[0], w[0]);
        b = EW_REAL_MAC(b, x[0], w[1]);
        c = EW_REAL_MAC(c, x[0], w[2]);
        d = EW_REAL_MAC(d, x[0], w[3]);
        x += 1;
        w += 4;
    }
    for (const float *end = x + (n & ~1); x != end; x += 2, w += 8) {
        a = EW_REAL_MAC(a, x[0], w[0]);
        b = EW_REAL_MAC(b, x[0], w[1]);
        c = EW_REAL_MAC(c, x[0], w[2]);
        d = EW_REAL_MAC(d, x[0], w[3]);
        a = EW_REAL_MAC(a, x[1], w[4]);
        b = EW_REAL_MAC(b, x[1], w[5]);
        c = EW_REAL_MAC(c, x[1], w[6]);
        d = EW_REAL_MAC(d, x[1], w[7]);
    }
    sums[0] = a;
    sums[1] = b;
    sums[2] = c;
    sums[3] = d;
    return w;
}

/* The first and one past the last tap that meets the image, from `start` on. */
static void ew_real_taps(int32_t start, int32_t dilation, int32_t kernel, int32_t size, int32_t *first, int32_t *last)
{
    *first = start < 0 ? ew_min(kernel, (-start + dilation - 1) / dilation) : 0;
    *last = start >= size ? *first : ew_max(*first, ew_min(kernel, (size - start + dilation - 1) / dilation));
}

static void ew_real_pixel(const ew_real_conv *p, const float *x, float *y, int32_t row, int32_t column)
{
    const int32_t top = row * p->stride_h - p->pad_h, left = column * p->stride_w - p->pad_w;
    const int32_t taps = p->kernel_w * p->depth;
    const int is_run = p->dilation_w == 1 && p->x.pixel == p->depth;
    const float *weights = p->weights;
    int32_t first_y, last_y, first_x, last_x;
    ew_real_taps(top, p->dilation_h, p->kernel_h, p->height, &first_y, &last_y);
    ew_real_taps(left, p->dilation_w, p->kernel_w, p->width, &first_x, &last_x);
    for (int32_t channel = 0; channel < p->channels; channel += 4, weights += 4 * p->kernel_h * taps) {
        const int32_t count = ew_min(4, p->channels - channel);
        float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        if (p->bias)
            memcpy(sums, p->bias + channel, sizeof sums);
        for (int32_t ky = first_y; ky < last_y && first_x < last_x; ky++) {
            const float *w = weights + 4 * (ky * taps + first_x * p->depth);
            const float *from = x + ew_row(&p->x, top + ky * p->dilation_h) +
                                (left + first_x * p->dilation_w) * p->x.pixel;
            if (is_run) {
                ew_real_run(from, w, (last_x - first_x) * p->depth, sums);
                continue;
            }
            for (int32_t kx = first_x; kx < last_x; kx++, from += p->dilation_w * p->x.pixel)
                w = ew_real_run(from, w, p->depth, sums);
        }
        for (int32_t i = 0; i < count; i++) {
            const float value = (p->limits & 1) && sums[i] < p->low ? p->low : sums[i];
            y[channel + i] = (p->limits & 2) && value > p->high ? p->high : value;
        }
    }
}

void ew_real_conv_run(const ew_real_conv *p, const float *x, float *y, const ew_part *part, int32_t is_backward)
{
    const int32_t rows = part->bottom - part->top, columns = part->right - part->left;
    for (int32_t i = 0; i < rows; i++) {
        const int32_t row = is_backward ? part->bottom - 1 - i : part->top + i;
        float *to = y + ew_row(&p->y, row);
        for (int32_t j = 0; j < columns; j++) {
            const int32_t column = is_backward ? part->right - 1 - j : part->left + j;
            ew_real_pixel(p, x, to + column * p->y.pixel, row, column);
        }
    }
}
