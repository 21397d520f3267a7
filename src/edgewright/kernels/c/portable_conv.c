#include "portable_conv.h"

#if EW_FEW_REGISTERS
EW_INLINE void ew_portable_4x4(const int8_t *x, const int8_t *w, int32_t depth, const int32_t *bias, int32_t *sums)
{
    for (int32_t pixel = 0; pixel < 4; pixel++)
        ew_portable_1x4(x + pixel, 4, w, 4, depth, bias, sums + 4 * pixel);
}
#define EW_PORTABLE_SUM(sums, channel, pixel) (sums)[4 * (pixel) + (channel)]
#define EW_PORTABLE_SUM_STEP 1 /* from channel to channel */
#else

#define EW_PORTABLE_SUM(sums, channel, pixel) (sums)[4 * (channel) + (pixel)]
#define EW_PORTABLE_SUM_STEP 4 /* from channel to channel */

/* The fences keep a compiler from loading ahead of what registers can hold. */
#define EW_PORTABLE_CHANNEL(c, k)                                                                                   \
    EW_FENCE();                                                                                                     \
    b = w[4 * (k) + (c)];                                                                                           \
    a##c##0 += b * x0;                                                                                              \
    a##c##1 += b * x1;                                                                                              \
    a##c##2 += b * x2;                                                                                              \
    a##c##3 += b * x3;
#define EW_PORTABLE_STEP(k)                                                                                         \
    EW_FENCE();                                                                                                     \
    x0 = x[4 * (k)];                                                                                                \
    x1 = x[4 * (k) + 1];                                                                                            \
    x2 = x[4 * (k) + 2];                                                                                            \
    x3 = x[4 * (k) + 3];                                                                                            \
    EW_PORTABLE_CHANNEL(0, k)                                                                                       \
    EW_PORTABLE_CHANNEL(1, k)                                                                                       \
    EW_PORTABLE_CHANNEL(2, k)                                                                                       \
    EW_PORTABLE_CHANNEL(3, k)

/* Sums of four channels of four pixels. x: columns [k][4], w: weights [k][4]. */
EW_INLINE void ew_portable_4x4(const int8_t *x, const int8_t *w, int32_t depth, const int32_t *bias, int32_t *sums)
{
    int32_t a00 = bias[0], a01 = a00, a02 = a00, a03 = a00;
    int32_t a10 = bias[1], a11 = a10, a12 = a10, a13 = a10;
    int32_t a20 = bias[2], a21 = a20, a22 = a20, a23 = a20;
    int32_t a30 = bias[3], a31 = a30, a32 = a30, a33 = a30;
    int32_t x0, x1, x2, x3, b;
    const int8_t *const end = w + 4 * (depth & ~1);
    for (; w != end; x += 8, w += 8) {
        EW_PORTABLE_STEP(0)
        EW_PORTABLE_STEP(1)
    }
    if (depth & 1) {
        EW_PORTABLE_STEP(0)
    }
    sums[0] = a00, sums[1] = a01, sums[2] = a02, sums[3] = a03;
    sums[4] = a10, sums[5] = a11, sums[6] = a12, sums[7] = a13;
    sums[8] = a20, sums[9] = a21, sums[10] = a22, sums[11] = a23;
    sums[12] = a30, sums[13] = a31, sums[14] = a32, sums[15] = a33;
}
#endif

/* Stores `count` channels of four pixels from `channel` on. */
EW_OFTEN_RUN EW_APART static void ew_portable_store_4(const ew_products *products, int32_t channel, int32_t count,
                                                      const int32_t *sums, uint8_t *const *y)
{
    const ew_products p = *products; /* a copy, which stores cannot change */
    uint8_t *y0 = y[0] + channel, *y1 = y[1] + channel, *y2 = y[2] + channel, *y3 = y[3] + channel;
    for (const int32_t stop = channel + count; channel < stop; channel++, sums += EW_PORTABLE_SUM_STEP) {
        const int32_t m = p.multiplier[channel], o = p.offset[channel];
        if (EW_IS_EXACT(p)) {
            EW_PORTABLE_PUT(p, EW_EXACT_STEPS(p, channel, EW_PORTABLE_SUM(sums, 0, 0)), y0++);
            EW_PORTABLE_PUT(p, EW_EXACT_STEPS(p, channel, EW_PORTABLE_SUM(sums, 0, 1)), y1++);
            EW_PORTABLE_PUT(p, EW_EXACT_STEPS(p, channel, EW_PORTABLE_SUM(sums, 0, 2)), y2++);
            EW_PORTABLE_PUT(p, EW_EXACT_STEPS(p, channel, EW_PORTABLE_SUM(sums, 0, 3)), y3++);
            continue;
        }
        if (p.drop) {
            const int32_t d = p.drop[channel];
            EW_PORTABLE_STORE(p, EW_PORTABLE_SUM(sums, 0, 0), m, o, d, y0++);
            EW_PORTABLE_STORE(p, EW_PORTABLE_SUM(sums, 0, 1), m, o, d, y1++);
            EW_PORTABLE_STORE(p, EW_PORTABLE_SUM(sums, 0, 2), m, o, d, y2++);
            EW_PORTABLE_STORE(p, EW_PORTABLE_SUM(sums, 0, 3), m, o, d, y3++);
        } else {
            EW_PORTABLE_STORE(p, EW_PORTABLE_SUM(sums, 0, 0), m, o, 0, y0++);
            EW_PORTABLE_STORE(p, EW_PORTABLE_SUM(sums, 0, 1), m, o, 0, y1++);
            EW_PORTABLE_STORE(p, EW_PORTABLE_SUM(sums, 0, 2), m, o, 0, y2++);
            EW_PORTABLE_STORE(p, EW_PORTABLE_SUM(sums, 0, 3), m, o, 0, y3++);
        }
    }
}

/* All channels of four pixels. */
EW_OFTEN_RUN EW_APART static void ew_portable_four(const ew_products *p, const int8_t *columns, uint8_t *const *y)
{
    const int8_t *w = p->weights;
    int32_t sums[16], channel = 0;
    while (channel < p->channels) {
        const int32_t count = channel + 4 <= p->channels ? 4 : 1;
        const int32_t *bias = ew_products_bias(p, channel);
        if (count == 4)
            ew_portable_4x4(columns, w, p->depth, bias, sums);
        else
            for (int32_t i = 0; i < 4; i++)
                EW_PORTABLE_SUM(sums, 0, i) = ew_portable_dot(columns + i, 4, w, p->depth, *bias);
        ew_portable_store_4(p, channel, count, sums, y);
        w += count * EW_PRODUCTS_PITCH(p);
        channel += count;
    }
}

/* `lines` times `size` bytes that lie side by side, to every `step`-th byte. */
EW_OFTEN_RUN EW_APART static int8_t *ew_portable_spread(const uint8_t *x, int32_t size, int32_t lines, int32_t line,
                                                        int32_t flip, int8_t *to, int32_t step)
{
    for (; lines > 0; lines--, x += line) {
        const uint8_t *from = x;
        const uint8_t *const end = x + size, *const fours = step == 4 && !flip ? x + (size & ~3) : x;
        for (; from != fours; from += 4, to += 16) {
            const uint8_t a = from[0], b = from[1], c = from[2], d = from[3];
            to[0] = (int8_t)a;
            to[4] = (int8_t)b;
            to[8] = (int8_t)c;
            to[12] = (int8_t)d;
        }
        for (; from != end; from++, to += step)
            *to = (int8_t)(*from ^ flip);
    }
    return to;
}

/* What a window that leaves the image covers, or one whose bytes lie apart. */
EW_APART static void ew_portable_collect(const ew_convolution *p, const uint8_t *x, int32_t y, int32_t left,
                                         int8_t *to, int32_t step)
{
    for (int32_t i = 0; i < p->kernel_h; i++, y += p->dilation_h) {
        const uint8_t *const line = y >= 0 && y < p->height ? x + ew_row(&p->x, y) : NULL;
        int32_t at = left;
        for (int32_t j = 0; j < p->kernel_w; j++, at += p->dilation_w) {
            if (line && at >= 0 && at < p->width) {
                to = ew_portable_spread(line + at * p->x.pixel, p->depth, 1, 0, p->flip, to, step);
            } else {
                for (int32_t k = 0; k < p->depth; k++, to += step)
                    *to = p->zero;
            }
        }
    }
}

#ifdef EW_HAS_SPLIT
/* What a window covers, four channels of all taps before the next four. */
EW_OFTEN_RUN EW_APART static void ew_portable_split(const ew_convolution *p, const uint8_t *x, int32_t y, int32_t left,
                                                    int8_t *to, int32_t step)
{
    const int32_t jump = (ew_split_jump(p) - 4) * step;
    const int8_t zero = p->zero;
    for (int32_t i = 0; i < p->kernel_h; i++, y += p->dilation_h) {
        const uint8_t *const line = y >= 0 && y < p->height ? x + ew_row(&p->x, y) : NULL;
        for (int32_t j = 0, at = left; j < p->kernel_w; j++, at += p->dilation_w, to += 4 * step) {
            int8_t *put = to;
            if (line && at >= 0 && at < p->width) {
                const uint8_t *from = line + at * p->x.pixel;
                for (const uint8_t *const end = from + p->depth; from != end; from += 4, put += jump) {
                    const int32_t a = from[0], b = from[1], c = from[2], d = from[3];
                    *put = (int8_t)a, put += step;
                    *put = (int8_t)b, put += step;
                    *put = (int8_t)c, put += step;
                    *put = (int8_t)d, put += step;
                }
            } else {
                for (int32_t k = p->depth; k > 0; k -= 4, put += jump)
                    for (int32_t four = 0; four < 4; four++, put += step)
                        *put = zero;
            }
        }
    }
}
#endif

/* What the window at an output pixel covers, to every `step`-th byte. `line` is where its first row begins. */
static void ew_portable_gather(const ew_convolution *p, const uint8_t *x, int32_t row, int32_t column, int32_t line,
                               int8_t *to, int32_t step)
{
    const int32_t left = column * p->stride_w - p->pad_w, top = row * p->stride_h - p->pad_h;
#ifdef EW_HAS_SPLIT
    if (p->is_split) {
        ew_portable_split(p, x, top, left, to, step);
        return;
    }
#endif
    if (!p->has_runs || left < 0 || left + p->kernel_w > p->width || top < 0 ||
        top + (p->kernel_h - 1) * p->dilation_h >= p->height) {
        ew_portable_collect(p, x, top, left, to, step);
        return;
    }
    const int32_t lines = p->x.rows ? 1 : p->kernel_h; /* at the same distance */
    for (int32_t i = 0; i < p->kernel_h; i += lines, line = ew_row_on(&p->x, line, p->dilation_h))
        to = ew_portable_spread(x + line + left * p->x.pixel, p->kernel_w * p->depth, lines, p->dilation_h * p->x.row,
                                p->flip, to, step);
}

/* Where in x the windows of an output row begin. */
EW_INLINE int32_t ew_portable_line(const ew_convolution *p, int32_t row)
{
    return ew_row(&p->x, row * p->stride_h - p->pad_h);
}

void ew_portable_conv(const ew_convolution *p, const uint8_t *x, uint8_t *y, ew_part part, int8_t *columns)
{
    const int32_t step = p->is_backward ? -1 : 1;
    int32_t row = p->is_backward ? part.bottom - 1 : part.top;
    int32_t column = p->is_backward ? part.right - 1 : part.left;
    int32_t line = ew_portable_line(p, row), target = ew_row(&p->y, row);
    int32_t count = ew_max(part.bottom - part.top, 0) * ew_max(part.right - part.left, 0);
    while (count > 0) {
        const int32_t pixels = count < p->pixels ? 1 : p->pixels;
        uint8_t *at[4];
        for (int32_t i = 0; i < pixels; i++) {
            ew_portable_gather(p, x, row, column, line, columns + i, pixels);
            at[i] = y + target + column * p->y.pixel;
            column += step;
            if (column < part.left || column >= part.right) {
                column = p->is_backward ? part.right - 1 : part.left;
                row += step;
                line = ew_portable_line(p, row);
                target = ew_row(&p->y, row);
            }
        }
        if (pixels == 4)
            ew_portable_four(&p->products, columns, at);
        else
            ew_portable_pixel(&p->products, 0, p->products.weights, columns, at[0]);
        count -= pixels;
    }
}
