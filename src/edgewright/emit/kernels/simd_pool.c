#include "simd_pool.h"

/* Taps k with low <= at + k * step < high, from `first` on; how many there are. */
static int32_t ew_simd_inside(int32_t at, int32_t step, int32_t taps, int32_t low, int32_t high, int32_t *first)
{
    int32_t begin = 0, end = taps;
    while (begin < taps && at + begin * step < low)
        begin++;
    while (end > begin && at + (end - 1) * step >= high)
        end--;
    *first = begin;
    return end - begin;
}

EW_INLINE ew_vf ew_simd_pooled(
    const float *x, int32_t rows, int32_t row, int32_t taps, int32_t tap, int32_t is_max, int32_t n)
{
    ew_vf result = ew_vf_all(is_max ? -INFINITY : 0.0f);
    for (int32_t i = 0; i < rows; i++, x += row) {
        const float *at = x;
        for (int32_t j = 0; j < taps; j++, at += tap) {
            const ew_vf v = n == EW_LANES ? ew_vf_load(at) : ew_vf_load_some(at, n);
            result = is_max ? ew_vf_max(result, v) : ew_vf_add(result, v);
        }
    }
    return result;
}

static void ew_simd_pool_pixel(const ew_simd_pool *pool, const float *x, float *y, int32_t i, int32_t j)
{
    const int32_t up = i * pool->stride_y - pool->top, side = j * pool->stride_x - pool->left;
    const ew_part *const counted = &pool->counted;
    int32_t ky, kx, unused;
    const int32_t rows = ew_simd_inside(up, pool->dilation_y, pool->kernel_y, 0, pool->height, &ky);
    const int32_t taps = ew_simd_inside(side, pool->dilation_x, pool->kernel_x, 0, pool->width, &kx);
    const int32_t count =
        ew_simd_inside(up, pool->dilation_y, pool->kernel_y, counted->top, counted->bottom, &unused) *
        ew_simd_inside(side, pool->dilation_x, pool->kernel_x, counted->left, counted->right, &unused);
    const ew_vf share = ew_vf_all((float)ew_max(count, 1));
    const int32_t row = pool->dilation_y * pool->in.row, tap = pool->dilation_x * pool->in.pixel;
    const float *const corner =
        x + (up + ky * pool->dilation_y) * pool->in.row + (side + kx * pool->dilation_x) * pool->in.pixel;
    for (int32_t c = 0; c < pool->channels; c += EW_LANES) {
        const int32_t n = ew_min(EW_LANES, pool->channels - c);
        ew_vf v;
        if (pool->is_max)
            v = n == EW_LANES ? ew_simd_pooled(corner + c, rows, row, taps, tap, 1, EW_LANES)
                              : ew_simd_pooled(corner + c, rows, row, taps, tap, 1, n);
        else
            v = ew_vf_div(n == EW_LANES ? ew_simd_pooled(corner + c, rows, row, taps, tap, 0, EW_LANES)
                                        : ew_simd_pooled(corner + c, rows, row, taps, tap, 0, n), share);
        if (n == EW_LANES)
            ew_vf_store(y + c, v);
        else
            ew_vf_store_some(y + c, v, n);
    }
    ew_simd_activate(y, pool->channels, pool->kind, pool->a, pool->b);
}

void ew_simd_pool_run(const ew_simd_pool *pool, const float *x, float *y, ew_part part)
{
    const int32_t width = part.right - part.left, pixels = (part.bottom - part.top) * width;
    for (int32_t n = 0; n < pixels; n++) {
        const int32_t at = pool->is_backward ? pixels - 1 - n : n;
        const int32_t i = part.top + at / width, j = part.left + at % width;
        ew_simd_pool_pixel(pool, x, y + ew_row(&pool->out, i) + j * pool->out.pixel, i, j);
    }
}
