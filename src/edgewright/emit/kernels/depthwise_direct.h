/* Depthwise convolutions of int8 with 3x3 kernels at stride 1 or 2 and padding of one pixel at most, in plain C.
 *
 * One channel at a time, from where it lies: weights stay in registers, and every column that is loaded goes into the
 * sums of all outputs that it counts for. At stride 1 the row above comes from a line that is kept aside, so that the
 * output may lie exactly where the input does. */
#ifndef EW_DEPTHWISE_DIRECT_H
#define EW_DEPTHWISE_DIRECT_H

#include "requant.h"

typedef struct {
    ew_image x, y;
    const int8_t *weights; /* [channel][3][3] */
    const int32_t *factors; /* [channel][2]: multiplier, offset; [channel][3]: also shift */
    int16_t height, width; /* of the input */
    int16_t multiplier; /* output channels for each input channel */
    int8_t zero; /* padding */
    int8_t stride, pad_h, pad_w;
    uint8_t left, shift; /* of the weights to the left; of a product's upper half plus offset to the right */
    uint8_t factor_count;
} ew_direct;

/* How a part of the output is cut where memory is shared: blocks of rows x columns are computed before the first output
 * is written, and follow each other forward or backward. */
typedef struct {
    int16_t rows, columns, backward;
} ew_direct_blocks;

/* Channels first..last - 1 of a part of the output, channel after channel. Scratch at stride 1: a line of as many bytes
 * as the part reads of a row. */
void ew_direct_run(const ew_direct *p, int8_t *x, uint8_t *y, const ew_part *part, int32_t first, int32_t last,
                   int8_t *scratch);

/* The same in blocks. Scratch begins with a block of the output. */
void ew_direct_shared(const ew_direct *p, int8_t *x, uint8_t *y, const ew_part *part, int32_t first,
                      int32_t last, const ew_direct_blocks *blocks, int8_t *scratch);

#endif /* EW_DEPTHWISE_DIRECT_H */
