#include "simd_pool.h"

/* The taps of a window that exist: its first row begins `line` elements behind x. */
typedef struct {
    int32_t line, rows, taps;
    int32_t down, tap; /* elements from row to row, and from tap to tap */
    int32_t last; /* where rows of a rolling buffer begin again; 0: nowhere */
} ew_simd_window;

EW_INLINE ew_vf ew_simd_with_tap(ew_vf result, ew_vf v, int32_t is_max)
{
    return is_max ? ew_vf_max(result, v) : ew_vf_add(result, v);
}

/* Of n channels: four whole vectors, whose taps are fetched side by side, or at most one. */
EW_INLINE void ew_simd_pool_some(
    const float *x, const ew_simd_window *window, int32_t is_max, ew_vf share, float *y, int32_t n)
{
    const ew_vf none = ew_vf_all(is_max ? -INFINITY : 0.0f);
    const int32_t count = n > EW_LANES ? 4 : 1;
    ew_vf result[4] = {none, none, none, none};
    for (int32_t i = 0, line = window->line; i < window->rows; i++, line += window->down) {
        if (window->last && line >= window->last)
            line -= window->last;
        const float *at = x + line;
        for (int32_t j = 0; j < window->taps; j++, at += window->tap) {
            result[0] = ew_simd_with_tap(result[0], n < EW_LANES ? ew_vf_load_some(at, n) : ew_vf_load(at), is_max);
            if (count > 1) {
                result[1] = ew_simd_with_tap(result[1], ew_vf_load(at + EW_LANES), is_max);
                result[2] = ew_simd_with_tap(result[2], ew_vf_load(at + 2 * EW_LANES), is_max);
                result[3] = ew_simd_with_tap(result[3], ew_vf_load(at + 3 * EW_LANES), is_max);
            }
        }
    }
    for (int32_t k = 0; k < count; k++) {
        const ew_vf v = is_max ? result[k] : ew_vf_div(result[k], share);
        if (n < EW_LANES)
            ew_vf_store_some(y, v, n);
        else
            ew_vf_store(y + k * EW_LANES, v);
    }
}

EW_INLINE void ew_simd_pool_channels(
    const float *x, const ew_simd_window *window, int32_t is_max, ew_vf share, float *y, int32_t channels)
{
    int32_t c = 0;
    for (; c + 4 * EW_LANES <= channels; c += 4 * EW_LANES)
        ew_simd_pool_some(x + c, window, is_max, share, y + c, 4 * EW_LANES);
    for (; c + EW_LANES <= channels; c += EW_LANES)
        ew_simd_pool_some(x + c, window, is_max, share, y + c, EW_LANES);
    if (c < channels)
        ew_simd_pool_some(x + c, window, is_max, share, y + c, channels - c);
}

/* Of a row of the output, whose windows begin at row `up` of the input. */
static void ew_simd_pool_row(const ew_simd_pool *pool, const float *x, float *y, int32_t up, int32_t left, int32_t right)
{
    const ew_part *const counted = &pool->counted;
    int32_t ky, kx, unused;
    const int32_t rows = ew_simd_inside(up, pool->dilation_y, pool->kernel_y, 0, pool->height, &ky);
    const int32_t lines =
        ew_simd_inside(up, pool->dilation_y, pool->kernel_y, counted->top, counted->bottom, &unused);
    ew_simd_window window = {ew_row(&pool->in, up + ky * pool->dilation_y), rows, 0, pool->dilation_y * pool->in.row,
                             pool->dilation_x * pool->in.pixel, pool->in.rows * pool->in.row};
    for (int32_t n = left; n < right; n++) {
        const int32_t j = pool->is_backward ? left + right - 1 - n : n, side = j * pool->stride_x - pool->left;
        float *const to = y + j * pool->out.pixel;
        window.taps = ew_simd_inside(side, pool->dilation_x, pool->kernel_x, 0, pool->width, &kx);
        const float *const from = x + (side + kx * pool->dilation_x) * pool->in.pixel;
        if (pool->is_max) {
            ew_simd_pool_channels(from, &window, 1, ew_vf_all(1.0f), to, pool->channels);
        } else {
            const int32_t columns =
                ew_simd_inside(side, pool->dilation_x, pool->kernel_x, counted->left, counted->right, &unused);
            ew_simd_pool_channels(
                from, &window, 0, ew_vf_all((float)ew_max(lines * columns, 1)), to, pool->channels);
        }
        if (pool->kind)
            ew_simd_activate(to, pool->channels, pool->kind, pool->a, pool->b);
    }
}

void ew_simd_pool_run(const ew_simd_pool *pool, const float *x, float *y, ew_part part)
{
    for (int32_t n = part.top; n < part.bottom; n++) {
        const int32_t i = pool->is_backward ? part.top + part.bottom - 1 - n : n;
        ew_simd_pool_row(
            pool, x, y + ew_row(&pool->out, i), i * pool->stride_y - pool->top, part.left, part.right);
    }
}
