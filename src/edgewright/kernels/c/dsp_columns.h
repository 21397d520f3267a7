/* Columns of two pixels: all that they read, as 16-bit numbers. */
#ifndef EW_DSP_COLUMNS_H
#define EW_DSP_COLUMNS_H

#include "dsp.h"

/* Four taps as pairs of 16-bit numbers less the zero point: taps 0 and 2, then 1 and 3. Columns of two pixels
 * alternate. */
EW_INLINE uint32_t *ew_dsp_put(uint32_t *column, uint32_t word, uint32_t minus)
{
    column[0] = ew_dsp_even(minus, word);
    column[2] = ew_dsp_odd(minus, word);
    return column + 4;
}

/* The last taps of a run, fewer than four. */
uint32_t ew_dsp_rest(const uint8_t *source, int32_t rest, int32_t length);

/* `words` (1 or more) times four taps of each of two pixels; gives where the columns go on. */
uint32_t *ew_dsp_two_words(const uint8_t *one, const uint8_t *two, uint32_t *to, int32_t words, uint32_t minus,
                           uint32_t flip);

#ifdef EW_HAS_SPLIT
/* Signed bytes of `taps` pixels, `gap` bytes apart, for each of two windows: four channels go `jump` bytes behind the last
 * four, since those of all other taps lie between. `words`: fours of channels. */
void ew_dsp_two_split(const uint8_t *one, const uint8_t *two, uint32_t *to, int32_t words, uint32_t minus,
                      int32_t jump, int32_t taps, int32_t gap);
#endif

/* A run for each of two pixels. */
EW_INLINE uint32_t *ew_dsp_two_runs(const uint8_t *one, const uint8_t *two, int32_t length, uint32_t minus,
                                    uint32_t flip, uint32_t *to)
{
    const int32_t words = length >> 2, rest = length & 3;
    if (words)
        to = ew_dsp_two_words(one, two, to, words, minus, flip);
    if (rest) {
        ew_dsp_put(to, ew_dsp_rest(one + 4 * words, rest, length) ^ flip, minus);
        ew_dsp_put(to + 1, ew_dsp_rest(two + 4 * words, rest, length) ^ flip, minus);
        to += 4;
    }
    return to;
}

#endif /* EW_DSP_COLUMNS_H */
