#include "simd_lrn.h"

EW_INLINE ew_vf ew_simd_lrn_some(const ew_simd_lrn *lrn, ew_vf x, ew_vf squares)
{
    const ew_vf base = ew_vf_add(ew_vf_all(lrn->bias), ew_vf_mul(ew_vf_all(lrn->scale), squares));
    const ew_vf root = ew_vf_sqrt(base);
    return ew_vf_div(x, ew_vf_mul(root, ew_vf_sqrt(root)));
}

/* Channels c.. at an end of the pixel, where some have fewer neighbours. */
static void ew_simd_lrn_edge(const ew_simd_lrn *lrn, const float *x, float *y, int32_t c, int32_t n)
{
    float squares[EW_LANES] = {0.0f};
    for (int32_t i = 0; i < n; i++)
        for (int32_t k = ew_max(c + i - lrn->before, 0); k < ew_min(c + i + lrn->after + 1, lrn->channels); k++)
            squares[i] += x[k] * x[k];
    ew_vf_store_some(y + c, ew_simd_lrn_some(lrn, ew_vf_load_some(x + c, n), ew_vf_load(squares)), n);
}

static void ew_simd_lrn_pixel(const ew_simd_lrn *lrn, const float *x, float *y)
{
    for (int32_t c = 0; c < lrn->channels; c += EW_LANES) {
        if (c < lrn->before || c + EW_LANES + lrn->after > lrn->channels) {
            ew_simd_lrn_edge(lrn, x, y, c, ew_min(EW_LANES, lrn->channels - c));
        } else {
            ew_vf squares = ew_vf_all(0.0f);
            for (int32_t k = c - lrn->before; k <= c + lrn->after; k++) {
                const ew_vf v = ew_vf_load(x + k);
                squares = ew_vf_add(squares, ew_vf_mul(v, v));
            }
            ew_vf_store(y + c, ew_simd_lrn_some(lrn, ew_vf_load(x + c), squares));
        }
    }
}

void ew_simd_lrn_run(const ew_simd_lrn *lrn, const float *x, float *y, ew_part part)
{
    const int32_t width = part.right - part.left, pixels = (part.bottom - part.top) * width;
    for (int32_t n = 0; n < pixels; n++) {
        const int32_t at = lrn->is_backward ? pixels - 1 - n : n;
        const int32_t i = part.top + at / width, j = part.left + at % width;
        ew_simd_lrn_pixel(
            lrn, x + ew_row(&lrn->in, i) + j * lrn->in.pixel, y + ew_row(&lrn->out, i) + j * lrn->out.pixel);
    }
}
