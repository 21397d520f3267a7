/* Sums of pairs of channels of two pixels, added to running sums (see share.h). */
#ifndef EW_SHARE_PAIRS_H
#define EW_SHARE_PAIRS_H

#include "dsp_pairs.h"

#define EW_SHARE_PAIRS_IN_C(name) \
    void name(const ew_dsp_work *work, const uint32_t *columns, uint8_t *one, uint8_t *two) \
    { \
        const int16_t *weights = work->weights; \
        int32_t *first = (int32_t *)(void *)one, *second = (int32_t *)(void *)two; \
        for (int32_t c = 0; c < work->count; c += 2, first += 2, second += 2) { \
            int32_t a0 = first[0], b0 = first[1], a1 = second[0], b1 = second[1]; \
            for (int32_t i = 0; i < work->taps; i += 2, weights += 2) { \
                const uint32_t w = ew_dsp_load(weights), lower = ew_dsp_even(0, w); \
                a0 = ew_dsp_mac(lower, columns[i], a0); \
                b0 = ew_dsp_mac(w, columns[i], b0); \
                a1 = ew_dsp_mac(lower, columns[i + 1], a1); \
                b1 = ew_dsp_mac(w, columns[i + 1], b1); \
            } \
            first[0] = a0, first[1] = b0; \
            second[0] = a1, second[1] = b1; \
        } \
    }

/* An even number of channels. `one` and `two` point to running sums; they may be the same pixel. */
ew_dsp_pairs ew_share_pairs;

#endif /* EW_SHARE_PAIRS_H */
