#include "portable_pairs.h"

/* Two products lie in -32767..32768. The lower half is moved to 0..65535 and the upper one by one to fit 16 bits. */
#define EW_PAIRS_UP (0x7fffu - 0x10000u)

/* Channel c: `both` are sums of halves together, `high` those of upper halves. Fences keep a compiler from loading
 * ahead of what registers can hold. */
#define EW_PAIRS_ADD(c, pair, first, second)                                                                          \
    v = (uint32_t)(first * w0) + (uint32_t)(second * w1) + up;                                                        \
    both##c##pair += v;                                                                                               \
    high##c##pair += (int32_t)v >> 16;
#define EW_PAIRS_CHANNEL(c)                                                                                           \
    EW_FENCE();                                                                                                       \
    w0 = w[c];                                                                                                        \
    w1 = w[4 + (c)];                                                                                                  \
    EW_PAIRS_ADD(c, 0, x00, x10)                                                                                      \
    EW_PAIRS_ADD(c, 1, x01, x11)
#define EW_PAIRS_APART(c)                                                                                             \
    sums[c] = (int32_t)(both##c##0 - ((uint32_t)high##c##0 << 16));                                                   \
    sums[4 + (c)] = high##c##0;                                                                                       \
    sums[8 + (c)] = (int32_t)(both##c##1 - ((uint32_t)high##c##1 << 16));                                             \
    sums[12 + (c)] = high##c##1;

/* Clang keeps all sums in registers where nothing around them wants any; GCC does so anyway, and spares the call. */
#if defined(__clang__)
#define EW_PAIRS_SUMS EW_APART static
#else
#define EW_PAIRS_SUMS EW_INLINE
#endif

/* Sums of four channels of four pixels, [pixel][channel]. x: columns [k][2], w: weights [k][4]. */
EW_PAIRS_SUMS void ew_pairs_sums(const int32_t *x, const int8_t *w, int32_t depth, int32_t *sums)
{
    const uint32_t up = EW_PAIRS_UP;
    const int32_t more = depth >> 1;
    const uint32_t less = (uint32_t)-more * up;
    uint32_t both00 = less, both01 = less, both10 = less, both11 = less, v;
    uint32_t both20 = less, both21 = less, both30 = less, both31 = less;
    int32_t high00 = more, high01 = more, high10 = more, high11 = more;
    int32_t high20 = more, high21 = more, high30 = more, high31 = more;
    int32_t x00, x01, x10, x11, w0, w1;
    for (const int8_t *const end = w + 4 * depth; w != end; x += 4, w += 8) {
        x00 = x[0], x01 = x[1], x10 = x[2], x11 = x[3];
        EW_PAIRS_CHANNEL(0)
        EW_PAIRS_CHANNEL(1)
        EW_PAIRS_CHANNEL(2)
        EW_PAIRS_CHANNEL(3)
    }
    EW_PAIRS_APART(0)
    EW_PAIRS_APART(1)
    EW_PAIRS_APART(2)
    EW_PAIRS_APART(3)
}

/* Sums of four channels of one pixel, which lies in lower halves alone. */
EW_INLINE void ew_pairs_one(const int32_t *x, const int8_t *w, int32_t depth, int32_t *sums)
{
    int32_t a0 = 0, a1 = 0, a2 = 0, a3 = 0;
    for (const int8_t *const end = w + 4 * depth; w != end; x += 2, w += 4) {
        const int32_t v = *x;
        a0 += v * w[0];
        a1 += v * w[1];
        a2 += v * w[2];
        a3 += v * w[3];
    }
    sums[0] = a0, sums[1] = a1, sums[2] = a2, sums[3] = a3;
}

/* A branch for each bound is cheaper than conditional moves that do not exist. */
#define EW_PAIRS_STORE(c)                                                                                             \
    v = ew_fixed(sums[c], left, m##c, o##c, shift);                                                                   \
    if (v < low)                                                                                                      \
        v = low;                                                                                                      \
    if (v > high)                                                                                                     \
        v = high;                                                                                                     \
    to[c] = (uint8_t)v;

/* Stores four channels of some pixels. */
EW_OFTEN_RUN EW_APART static void ew_pairs_store(const ew_products *p, int32_t channel, const int32_t *sums,
                                                 uint8_t *const *y, int32_t pixels)
{
    const int32_t *m = p->multiplier + channel, *o = p->offset + channel;
    const int32_t m0 = m[0], m1 = m[1], m2 = m[2], m3 = m[3], o0 = o[0], o1 = o[1], o2 = o[2], o3 = o[3];
    const int32_t left = p->left, shift = p->shift, low = p->low, high = p->high;
    int32_t v;
    for (uint8_t *const *const end = y + pixels; y != end; sums += 4) {
        uint8_t *const to = *y++ + channel;
        EW_PAIRS_STORE(0)
        EW_PAIRS_STORE(1)
        EW_PAIRS_STORE(2)
        EW_PAIRS_STORE(3)
    }
}

/* The same where negative sums are rounded otherwise, or all by wide offsets or float products. */
static void ew_pairs_store_signed(const ew_products *p, int32_t channel, int32_t *sums, uint8_t *const *y,
                                  int32_t pixels)
{
    for (int32_t i = 0; i < pixels; i++, sums += 4) {
        for (int32_t c = 0; c < 4; c++)
            sums[c] += EW_IS_EXACT(*p) && !p->bias ? 0 : p->bias[channel + c];
        ew_portable_store(p, channel, 4, sums, y[i]);
    }
}

/* All channels of four pixels, or of one. */
EW_OFTEN_RUN EW_APART static void ew_pairs_pixels(const ew_products *products, const int32_t *columns,
                                                  uint8_t *const *y, int32_t pixels)
{
    const ew_products *volatile kept = products; /* not in a register: sums need them all */
    const int8_t *w = products->weights;
    int32_t sums[16];
    for (int32_t channel = 0; channel < kept->channels; channel += 4) {
        const int32_t depth = kept->depth;
        if (pixels == 4)
            ew_pairs_sums(columns, w, depth, sums);
        else
            ew_pairs_one(columns, w, depth, sums);
        const ew_products *const p = kept;
        w += 4 * EW_PRODUCTS_PITCH(p);
        if (p->drop || EW_IS_EXACT(*p))
            ew_pairs_store_signed(p, channel, sums, y, pixels);
        else
            ew_pairs_store(p, channel, sums, y, pixels);
    }
}

/* The first place that a window covers, and where that row begins. */
typedef struct {
    int32_t top, left, line;
} ew_pair_at;

/* Where the window at a place of the image begins if its lines lie side by side in there, else NULL. */
EW_INLINE const uint8_t *ew_pairs_run(const ew_convolution *p, const uint8_t *x, const ew_pair_at *at)
{
    const int32_t is_inside = at->left >= 0 && at->left + p->kernel_w <= p->width && at->top >= 0 &&
                              at->top + (p->kernel_h - 1) * p->dilation_h < p->height;
    return p->has_runs && is_inside ? x + at->line + at->left * p->x.pixel : NULL;
}

/* The windows of two pixels, of `lines` times `size` bytes. */
EW_OFTEN_RUN EW_APART static int32_t *ew_pairs_join(const ew_convolution *p, const uint8_t *a, const uint8_t *b,
                                                    int32_t lines, int32_t *to)
{
    const int32_t size = p->kernel_w * p->depth, line = p->dilation_h * p->x.row - size, flip = p->flip;
    for (; lines > 0; lines--, a += line, b += line) {
        const uint8_t *const end = a + size, *const fours = flip ? a : a + (size & ~3);
        for (; a != fours; a += 4, b += 4, to += 8) {
            to[0] = (int8_t)a[0] + (int8_t)b[0] * 65536;
            to[2] = (int8_t)a[1] + (int8_t)b[1] * 65536;
            to[4] = (int8_t)a[2] + (int8_t)b[2] * 65536;
            to[6] = (int8_t)a[3] + (int8_t)b[3] * 65536;
        }
        for (; a != end; a++, b++, to += 2)
            *to = (int8_t)(*a ^ flip) + (int8_t)(*b ^ flip) * 65536;
    }
    return to;
}

/* The same from a rolling buffer. */
static void ew_pairs_join_circular(const ew_convolution *p, const uint8_t *a, const uint8_t *b, const ew_pair_at *at,
                               int32_t *to)
{
    int32_t up = at[0].line, down = at[1].line;
    for (int32_t i = 0; i < p->kernel_h; i++) {
        const int32_t next_up = ew_row_on(&p->x, up, p->dilation_h), next_down = ew_row_on(&p->x, down, p->dilation_h);
        to = ew_pairs_join(p, a, b, 1, to);
        a += next_up - up;
        b += next_down - down;
        up = next_up;
        down = next_down;
    }
}

/* The window of one pixel, which may leave the image, times `factor`; numbers are added to what is there & `keep`. */
EW_APART static void ew_pairs_collect(const ew_convolution *p, const uint8_t *x, int32_t y, int32_t left, int32_t *to,
                                      int32_t factor, int32_t keep)
{
    for (int32_t i = 0; i < p->kernel_h; i++, y += p->dilation_h) {
        int32_t at = left;
        for (int32_t j = 0; j < p->kernel_w; j++, at += p->dilation_w) {
            const int32_t is_inside = y >= 0 && y < p->height && at >= 0 && at < p->width;
            const uint8_t *from = is_inside ? x + ew_row(&p->x, y) + at * p->x.pixel : NULL;
            for (int32_t k = p->depth; k > 0; k--, to += 2)
                *to = (*to & keep) + (is_inside ? (int8_t)(*from++ ^ p->flip) : p->zero) * factor;
        }
    }
}

#ifdef EW_HAS_SPLIT
/* A row of the image, if it exists. */
EW_INLINE const uint8_t *ew_pairs_line(const ew_convolution *p, const uint8_t *x, int32_t y)
{
    return y >= 0 && y < p->height ? x + ew_row(&p->x, y) : NULL;
}

EW_INLINE const uint8_t *ew_pairs_tap(const ew_convolution *p, const uint8_t *line, int32_t column)
{
    return line && column >= 0 && column < p->width ? line + column * p->x.pixel : NULL;
}

/* What the windows of two pixels cover, or of one, four channels of all taps before the next four. */
EW_OFTEN_RUN EW_APART static void ew_pairs_split(const ew_convolution *p, const uint8_t *x, const ew_pair_at *at,
                                                 int32_t *to, int32_t pixels)
{
    const int32_t jump = 2 * ew_split_jump(p);
    const uint8_t pad = (uint8_t)p->zero, padding[4] = {pad, pad, pad, pad}, none[4] = {0, 0, 0, 0};
    const ew_pair_at *const other = pixels > 1 ? at + 1 : at;
    for (int32_t i = 0, down = 0; i < p->kernel_h; i++, down += p->dilation_h) {
        const uint8_t *const one = ew_pairs_line(p, x, at->top + down), *const two = ew_pairs_line(p, x, other->top + down);
        for (int32_t j = 0, right = 0; j < p->kernel_w; j++, right += p->dilation_w, to += 8) {
            const uint8_t *a = ew_pairs_tap(p, one, at->left + right), *b = ew_pairs_tap(p, two, other->left + right);
            const int32_t on_a = a ? 4 : 0, on_b = b && pixels > 1 ? 4 : 0;
            int32_t *put = to;
            a = a ? a : padding;
            b = pixels == 1 ? none : b ? b : padding;
            for (int32_t k = p->depth; k > 0; k -= 4, a += on_a, b += on_b, put += jump) {
                put[0] = (int8_t)a[0] + (int8_t)b[0] * 65536;
                put[2] = (int8_t)a[1] + (int8_t)b[1] * 65536;
                put[4] = (int8_t)a[2] + (int8_t)b[2] * 65536;
                put[6] = (int8_t)a[3] + (int8_t)b[3] * 65536;
            }
        }
    }
}
#endif

/* What the windows of two pixels cover, or of one. */
static void ew_pairs_gather(const ew_convolution *p, const uint8_t *x, const ew_pair_at *at, int32_t *to, int32_t pixels)
{
#ifdef EW_HAS_SPLIT
    if (p->is_split) {
        ew_pairs_split(p, x, at, to, pixels);
        return;
    }
#endif
    const uint8_t *const a = ew_pairs_run(p, x, &at[0]);
    const uint8_t *const b = pixels == 1 ? NULL : ew_pairs_run(p, x, &at[1]);
    if (a && b) {
        if (p->x.rows)
            ew_pairs_join_circular(p, a, b, at, to);
        else
            ew_pairs_join(p, a, b, p->kernel_h, to);
        return;
    }
    ew_pairs_collect(p, x, at[0].top, at[0].left, to, 1, 0);
    if (pixels > 1)
        ew_pairs_collect(p, x, at[1].top, at[1].left, to, 65536, -1);
}

void ew_portable_pairs(const ew_convolution *p, const uint8_t *x, uint8_t *y, const ew_part *part, int32_t *columns)
{
    const int32_t step = p->is_backward ? -1 : 1;
    int32_t row = p->is_backward ? part->bottom - 1 : part->top;
    int32_t column = p->is_backward ? part->right - 1 : part->left;
    int32_t *const last = columns + 2 * p->products.depth - 2; /* gathered only where depth is even */
    int32_t count = ew_max(part->bottom - part->top, 0) * ew_max(part->right - part->left, 0);
    ew_pair_at next = {0, 0, 0};
    uint8_t *line = NULL; /* of the row of outputs that `next` belongs to */
    last[0] = last[1] = 0;
    while (count > 0) {
        const int32_t pixels = count < 3 ? 1 : 4; /* of four, the last may be computed twice */
        uint8_t *to[4];
        ew_pair_at at[4];
        for (int32_t i = 0; i < pixels; i++, count--) {
            if (!line) {
                next.top = row * p->stride_h - p->pad_h;
                next.line = ew_row(&p->x, next.top);
                line = y + ew_row(&p->y, row);
            }
            at[i] = next;
            at[i].left = column * p->stride_w - p->pad_w;
            to[i] = line + column * p->y.pixel;
            if (count == 1 && i < pixels - 1)
                continue;
            column += step;
            if (column < part->left || column >= part->right) {
                column = p->is_backward ? part->right - 1 : part->left;
                row += step;
                line = NULL;
            }
        }
        ew_pairs_gather(p, x, at, columns, pixels);
        if (pixels == 4)
            ew_pairs_gather(p, x, at + 2, columns + 1, 2);
        ew_pairs_pixels(&p->products, columns, to, pixels);
    }
}
