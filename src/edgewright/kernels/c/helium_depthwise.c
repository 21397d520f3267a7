#include "helium_depthwise.h"

/* Where each tap of a window finds its pixel; NULL in the padding. */
static void ew_helium_taps(const ew_convolution *p, const int8_t *x, int32_t row, int32_t column, const int8_t **taps)
{
    int32_t y = row * p->stride_h - p->pad_h;
    for (int32_t i = 0; i < p->kernel_h; i++, y += p->dilation_h) {
        const int8_t *const line = y < 0 || y >= p->height ? NULL : x + ew_row(&p->x, y);
        int32_t at = column * p->stride_w - p->pad_w;
        for (int32_t j = 0; j < p->kernel_w; j++, at += p->dilation_w)
            *taps++ = !line || at < 0 || at >= p->width ? NULL : line + at * p->x.pixel;
    }
}

/* `quads` times four channels of a pixel from `channel` on; of the last four `count` exist. */
EW_INLINE void ew_helium_channels(const ew_convolution *p, const ew_products *products, const int8_t *const *taps,
                                  int32_t channel, int32_t quads, int32_t count, uint8_t *y)
{
    const int8_t *w = products->weights + channel;
#ifdef EW_HAS_VIEWS
    const int32_t channels = products->pitch; /* of a tap's weights, of which these are the first */
#else
    const int32_t channels = products->channels;
#endif
    const int32_t depth = products->depth, zero = p->zero;
    ew_quad a = ew_quad_bias(products, channel, count), b = ew_quad_zero(), c = b, d = b;
    if (quads > 1)
        b = ew_quad_bias(products, channel + 4, 4);
    if (quads > 2) {
        c = ew_quad_bias(products, channel + 8, 4);
        d = ew_quad_bias(products, channel + 12, 4);
    }
    for (int32_t tap = 0; tap < depth; tap++, w += channels) {
        if (taps[tap]) {
            const int8_t *const x = taps[tap] + channel;
            a = ew_quad_lanes(a, x, w, count);
            if (quads > 1)
                b = ew_quad_lanes(b, x + 4, w + 4, 4);
            if (quads > 2) {
                c = ew_quad_lanes(c, x + 8, w + 8, 4);
                d = ew_quad_lanes(d, x + 12, w + 12, 4);
            }
        } else {
            a = ew_quad_scaled(a, zero, w, count);
            if (quads > 1)
                b = ew_quad_scaled(b, zero, w + 4, 4);
            if (quads > 2) {
                c = ew_quad_scaled(c, zero, w + 8, 4);
                d = ew_quad_scaled(d, zero, w + 12, 4);
            }
        }
    }
    ew_quad_store(products, channel, a, count, y);
    if (quads > 1)
        ew_quad_store(products, channel + 4, b, 4, y);
    if (quads > 2) {
        ew_quad_store(products, channel + 8, c, 4, y);
        ew_quad_store(products, channel + 12, d, 4, y);
    }
}

EW_OFTEN_RUN EW_APART static int32_t ew_helium_sixteen(const ew_convolution *p, const int8_t *const *taps,
                                                       int32_t channel, uint8_t *y)
{
    const ew_products products = p->products; /* a copy, which stores cannot change */
    for (; channel + 16 <= products.channels; channel += 16)
        ew_helium_channels(p, &products, taps, channel, 4, 4, y);
    return channel;
}

EW_OFTEN_RUN EW_APART static int32_t ew_helium_eight(const ew_convolution *p, const int8_t *const *taps,
                                                     int32_t channel, uint8_t *y)
{
    const ew_products products = p->products; /* a copy, which stores cannot change */
    for (; channel + 8 <= products.channels; channel += 8)
        ew_helium_channels(p, &products, taps, channel, 2, 4, y);
    return channel;
}

EW_APART static void ew_helium_four(const ew_convolution *p, const int8_t *const *taps, int32_t channel, uint8_t *y)
{
    for (; channel < p->products.channels; channel += 4)
        ew_helium_channels(p, &p->products, taps, channel, 1, ew_min(p->products.channels - channel, 4), y);
}

void ew_helium_depthwise(const ew_convolution *p, const int8_t *x, uint8_t *y, ew_part part)
{
    const int8_t *taps[EW_MOST_TAPS];
    const int32_t rows = part.bottom - part.top, columns = part.right - part.left;
    for (int32_t i = 0; i < rows; i++) {
        const int32_t row = p->is_backward ? part.bottom - 1 - i : part.top + i;
        uint8_t *const line = y + ew_row(&p->y, row);
        for (int32_t j = 0; j < columns; j++) {
            const int32_t at = p->is_backward ? part.right - 1 - j : part.left + j;
            ew_helium_taps(p, x, row, at, taps);
            uint8_t *const pixel = line + at * p->y.pixel;
            ew_helium_four(p, taps, ew_helium_eight(p, taps, ew_helium_sixteen(p, taps, 0, pixel), pixel), pixel);
        }
    }
}
