#include "portable.h"

int32_t ew_portable_dot(const int8_t *x, int32_t step, const int8_t *w, int32_t depth, int32_t bias)
{
    for (int32_t k = 0; k < depth; k++, x += step)
        bias += *x * w[k];
    return bias;
}

EW_OFTEN_RUN void ew_portable_store(const ew_products *products, int32_t channel, int32_t count,
                                    const int32_t *sums, uint8_t *y)
{
    const ew_products p = *products; /* a copy, which stores cannot change */
    const int32_t *multiplier = p.multiplier + channel, *offset = p.offset + channel, *drop = p.drop;
    const int32_t *const end = sums + count;
    y += channel;
    if (EW_IS_EXACT(p)) {
        for (; sums != end; sums++, channel++)
            EW_PORTABLE_PUT(p, EW_EXACT_STEPS(p, channel, *sums), y++);
        return;
    }
    if (!drop) {
        while (sums != end)
            EW_PORTABLE_STORE(p, *sums++, *multiplier++, *offset++, 0, y++);
        return;
    }
    for (drop += channel; sums != end; sums++)
        EW_PORTABLE_STORE(p, *sums, *multiplier++, *offset++, *drop++, y++);
}

void ew_portable_pixel(const ew_products *p, int32_t channel, const int8_t *w, const int8_t *column, uint8_t *y)
{
    int32_t sums[4];
    while (channel < p->channels) {
        const int32_t count = channel + 4 <= p->channels ? 4 : 1;
        if (count == 4)
            ew_portable_1x4(column, 1, w, 4, p->depth, ew_products_bias(p, channel), sums);
        else
            sums[0] = ew_portable_dot(column, 1, w, p->depth, *ew_products_bias(p, channel));
        ew_portable_store(p, channel, count, sums, y);
        channel += count;
        w += count * EW_PRODUCTS_PITCH(p);
    }
}
