#include "simd_depthwise.h"
#include "simd_depthwise_dots.h"

#define EW_SIMD_TAPS 32 /* most rows of a window */

/* The rows at hand: padded columns of one group of channels; row i lies at i modulo `count`. */
typedef struct {
    float *data;
    int32_t count, columns, step; /* rows, columns, and floats from column to column */
    int32_t left; /* the first column's place in the image */
    int32_t low, high; /* rows that are there, half-open */
} ew_simd_kept;

static float *ew_simd_kept_row(const ew_simd_kept *kept, int32_t i)
{
    const int32_t slot = i % kept->count;
    return kept->data + (slot < 0 ? slot + kept->count : slot) * kept->columns * kept->step;
}

/* n bytes as floats, and what else is in the last vector. */
EW_INLINE void ew_simd_widen(float *to, const uint8_t *from, int32_t n, uint8_t flip, int32_t zero)
{
    for (int32_t i = 0; i < n; i += EW_LANES)
        ew_vf_store(
            to + i, ew_vi_real(ew_vi_sub(ew_simd_get(from + i, ew_min(EW_LANES, n - i), flip), ew_vi_all(zero))));
}

/* Brings row i of the image: floats from `x`, or bytes from `x8`. */
EW_INLINE void ew_simd_keep_row(
    const ew_simd_windows *w, const ew_simd_kept *kept, int32_t i, int32_t channel, int32_t channels, const float *x,
    const uint8_t *x8, uint8_t flip, int32_t zero)
{
    float *const row = ew_simd_kept_row(kept, i);
    const int32_t first = ew_between(0, -kept->left, kept->columns);
    const int32_t last = ew_between(first, w->width - kept->left, kept->columns);
    if (i < 0 || i >= w->height) {
        memset(row, 0, (size_t)(kept->columns * kept->step) * sizeof *row);
        return;
    }
    memset(row, 0, (size_t)(first * kept->step) * sizeof *row);
    memset(row + last * kept->step, 0, (size_t)((kept->columns - last) * kept->step) * sizeof *row);
    for (int32_t j = first; j < last; j++) {
        float *const to = row + j * kept->step;
        const int32_t at = ew_row(&w->in, i) + (kept->left + j) * w->in.pixel + channel;
        if (x) {
            int32_t c = 0;
            for (; c + EW_LANES <= channels; c += EW_LANES)
                ew_vf_store(to + c, ew_vf_load(x + at + c));
            if (c < channels)
                ew_vf_store(to + c, ew_vf_load_some(x + at + c, channels - c));
        } else {
            ew_simd_widen(to, x8 + at, channels, flip, zero);
        }
    }
}

#define EW_WINDOW_1(X) X(0)
#define EW_WINDOW_4(X) EW_WINDOW_1(X) X(1) X(2) X(3)
#define EW_WINDOW_8(X) EW_WINDOW_4(X) X(4) X(5) X(6) X(7)
#define EW_WINDOW_DECLARE(i) ew_vf s##i = ew_vf_all(0.0f);
#define EW_WINDOW_STEP(i) s##i = ew_vf_fma(ew_vf_load(tap + (i) * next), weight, s##i);
#define EW_WINDOW_SOME(i) s##i = ew_vf_fma(ew_vf_load_some(tap + (i) * next, some), weight, s##i);
#define EW_WINDOW_STORE(i) ew_vf_store(sums + (i) * EW_LANES, s##i);

/* Sums of n windows side by side, one vector of channels, or `some` of them. */
#define EW_WINDOWS(n)                                                                                         \
    static void ew_simd_windows_##n(                                                                          \
        const ew_simd_windows *w, const float *const *rows, int32_t at, int32_t step, const float *weights,   \
        int32_t some, float *sums)                                                                            \
    {                                                                                                         \
        const int32_t next = w->stride_x * step, panel = (w->channels + EW_PANEL - 1) / EW_PANEL * EW_PANEL;  \
        EW_WINDOW_##n(EW_WINDOW_DECLARE)                                                                      \
        for (int32_t ky = 0; ky < w->kernel_y; ky++) {                                                        \
            const float *tap = rows[ky] + at;                                                                 \
            for (int32_t kx = 0; kx < w->kernel_x; kx++, tap += w->dilation_x * step, weights += panel) {     \
                const ew_vf weight = ew_vf_load(weights);                                                     \
                if (some == EW_LANES) {                                                                       \
                    EW_WINDOW_##n(EW_WINDOW_STEP)                                                             \
                } else {                                                                                      \
                    EW_WINDOW_##n(EW_WINDOW_SOME)                                                             \
                }                                                                                             \
            }                                                                                                 \
        }                                                                                                     \
        EW_WINDOW_##n(EW_WINDOW_STORE)                                                                        \
    }

EW_WINDOWS(1)
EW_WINDOWS(4)
EW_WINDOWS(8)

/* The same for 8 windows, or 4, or 1. */
EW_INLINE void ew_simd_windows_of(
    const ew_simd_windows *w, int32_t block, const float *const *rows, int32_t at, int32_t step, const float *weights,
    int32_t some, float *sums)
{
    if (block == 8)
        ew_simd_windows_8(w, rows, at, step, weights, some, sums);
    else if (block == 4)
        ew_simd_windows_4(w, rows, at, step, weights, some, sums);
    else
        ew_simd_windows_1(w, rows, at, step, weights, some, sums);
}

/* Stores the sums of `some` channels from `channel` on, to y or y8. */
EW_INLINE void ew_simd_window_end(
    ew_vf sum, int32_t channel, int32_t some, const ew_simd_depthwise *real, float *y, const ew_simd_depthwise8 *whole,
    const ew_simd_ending *ending, uint8_t *y8)
{
    if (real) {
        const ew_vf v = ew_vf_clamp(
            ew_vf_add(sum, ew_vf_load(real->bias + channel)), ew_vf_all(real->low), ew_vf_all(real->high));
        if (some == EW_LANES)
            ew_vf_store(y, v);
        else
            ew_vf_store_some(y, v, some);
    } else {
        const ew_vi total = ew_vi_add(ew_vi_nearest(sum), ew_vi_load(whole->bias + channel));
        ew_simd_put(y8, ew_simd_stored(ending, total), some);
    }
}

/* One row of outputs for the channels at hand. Where windows do not divide evenly, the last ones are done twice. */
EW_INLINE void ew_simd_window_row(
    const ew_simd_windows *w, const ew_simd_kept *kept, int32_t top, int32_t count, int32_t channel, int32_t channels,
    const ew_simd_depthwise *real, float *y, const ew_simd_depthwise8 *whole, uint8_t *y8)
{
    const int32_t block = count >= 8 ? 8 : count >= 4 ? 4 : 1;
    const float *rows[EW_SIMD_TAPS];
    float sums[8 * EW_LANES];
    for (int32_t ky = 0; ky < w->kernel_y; ky++)
        rows[ky] = ew_simd_kept_row(kept, top + ky * w->dilation_y);
    for (int32_t c = 0; c < channels; c += EW_LANES) {
        const int32_t some = ew_min(EW_LANES, channels - c);
        ew_simd_ending ending;
        if (whole)
            ending = ew_simd_prepared(&whole->finish, channel + c);
        for (int32_t done = 0; done < count; done += block) {
            const int32_t first = ew_min(done, count - block);
            const int32_t at = first * w->stride_x * kept->step + c;
            const float *const weights = w->weights + channel + c;
            ew_simd_windows_of(w, block, rows, at, kept->step, weights, EW_LANES, sums);
            for (int32_t n = 0; n < block; n++) {
                const int32_t to = (first + n) * w->out.pixel + channel + c;
                ew_simd_window_end(
                    ew_vf_load(sums + n * EW_LANES), channel + c, some, real, y ? y + to : NULL, whole, &ending,
                    y8 ? y8 + to : NULL);
            }
        }
    }
    if (real && real->kind)
        for (int32_t n = 0; n < count; n++)
            ew_simd_activate(y + n * w->out.pixel + channel, channels, real->kind, real->a, real->b);
}

/* Some channels of the window at (up, side), read where they lie. */
EW_INLINE ew_vf ew_simd_window_near(
    const ew_simd_windows *w, int32_t up, int32_t side, int32_t c, int32_t some, const float *x, const uint8_t *x8,
    uint8_t flip, int32_t zero)
{
    const int32_t panel = (w->channels + EW_PANEL - 1) / EW_PANEL * EW_PANEL;
    ew_vf sum = ew_vf_all(0.0f);
    for (int32_t ky = 0; ky < w->kernel_y; ky++) {
        const int32_t i = up + ky * w->dilation_y;
        if (i < 0 || i >= w->height)
            continue;
        for (int32_t kx = 0; kx < w->kernel_x; kx++) {
            const int32_t j = side + kx * w->dilation_x, at = ew_row(&w->in, i) + j * w->in.pixel + c;
            ew_vf v;
            if (j < 0 || j >= w->width)
                continue;
            if (x)
                v = some == EW_LANES ? ew_vf_load(x + at) : ew_vf_load_some(x + at, some);
            else
                v = ew_vi_real(ew_vi_sub(ew_simd_get(x8 + at, some, flip), ew_vi_all(zero)));
            sum = ew_vf_fma(v, ew_vf_load(w->weights + (ky * w->kernel_x + kx) * panel + c), sum);
        }
    }
    return sum;
}

/* All channels of one pixel, nothing kept. */
EW_INLINE void ew_simd_pixel_near(
    const ew_simd_windows *w, int32_t row, int32_t column, const ew_simd_depthwise *real, const float *x, float *y,
    const ew_simd_depthwise8 *whole, const uint8_t *x8, uint8_t *y8, uint8_t flip, int32_t zero)
{
    const int32_t to = ew_row(&w->out, row) + column * w->out.pixel;
    for (int32_t c = 0; c < w->channels; c += EW_LANES) {
        const int32_t some = ew_min(EW_LANES, w->channels - c);
        const ew_vf sum = ew_simd_window_near(
            w, row * w->stride_y - w->top, column * w->stride_x - w->left, c, some, x, x8, flip, zero);
        ew_simd_ending ending;
        if (whole)
            ending = ew_simd_prepared(&whole->finish, c);
        ew_simd_window_end(sum, c, some, real, y ? y + to + c : NULL, whole, &ending, y8 ? y8 + to + c : NULL);
    }
}

/* Columns first..last - 1 of a row of outputs, whose windows lie inside of the image. */
static void ew_simd_row_straight(
    const ew_simd_depthwise *real, const float *const *rows, int32_t first, int32_t last, float *y)
{
    const ew_simd_windows *const w = &real->windows;
    const int32_t block = last - first >= 8 ? 8 : last - first >= 4 ? 4 : 1;
    float sums[8 * EW_LANES];
    for (int32_t c = 0; c < w->channels; c += EW_LANES) {
        const int32_t some = ew_min(EW_LANES, w->channels - c);
        for (int32_t done = first; done < last; done += block) {
            const int32_t column = ew_min(done, last - block);
            const int32_t at = (column * w->stride_x - w->left) * w->in.pixel + c;
            ew_simd_windows_of(w, block, rows, at, w->in.pixel, w->weights + c, some, sums);
            for (int32_t n = 0; n < block; n++)
                ew_simd_window_end(
                    ew_vf_load(sums + n * EW_LANES), c, some, real, y + (column + n) * w->out.pixel + c, NULL, NULL,
                    NULL);
        }
    }
}

/* Row after row from where they lie. Windows that leave the image go one by one. */
static void ew_simd_slide_straight(const ew_simd_depthwise *real, ew_part part, const float *x, float *y)
{
    const ew_simd_windows *const w = &real->windows;
    const int32_t reach_x = (w->kernel_x - 1) * w->dilation_x, reach_y = (w->kernel_y - 1) * w->dilation_y;
    const float *rows[EW_SIMD_TAPS];
    for (int32_t row = part.top; row < part.bottom; row++) {
        const int32_t top = row * w->stride_y - w->top;
        float *const line = y + ew_row(&w->out, row);
        int32_t first = part.right, last = part.right; /* of the columns whose windows lie inside */
        if (top >= 0 && top + reach_y < w->height) {
            const int32_t end = w->width - reach_x + w->left; /* of their first taps */
            first = ew_between(part.left, (ew_max(w->left, 0) + w->stride_x - 1) / w->stride_x, part.right);
            last = ew_between(first, end > 0 ? (end + w->stride_x - 1) / w->stride_x : 0, part.right);
            for (int32_t ky = 0; ky < w->kernel_y; ky++)
                rows[ky] = x + ew_row(&w->in, top + ky * w->dilation_y);
            if (first < last)
                ew_simd_row_straight(real, rows, first, last, line);
        }
        for (int32_t column = part.left; column < part.right; column++) {
            if (column < first || column >= last)
                ew_simd_pixel_near(w, row, column, real, x, y, NULL, NULL, NULL, 0, 0);
            if (real->kind)
                ew_simd_activate(line + column * w->out.pixel, w->channels, real->kind, real->a, real->b);
        }
    }
}

/* Pixel after pixel, nothing kept. */
EW_INLINE void ew_simd_slide_near(
    const ew_simd_windows *w, ew_part part, const ew_simd_depthwise *real, const float *x, float *y,
    const ew_simd_depthwise8 *whole, const uint8_t *x8, uint8_t *y8, uint8_t flip, int32_t zero)
{
    const int32_t width = part.right - part.left, pixels = (part.bottom - part.top) * width;
    for (int32_t n = 0; n < pixels; n++) {
        const int32_t at = w->is_backward ? pixels - 1 - n : n;
        const int32_t row = part.top + at / width, column = part.left + at % width;
        ew_simd_pixel_near(w, row, column, real, x, y, whole, x8, y8, flip, zero);
        if (real && real->kind)
            ew_simd_activate(
                y + ew_row(&w->out, row) + column * w->out.pixel, w->channels, real->kind, real->a, real->b);
    }
}

/* Group after group of channels, row after row; of the two kinds of tensors one is NULL. */
EW_INLINE void ew_simd_slide(
    const ew_simd_windows *w, ew_part part, float *data, const ew_simd_depthwise *real, const float *x, float *y,
    const ew_simd_depthwise8 *whole, const uint8_t *x8, uint8_t *y8)
{
    const int32_t count = part.right - part.left, rows = part.bottom - part.top;
    const uint8_t flip = whole && whole->is_signed ? 0x80 : 0;
    const int32_t zero = whole ? whole->zero + (flip ? 128 : 0) : 0;
    ew_simd_kept kept = {data, 0, 0, 0, 0, 0, 0};
    kept.count = (w->kernel_y - 1) * w->dilation_y + 1;
    kept.columns = (count - 1) * w->stride_x + (w->kernel_x - 1) * w->dilation_x + 1;
    kept.step = w->group;
    kept.left = part.left * w->stride_x - w->left;
    if (count <= 0)
        return;
    if (real && w->group < 0) {
        ew_simd_slide_straight(real, part, x, y);
        return;
    }
    if (!w->group) {
        ew_simd_slide_near(w, part, real, x, y, whole, x8, y8, flip, zero);
        return;
    }
    for (int32_t channel = 0; channel < w->channels; channel += w->group) {
        const int32_t channels = ew_min(w->group, w->channels - channel);
        kept.low = kept.high = 0;
        for (int32_t n = 0; n < rows; n++) {
            const int32_t row = w->is_backward ? part.bottom - 1 - n : part.top + n;
            const int32_t top = row * w->stride_y - w->top, bottom = top + kept.count;
            const int32_t is_new = n == 0 || top >= kept.high || bottom <= kept.low;
            for (int32_t i = top; i < bottom; i++)
                if (is_new || i < kept.low || i >= kept.high)
                    ew_simd_keep_row(w, &kept, i, channel, channels, x, x8, flip, zero);
            kept.low = top;
            kept.high = bottom;
            ew_simd_window_row(
                w, &kept, top, count, channel, channels, real,
                y ? y + ew_row(&w->out, row) + part.left * w->out.pixel : NULL, whole,
                y8 ? y8 + ew_row(&w->out, row) + part.left * w->out.pixel : NULL);
        }
    }
}

void ew_simd_depthwise_run(const ew_simd_depthwise *conv, const float *x, float *y, ew_part part, float *rows)
{
    ew_simd_slide(&conv->windows, part, rows, conv, x, y, NULL, NULL, NULL);
}

void ew_simd_depthwise8_run(const ew_simd_depthwise8 *conv, const void *x, void *y, ew_part part, float *rows)
{
#if EW_HAS_DOTS
    if (ew_dots_run(conv, (const uint8_t *)x, (uint8_t *)y, part, (uint8_t *)rows))
        return;
#endif
    ew_simd_slide(&conv->windows, part, rows, NULL, NULL, NULL, conv, (const uint8_t *)x, (uint8_t *)y);
}
