/* Rows of depthwise convolutions of int8 with 3x3 kernels at stride 1 or 2 and padding of one pixel at most, with pairs
 * of 16-bit products.
 *
 * One channel of a row at a time, from where it lies: nothing is gathered, so that a single row costs no more than its
 * share of a whole layer. Every column that is loaded goes into the sums of all outputs that it counts for. Rows outside
 * of the image have weights of 0, and are part of what sums start from. */
#ifndef EW_DEPTHWISE_ROWS_H
#define EW_DEPTHWISE_ROWS_H

#include "requant.h"

/* A channel of a row at work. The order of the fields is known to assembler. */
typedef struct {
    int32_t multiplier, offset, shift;
    uint8_t *y; /* behind the inner outputs (stride 1), or the last of them (stride 2) */
    int32_t start; /* of sums */
    int32_t step; /* bytes from column to column, of x and of y */
    const int8_t *rows[3]; /* behind the columns that inner outputs read */
    int32_t top[3]; /* weights of the upper two rows, column by column: the lower half is for the uppermost */
    int32_t bottom[2]; /* of the last row: two, then one */
    int32_t pad; /* twice the zero point */
    int32_t at; /* from `rows` to the first column that exists, in bytes; not above 0 */
    int32_t leaves; /* whether windows leave the image to the left (1), to the right (2) */
} ew_rows_lane;

typedef struct {
    ew_image x, y; /* of equal steps from pixel to pixel */
    const int8_t *weights; /* [channel][3][3] */
    const int32_t *factors; /* [channel][2]: multiplier, offset; [channel][3]: also shift */
    void (*line)(const ew_rows_lane *lane); /* ew_rows_full, ew_rows_half */
    int16_t height, width; /* of the input */
    int8_t stride, pad_h, pad_w;
    int8_t zero, low, high; /* padding; what outputs are kept between, as int8 */
    uint8_t flip; /* 128 where outputs are uint8 */
    uint8_t left, shift; /* of the weights to the left; of a product's upper half plus offset to the right */
    uint8_t factor_count;
} ew_rows;

/* Channels first..last - 1 of a part of the output, row by row, channel after channel. x and y must not share memory. */
void ew_rows_run(const ew_rows *p, const int8_t *x, uint8_t *y, const ew_part *part, int32_t first, int32_t last);

/* A channel of a row at stride 1 and 2. */
void ew_rows_full(const ew_rows_lane *lane);
void ew_rows_half(const ew_rows_lane *lane);

#endif /* EW_DEPTHWISE_ROWS_H */
