#include "dynamic_conv.h"

typedef struct {
    int32_t first, last; /* of the taps that meet the image, half-open */
} ew_dynamic_taps;

static ew_dynamic_taps ew_dynamic_meeting(int32_t start, int32_t dilation, int32_t kernel, int32_t size)
{
    ew_dynamic_taps taps;
    taps.first = start < 0 ? ew_min(kernel, (-start + dilation - 1) / dilation) : 0;
    taps.last = start >= size ? taps.first : ew_max(taps.first, ew_min(kernel, (size - start + dilation - 1) / dilation));
    return taps;
}

/* Adds n products of x with the weights of four channels. */
static const int8_t *ew_dynamic_fours(const int8_t *x, const int8_t *w, int32_t n, int32_t zero, int32_t *sums)
{
    int32_t a = sums[0], b = sums[1], c = sums[2], d = sums[3];
    for (const int8_t *end = x + n; x != end; x++, w += 4) {
        const int32_t v = *x - zero;
        a += v * w[0];
        b += v * w[1];
        c += v * w[2];
        d += v * w[3];
    }
    sums[0] = a;
    sums[1] = b;
    sums[2] = c;
    sums[3] = d;
    return w;
}

static float ew_dynamic_stored(const ew_dynamic_conv *p, int32_t sum, int32_t channel, float scale)
{
    const float mine = p->scales[channel];
    const float scaled = p->in_turn ? (float)sum * mine * scale : (float)sum * (scale * mine);
    const float value = scaled + p->bias[channel];
    const float above = (p->limits & 1) && value < p->low ? p->low : value;
    return (p->limits & 2) && above > p->high ? p->high : above;
}

static void ew_dynamic_pixel(
    const ew_dynamic_conv *p, const int8_t *x, float *y, int32_t row, int32_t column, float scale, int32_t zero)
{
    const int32_t top = row * p->stride_h - p->pad_h, left = column * p->stride_w - p->pad_w;
    const int32_t taps = p->kernel_w * p->depth, step = p->dilation_w * p->x.pixel;
    const ew_dynamic_taps ys = ew_dynamic_meeting(top, p->dilation_h, p->kernel_h, p->height);
    const ew_dynamic_taps xs = ew_dynamic_meeting(left, p->dilation_w, p->kernel_w, p->width);
    const int32_t is_run = p->dilation_w == 1 && p->x.pixel == p->depth;
    const int8_t *weights = p->weights;
    for (int32_t channel = 0; channel < p->channels; channel += 4, weights += 4 * p->kernel_h * taps) {
        const int32_t count = ew_min(4, p->channels - channel);
        int32_t sums[4] = {0, 0, 0, 0};
        for (int32_t ky = ys.first; ky < ys.last && xs.first < xs.last; ky++) {
            const int8_t *w = weights + 4 * (ky * taps + xs.first * p->depth);
            const int8_t *from = x + ew_row(&p->x, top + ky * p->dilation_h) + left * p->x.pixel + xs.first * step;
            if (is_run) {
                ew_dynamic_fours(from, w, (xs.last - xs.first) * p->depth, zero, sums);
                continue;
            }
            for (int32_t kx = xs.first; kx < xs.last; kx++, from += step)
                w = ew_dynamic_fours(from, w, p->depth, zero, sums);
        }
        for (int32_t i = 0; i < count; i++)
            y[channel + i] = ew_dynamic_stored(p, sums[i], channel + i, scale);
    }
}

static void ew_dynamic_grouped(
    const ew_dynamic_conv *p, const int8_t *x, float *y, int32_t row, int32_t column, float scale, int32_t zero)
{
    const int32_t top = row * p->stride_h - p->pad_h, left = column * p->stride_w - p->pad_w;
    const int32_t taps = p->kernel_w * p->depth, step = p->dilation_w * p->x.pixel;
    const ew_dynamic_taps ys = ew_dynamic_meeting(top, p->dilation_h, p->kernel_h, p->height);
    const ew_dynamic_taps xs = ew_dynamic_meeting(left, p->dilation_w, p->kernel_w, p->width);
    const int8_t *weights = p->weights;
    int32_t place = p->first; /* of the channel in its group */
    for (int32_t channel = 0; channel < p->channels; channel++, weights += p->kernel_h * taps) {
        int32_t sum = 0;
        for (int32_t ky = ys.first; ky < ys.last; ky++) {
            const int8_t *w = weights + ky * taps + xs.first * p->depth;
            const int8_t *from = x + ew_row(&p->x, top + ky * p->dilation_h) + left * p->x.pixel + xs.first * step;
            for (int32_t kx = xs.first; kx < xs.last; kx++, from += step)
                for (int32_t d = 0; d < p->depth; d++)
                    sum += (from[d] - zero) * *w++;
        }
        y[channel] = ew_dynamic_stored(p, sum, channel, scale);
        if (++place == p->per_group) {
            place = 0;
            x += p->depth;
        }
    }
}

void ew_dynamic_conv_run(
    const ew_dynamic_conv *p, const int8_t *x, float *y, const ew_part *part, int32_t is_backward, float scale,
    int32_t zero)
{
    const int32_t rows = part->bottom - part->top, columns = part->right - part->left;
    for (int32_t i = 0; i < rows; i++) {
        const int32_t row = is_backward ? part->bottom - 1 - i : part->top + i;
        float *to = y + ew_row(&p->y, row);
        for (int32_t j = 0; j < columns; j++) {
            const int32_t column = is_backward ? part->right - 1 - j : part->left + j;
            if (p->per_group)
                ew_dynamic_grouped(p, x, to + column * p->y.pixel, row, column, scale, zero);
            else
                ew_dynamic_pixel(p, x, to + column * p->y.pixel, row, column, scale, zero);
        }
    }
}
