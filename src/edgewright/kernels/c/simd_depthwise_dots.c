#include "simd_depthwise_dots.h"

#if EW_HAS_DOTS
/* Bytes, or pairs of them, of two vectors in turns: the lower halves, or the upper ones. */
#if EW_HAS_PANELS
EW_INLINE ew_sixteen ew_zip_low(ew_sixteen a, ew_sixteen b) { return (ew_sixteen)vzip1q_u8((uint8x16_t)a, (uint8x16_t)b); }
EW_INLINE ew_sixteen ew_zip_high(ew_sixteen a, ew_sixteen b) { return (ew_sixteen)vzip2q_u8((uint8x16_t)a, (uint8x16_t)b); }
EW_INLINE ew_sixteen ew_zip_low_pairs(ew_sixteen a, ew_sixteen b) { return (ew_sixteen)vzip1q_u16((uint16x8_t)a, (uint16x8_t)b); }
EW_INLINE ew_sixteen ew_zip_high_pairs(ew_sixteen a, ew_sixteen b) { return (ew_sixteen)vzip2q_u16((uint16x8_t)a, (uint16x8_t)b); }
#else
EW_INLINE ew_sixteen ew_zip_low(ew_sixteen a, ew_sixteen b) { return (ew_sixteen)_mm_unpacklo_epi8((__m128i)a, (__m128i)b); }
EW_INLINE ew_sixteen ew_zip_high(ew_sixteen a, ew_sixteen b) { return (ew_sixteen)_mm_unpackhi_epi8((__m128i)a, (__m128i)b); }
EW_INLINE ew_sixteen ew_zip_low_pairs(ew_sixteen a, ew_sixteen b) { return (ew_sixteen)_mm_unpacklo_epi16((__m128i)a, (__m128i)b); }
EW_INLINE ew_sixteen ew_zip_high_pairs(ew_sixteen a, ew_sixteen b) { return (ew_sixteen)_mm_unpackhi_epi16((__m128i)a, (__m128i)b); }
#endif

#define EW_DOTS_PANEL (4 * EW_PANEL) /* bytes of a panel's channels, four rows of a column, or four taps */
#define EW_DOTS_SLACK 16 /* bytes that are read behind the last row */

/* The memory at hand, and what is in it for the channels at hand. */
typedef struct {
    int32_t fours; /* of rows, the last filled up */
    int32_t count; /* rows that are kept: row i lies at i modulo `count` */
    int32_t columns, left; /* of each, and the first one's place in the image */
    int32_t channels, channel; /* how many, and the first */
#if EW_HAS_PANELS
    int32_t kind; /* of their endings */
#endif
    uint8_t *rows;
    int8_t *across; /* [fours][columns][EW_PANEL][4] */
    int8_t *weights; /* [panels][fours][kernel_x][EW_PANEL][4], and where sums start, int32 [EW_PANEL], behind each panel's */
} ew_dots_kept;

static int32_t ew_dots_weight_bytes(const ew_simd_windows *w, const ew_dots_kept *kept)
{
    return (kept->fours * w->kernel_x + 1) * EW_DOTS_PANEL;
}

/* The bytes of four vectors side by side, one of each, for a panel of channels or half of one. */
EW_INLINE void ew_dots_put_across(int8_t *to, ew_sixteen a, ew_sixteen b, ew_sixteen c, ew_sixteen d, int32_t is_half)
{
    const ew_sixteen p = ew_zip_low(a, b), q = ew_zip_low(c, d);
    ew_sixteen_store(to, ew_zip_low_pairs(p, q));
    ew_sixteen_store(to + 16, ew_zip_high_pairs(p, q));
    if (!is_half) {
        const ew_sixteen r = ew_zip_high(a, b), s = ew_zip_high(c, d);
        ew_sixteen_store(to + 32, ew_zip_low_pairs(r, s));
        ew_sixteen_store(to + 48, ew_zip_high_pairs(r, s));
    }
}

/* Weights four taps of a column at a time, and the start of sums: the bias less what the input's bytes are too large for. */
static void ew_dots_prepare(const ew_simd_depthwise8 *conv, const ew_dots_kept *kept)
{
    const ew_simd_windows *const w = &conv->windows;
    const int32_t panels = (w->channels + EW_PANEL - 1) / EW_PANEL * EW_PANEL;
    const int32_t surplus = ew_dot_surplus(conv->is_signed, conv->zero);
    int8_t *to = kept->weights;
    for (int32_t c = 0; c < kept->channels; c += EW_PANEL) {
        int32_t start[EW_PANEL];
        memcpy(start, conv->bias + kept->channel + c, sizeof start);
        for (int32_t g = 0; g < kept->fours; g++)
            for (int32_t kx = 0; kx < w->kernel_x; kx++, to += EW_DOTS_PANEL) {
                uint8_t taps[4][EW_PANEL] = {{0}};
                for (int32_t k = 0; k < ew_min(4, w->kernel_y - 4 * g); k++) {
                    const float *const from = w->weights + ((4 * g + k) * w->kernel_x + kx) * panels + kept->channel + c;
                    for (int32_t i = 0; i < EW_PANEL; i += EW_LANES) {
                        const ew_vi v = ew_vi_nearest(ew_vf_load(from + i));
                        ew_vi_store_bytes(taps[k] + i, v);
                        ew_vi_store(start + i, ew_vi_sub(ew_vi_load(start + i), ew_vi_times(v, surplus)));
                    }
                }
                ew_dots_put_across(
                    to, ew_sixteen_load(taps[0]), ew_sixteen_load(taps[1]), ew_sixteen_load(taps[2]), ew_sixteen_load(taps[3]),
                    0);
            }
        memcpy(to, start, sizeof start);
        to += EW_DOTS_PANEL;
    }
}

/* Four rows across. */
EW_INLINE void ew_dots_lay_across(const uint8_t *const *rows, int32_t columns, int32_t step, int32_t is_half, int8_t *to)
{
    const int8_t *r0 = (const int8_t *)rows[0], *r1 = (const int8_t *)rows[1];
    const int8_t *r2 = (const int8_t *)rows[2], *r3 = (const int8_t *)rows[3];
    for (int32_t j = 0; j < columns; j++, to += EW_DOTS_PANEL, r0 += step, r1 += step, r2 += step, r3 += step)
        ew_dots_put_across(
            to, ew_sixteen_load(r0), ew_sixteen_load(r1), ew_sixteen_load(r2), ew_sixteen_load(r3), is_half);
}

#if EW_HAS_PANELS
#define EW_DOTS_ADD(sum, i) sum = vdotq_s32(sum, vld1q_s8(x + 16 * (i)), vld1q_s8(v + 16 * (i)));

/* A row of outputs for n channels of a panel. */
static void ew_dots_row(
    const ew_simd_windows *w, const ew_dots_kept *kept, const int8_t *weights, const ew_panel_ending *ending, int32_t count,
    uint8_t *y, int32_t n)
{
    const int32_t fours = kept->fours, kernel_x = w->kernel_x, kind = ending->kind;
    const int32_t *const start = (const int32_t *)(const void *)(weights + fours * kernel_x * EW_DOTS_PANEL);
    const int32_t next = w->dilation_x * EW_DOTS_PANEL, stride = w->stride_x * EW_DOTS_PANEL;
    const int8_t *from = kept->across;
    for (int32_t j = 0; j < count; j++, from += stride, y += w->out.pixel) {
        int32x4_t a = vld1q_s32(start), b = vld1q_s32(start + 4), c = vld1q_s32(start + 8), d = vld1q_s32(start + 12);
        const int8_t *v = weights;
        for (int32_t g = 0; g < fours; g++) {
            const int8_t *x = from + (size_t)g * (size_t)kept->columns * EW_DOTS_PANEL;
            for (int32_t kx = 0; kx < kernel_x; kx++, x += next, v += EW_DOTS_PANEL) {
                EW_DOTS_ADD(a, 0)
                EW_DOTS_ADD(b, 1)
                if (n > 8) {
                    EW_DOTS_ADD(c, 2)
                    EW_DOTS_ADD(d, 3)
                }
            }
        }
        ew_panel_put(y, n > 8 ? ew_panel_bytes(ending, kind, a, b, c, d) : ew_panel_half(ending, kind, a, b), n);
    }
}

#define EW_THREE_WEIGHTS(i, k) const int8x16_t v##i = vld1q_s8(weights + (k) * EW_DOTS_PANEL + 16 * ((i) % 4));
#define EW_THREE_ADD(sum, i, k) sum = vdotq_s32(sum, vld1q_s8(from + (k) * next + 16 * ((i) % 4)), v##i);

/* The same for windows of up to four rows and three columns: their weights are kept in registers. */
EW_INLINE void ew_dots_row_of_threes(
    const ew_simd_windows *w, const ew_dots_kept *kept, const int8_t *weights, const ew_panel_ending *ending, int32_t kind,
    int32_t count, uint8_t *y, int32_t n)
{
    const int32_t *const start = (const int32_t *)(const void *)(weights + 3 * EW_DOTS_PANEL);
    const int32_t next = w->dilation_x * EW_DOTS_PANEL, stride = w->stride_x * EW_DOTS_PANEL, pixel = w->out.pixel;
    const int8_t *from = kept->across;
    EW_THREE_WEIGHTS(0, 0)
    EW_THREE_WEIGHTS(1, 0)
    EW_THREE_WEIGHTS(2, 0)
    EW_THREE_WEIGHTS(3, 0)
    EW_THREE_WEIGHTS(4, 1)
    EW_THREE_WEIGHTS(5, 1)
    EW_THREE_WEIGHTS(6, 1)
    EW_THREE_WEIGHTS(7, 1)
    EW_THREE_WEIGHTS(8, 2)
    EW_THREE_WEIGHTS(9, 2)
    EW_THREE_WEIGHTS(10, 2)
    EW_THREE_WEIGHTS(11, 2)
    for (int32_t j = 0; j < count; j++, from += stride, y += pixel) {
        int32x4_t a = vld1q_s32(start), b = vld1q_s32(start + 4), c = vld1q_s32(start + 8), d = vld1q_s32(start + 12);
        EW_THREE_ADD(a, 0, 0)
        EW_THREE_ADD(b, 1, 0)
        EW_THREE_ADD(a, 4, 1)
        EW_THREE_ADD(b, 5, 1)
        EW_THREE_ADD(a, 8, 2)
        EW_THREE_ADD(b, 9, 2)
        if (n > 8) {
            EW_THREE_ADD(c, 2, 0)
            EW_THREE_ADD(d, 3, 0)
            EW_THREE_ADD(c, 6, 1)
            EW_THREE_ADD(d, 7, 1)
            EW_THREE_ADD(c, 10, 2)
            EW_THREE_ADD(d, 11, 2)
        }
        ew_panel_put(y, n > 8 ? ew_panel_bytes(ending, kind, a, b, c, d) : ew_panel_half(ending, kind, a, b), n);
    }
}

/* A row of outputs for n channels from `channel` on, whose weights these are. */
static void ew_dots_any_row(
    const ew_simd_depthwise8 *conv, const ew_dots_kept *kept, int32_t channel, const int8_t *weights, int32_t count,
    uint8_t *y, int32_t n)
{
    const ew_simd_windows *const w = &conv->windows;
    const ew_panel_ending ending = ew_panel_prepared(&conv->finish, kept->kind, channel); /* in registers */
    const int32_t is_three = kept->fours == 1 && w->kernel_x == 3;
    if (is_three && n >= EW_PANEL && ending.kind == EW_PANEL_NO_TIES)
        ew_dots_row_of_threes(w, kept, weights, &ending, EW_PANEL_NO_TIES, count, y, EW_PANEL);
    else if (is_three && n >= EW_PANEL && ending.kind == EW_PANEL_TIES)
        ew_dots_row_of_threes(w, kept, weights, &ending, EW_PANEL_TIES, count, y, EW_PANEL);
    else if (is_three && n == 8 && ending.kind == EW_PANEL_NO_TIES)
        ew_dots_row_of_threes(w, kept, weights, &ending, EW_PANEL_NO_TIES, count, y, 8);
    else
        ew_dots_row(w, kept, weights, &ending, count, y, n);
}
#else
/* A row of outputs for a vector of channels, n of them in use, with the first `from` and `weights`. */
EW_INLINE void ew_dots_row(
    const ew_simd_windows *w, const ew_dots_kept *kept, const int8_t *weights, const int8_t *across, ew_vi start,
    const ew_simd_ending *ending, int32_t kind, int32_t count, uint8_t *y, int32_t n)
{
    const int32_t next = w->dilation_x * EW_DOTS_PANEL, stride = w->stride_x * EW_DOTS_PANEL, pixel = w->out.pixel;
    const uint8_t *from = (const uint8_t *)across;
    if (kept->fours == 1 && w->kernel_x == 3) { /* weights are kept in registers */
        const ew_dot_w w0 = ew_dot_weights(weights), w1 = ew_dot_weights(weights + EW_DOTS_PANEL);
        const ew_dot_w w2 = ew_dot_weights(weights + 2 * EW_DOTS_PANEL);
        for (int32_t j = 0; j < count; j++, from += stride, y += pixel) {
            ew_vi sum = ew_dot(start, ew_dot_bytes(from), w0);
            sum = ew_dot(sum, ew_dot_bytes(from + next), w1);
            sum = ew_dot(sum, ew_dot_bytes(from + 2 * next), w2);
            ew_simd_put(y, ew_simd_stored_as(ending, kind, sum), n);
        }
        return;
    }
    for (int32_t j = 0; j < count; j++, from += stride, y += pixel) {
        const int8_t *v = weights;
        ew_vi sum = start;
        for (int32_t g = 0; g < kept->fours; g++) {
            const uint8_t *x = from + (size_t)g * (size_t)kept->columns * EW_DOTS_PANEL;
            for (int32_t kx = 0; kx < w->kernel_x; kx++, x += next, v += EW_DOTS_PANEL)
                sum = ew_dot(sum, ew_dot_bytes(x), ew_dot_weights(v));
        }
        ew_simd_put(y, ew_simd_stored_as(ending, kind, sum), n);
    }
}

/* A row of outputs for n channels from `channel` on, whose weights these are. */
static void ew_dots_any_row(
    const ew_simd_depthwise8 *conv, const ew_dots_kept *kept, int32_t channel, const int8_t *weights, int32_t count,
    uint8_t *y, int32_t n)
{
    const ew_simd_windows *const w = &conv->windows;
    for (int32_t c = 0; c < n; c += EW_LANES) {
        const ew_simd_ending ending = ew_simd_prepared(&conv->finish, channel + c); /* in registers */
        const int8_t *const v = weights + 4 * c, *const across = kept->across + 4 * c;
        const ew_vi start = ew_vi_load((const int32_t *)(const void *)(v + kept->fours * w->kernel_x * EW_DOTS_PANEL));
        if (ending.kind == EW_ENDING_UP && n - c >= EW_LANES)
            ew_dots_row(w, kept, v, across, start, &ending, EW_ENDING_UP, count, y + c, EW_LANES);
        else if (ending.kind == EW_ENDING_AWAY && n - c >= EW_LANES)
            ew_dots_row(w, kept, v, across, start, &ending, EW_ENDING_AWAY, count, y + c, EW_LANES);
        else
            ew_dots_row(w, kept, v, across, start, &ending, ending.kind, count, y + c, n - c);
    }
}
#endif

/* All channels at hand of a row of outputs, whose windows begin at row `top` of the image. */
static void ew_dots_channels(
    const ew_simd_depthwise8 *conv, const ew_dots_kept *kept, int32_t top, int32_t count, uint8_t *y)
{
    const ew_simd_windows *const w = &conv->windows;
    const int8_t *weights = kept->weights;
    for (int32_t c = 0; c < kept->channels; c += EW_PANEL, weights += ew_dots_weight_bytes(w, kept)) {
        const int32_t n = ew_min(EW_PANEL, kept->channels - c);
        for (int32_t g = 0; g < kept->fours; g++) {
            int8_t *const to = kept->across + (size_t)g * (size_t)kept->columns * EW_DOTS_PANEL;
            const uint8_t *rows[4];
            for (int32_t k = 0; k < 4; k++) { /* behind the last row, any that meets weights that are zero */
                const int32_t i = top + ew_min(4 * g + k, w->kernel_y - 1) * w->dilation_y, slot = i % kept->count;
                rows[k] = kept->rows + (slot < 0 ? slot + kept->count : slot) * kept->columns * kept->channels + c;
            }
            if (n > 8)
                ew_dots_lay_across(rows, kept->columns, kept->channels, 0, to);
            else
                ew_dots_lay_across(rows, kept->columns, kept->channels, 1, to);
        }
        ew_dots_any_row(conv, kept, kept->channel + c, weights, count, y + c, n);
    }
}

int32_t ew_dots_run(const ew_simd_depthwise8 *conv, const uint8_t *x, uint8_t *y, ew_part part, uint8_t *room)
{
    const ew_simd_windows *const w = &conv->windows;
    const int32_t count = part.right - part.left, panels = w->group / EW_PANEL;
    ew_dots_kept kept;
    int64_t row, across, weights;
    kept.fours = (w->kernel_y + 3) / 4;
    kept.count = (w->kernel_y - 1) * w->dilation_y + 1;
    kept.columns = (count - 1) * w->stride_x + (w->kernel_x - 1) * w->dilation_x + 1;
    kept.left = part.left * w->stride_x - w->left;
    row = (int64_t)kept.count * kept.columns * w->group;
    across = (int64_t)kept.fours * kept.columns * EW_DOTS_PANEL;
    weights = (int64_t)panels * ew_dots_weight_bytes(w, &kept);
    if (w->group <= 0 || count <= 0 || row + EW_DOTS_SLACK + across + weights > (int64_t)sizeof(float) * row)
        return 0;
    kept.across = (int8_t *)room;
    kept.weights = (int8_t *)room + across;
    kept.rows = room + across + weights;
#if EW_HAS_PANELS
    kept.kind = ew_panel_kind(&conv->finish, w->channels);
#endif
    for (int32_t channel = 0; channel < w->channels; channel += w->group) {
        int32_t low = 0, high = 0; /* rows that are there */
        kept.channel = channel;
        kept.channels = ew_min(w->group, w->channels - channel);
        ew_dots_prepare(conv, &kept);
        for (int32_t n = 0; n < part.bottom - part.top; n++) {
            const int32_t at = w->is_backward ? part.bottom - 1 - n : part.top + n;
            const int32_t top = at * w->stride_y - w->top, bottom = top + kept.count;
            const int32_t is_new = n == 0 || top >= high || bottom <= low;
            for (int32_t i = top; i < bottom; i++)
                if (is_new || i < low || i >= high) {
                    const int32_t slot = i % kept.count;
                    ew_panel_line(
                        &w->in, w->height, w->width, kept.channels, x + channel, i, kept.left, kept.columns, conv->is_signed,
                        conv->zero,
                        kept.rows + (slot < 0 ? slot + kept.count : slot) * kept.columns * kept.channels);
                }
            low = top;
            high = bottom;
            ew_dots_channels(
                conv, &kept, top, count, y + ew_row(&w->out, at) + part.left * w->out.pixel + channel);
        }
    }
    return 1;
}
#endif
