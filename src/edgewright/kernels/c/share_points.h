/* Shares of pointwise convolutions, two pixels and two channels at a time. */
#ifndef EW_SHARE_POINTS_H
#define EW_SHARE_POINTS_H

#include "dsp_columns.h"
#include "dsp_pairs.h"

typedef struct {
    ew_dsp_sums sums;
    ew_dsp_pairs *pairs; /* adds to running sums, see share_pairs.h */
    int32_t depth;       /* bytes of a pixel that are read */
    int32_t x, y;        /* from pixel to pixel: bytes of x, sums */
    int8_t zero;         /* of x, as a signed byte */
    uint8_t flip;        /* 128 makes unsigned bytes of x signed */
} ew_share_point;

/* `count` pixels of a row. `columns` is free memory, 4 * sums.taps bytes. */
void ew_share_points(const ew_share_point *layer, const void *x, int32_t *y, int32_t count, void *columns);

#endif /* EW_SHARE_POINTS_H */
