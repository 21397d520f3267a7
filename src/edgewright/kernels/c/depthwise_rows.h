/* Rows of depthwise convolutions of int8 with 3x3 kernels at stride 1 or 2 and padding of one pixel at most, with pairs
 * of 16-bit products.
 *
 * One channel of a row at a time, from where it lies: nothing is gathered, so that a single row costs no more than its
 * share of a whole layer. Every column that is loaded goes into the sums of all outputs that it counts for. Rows outside
 * of the image have weights of 0, and are part of what sums start from. Weights count 256 times, which costs nothing
 * where bytes become the upper halves of 16-bit numbers; sums are shifted by EW_ROWS_LEFT more. */
#ifndef EW_DEPTHWISE_ROWS_H
#define EW_DEPTHWISE_ROWS_H

#include "requant.h"

#define EW_ROWS_LEFT 5 /* 9 * 128 * 128 * 256 shifted so far stays below 2^31 */

/* A row at work, channel after channel. The order of the fields is known to assembler. */
typedef struct {
    const int8_t *rows[3]; /* behind the columns that inner outputs read */
    int32_t shift; /* of results to the right, unless channels have shifts of their own */
    uint8_t *y; /* behind the inner outputs (stride 1), or the last of them (stride 2) */
    const int32_t *channels;
    int32_t start; /* of sums */
    int32_t step; /* bytes from column to column, of x and of y */
    int32_t pad; /* twice the zero point */
    int32_t edges; /* EW_ROWS_LEAVES_LEFT and those below it */
    int32_t at; /* from `rows` to the first column that exists, in bytes; not above 0 */
    const int32_t *end; /* of channels */
} ew_rows_lane;

#define EW_ROWS_LEAVES_LEFT 1 /* windows leave the image there */
#define EW_ROWS_LEAVES_RIGHT 2
#define EW_ROWS_OWN_SHIFTS 4 /* channels have them */
#define EW_ROWS_LEAVES_ABOVE 8
#define EW_ROWS_LEAVES_BELOW 16

/* Numbers of a channel. Weights, where wij is that of row i and column j: the bytes w00, w01, w10, w11, from the lowest
 * on; w02, w20, w12, w21; then 256 times w22 in the lower half and the shift in the upper one. Multiplier, offset. */
#define EW_ROWS_NUMBERS 5

typedef struct {
    ew_image x, y; /* of equal steps from pixel to pixel */
    const int32_t *channels;
    void (*line)(const ew_rows_lane *lane); /* ew_rows_full, ew_rows_half */
    int16_t height, width; /* of the input */
    int8_t stride, pad_h, pad_w;
    int8_t zero, low, high; /* padding; what outputs are kept between, as int8 */
    uint8_t flip; /* 128 where outputs are uint8 */
    uint8_t shift; /* of a product's upper half plus offset to the right */
    uint8_t own_shifts; /* whether channels have shifts of their own */
} ew_rows;

/* Channels first..last - 1 of a part of the output, row by row, channel after channel. x and y must not share memory. */
void ew_rows_run(const ew_rows *p, const int8_t *x, uint8_t *y, const ew_part *part, int32_t first, int32_t last);

/* The channels of a row at stride 1 and 2. */
void ew_rows_full(const ew_rows_lane *lane);
void ew_rows_half(const ew_rows_lane *lane);

#endif /* EW_DEPTHWISE_ROWS_H */
