/* Depthwise convolutions of int8 with 3x3 kernels at stride 1 or 2 and padding of one pixel at most, in plain C.
 *
 * One channel at a time, from where it lies: weights stay in registers, and every column that is loaded goes into the
 * sums of all outputs that it counts for. Where the output lies exactly where the input does, the row above comes from a
 * line that is kept aside. */
#ifndef EW_DEPTHWISE_DIRECT_H
#define EW_DEPTHWISE_DIRECT_H

#include "requant.h"

typedef struct ew_direct ew_direct;
typedef struct ew_direct_lane ew_direct_lane;

struct ew_direct {
    ew_image x, y;
    const int8_t *weights; /* [channel][3][3] */
    const int32_t *factors; /* [channel][2]: multiplier, offset; [channel][3]: also shift */
    int16_t height, width; /* of the input */
    int16_t multiplier; /* output channels for each input channel */
    int8_t zero, low, high; /* padding; what outputs are kept between */
    int8_t stride, pad_h, pad_w;
    uint8_t left, shift; /* of the weights to the left; of a product's upper half plus offset to the right */
    uint8_t factor_count;
    void (*plane)(const ew_direct *p, ew_direct_lane *lane); /* computes a channel */
};

/* One channel of a part. */
struct ew_direct_lane {
    int8_t *x; /* the first column that is there, in row 0 */
    uint8_t *y; /* the first column, in row 0 of the image */
    const ew_image *image; /* of the outputs */
    const int8_t *weights;
    const int32_t *factors;
    int8_t *line;
    int32_t at, top, rows; /* where the part's first row begins in the image; row of the window there; rows to do */
    int32_t shift;
    int32_t columns; /* that exist of what a row of outputs reads */
    int32_t inner; /* outputs of a row whose windows do not leave the image to the right */
    int8_t zero; /* padding */
    uint8_t leaves_left, leaves_right; /* whether the first window does so to the left, the last to the right */
};

/* How a part of the output is cut where memory is shared: blocks of rows x columns are computed before the first output
 * is written, and follow each other forward or backward. */
typedef struct {
    int16_t rows, columns, backward;
} ew_direct_blocks;

/* Channels first..last - 1 of a part of the output, channel after channel. Scratch where one is kept: a line of as many
 * bytes as the part reads of a row. */
void ew_direct_run(const ew_direct *p, int8_t *x, uint8_t *y, const ew_part *part, int32_t first, int32_t last,
                   int8_t *scratch);

/* The same in blocks. Scratch begins with a block of the output. */
void ew_direct_shared(const ew_direct *p, int8_t *x, uint8_t *y, const ew_part *part, int32_t first,
                      int32_t last, const ew_direct_blocks *blocks, int8_t *scratch);

/* A channel at stride 1 with the row above kept aside, at stride 1, at stride 2. */
void ew_direct_kept(const ew_direct *p, ew_direct_lane *lane);
void ew_direct_full(const ew_direct *p, ew_direct_lane *lane);
void ew_direct_half(const ew_direct *p, ew_direct_lane *lane);

#endif /* EW_DEPTHWISE_DIRECT_H */
