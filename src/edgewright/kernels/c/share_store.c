#include "share_store.h"

void ew_share_store(const ew_products *p, int32_t *sums, void *y, int32_t count, int32_t pixel)
{
    uint8_t *to = (uint8_t *)y;
    for (; count > 0; count--, sums += p->channels, to += pixel) {
        for (int32_t c = 0; p->bias && c < p->channels; c++)
            sums[c] += p->bias[c];
        ew_portable_store(p, 0, p->channels, sums, to);
    }
}
