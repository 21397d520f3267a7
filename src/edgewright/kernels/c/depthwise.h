/* Depthwise convolutions of int8 and uint8, one channel at a time.
 *
 * The rows of a channel that windows cover are gathered as 16-bit numbers: stored bytes times 256, which leaves more
 * bits to the multiplier; padding is the input's zero point. There the channel's pixels lie side by side. Small planes
 * are gathered whole, of others a ring holds the `kernel_h` rows in use. A row is written after everything that it and
 * all rows before it read has been gathered, so that the output may lie exactly where the input does. */
#ifndef EW_DEPTHWISE_H
#define EW_DEPTHWISE_H

#include "base.h"
#include "requant.h"

/* A channel at work: what a row of outputs is computed from. The first four fields are known to assembler. */
typedef struct {
    int32_t multiplier, offset, shift;
    int16_t nine[12]; /* weights of a 3x3 kernel, row by row (w0, w1, w1, w2) */
    const int16_t *weights; /* of other kernels: rows of `taps` numbers */
    int16_t *ring, *end, *top; /* first row, behind the last, where the windows begin */
    int32_t pitch; /* numbers of a row */
    int32_t step, count; /* bytes from output to output; outputs of a row */
    int32_t down, line, rows; /* numbers from window to window below; bytes from row to row of outputs; rows to do */
    int32_t at, from; /* where the part begins in the outputs' image; the first row that it reads in the input's */
    int32_t start, drop; /* of sums before they are shifted; what negative ones lose when they are rounded */
    int32_t before, inside; /* bytes of a row of the ring before the image begins; columns of the image */
    int32_t settles; /* whether outputs are still to be clamped or flipped */
} ew_lane;

typedef struct ew_depthwise ew_depthwise;
struct ew_depthwise {
    ew_image x, y;
    const int8_t *weights; /* [channel][kernel_h][kernel_w] */
    const int32_t *factors; /* [channel][2]: multiplier, offset; [channel][3]: also shift; [channel][4]: start, drop */
    int16_t height, width; /* of the input */
    int16_t kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w;
    int16_t multiplier; /* output channels for each input channel */
    int16_t slots; /* gathered rows: kernel_h, or all that a part reads */
    int16_t pitch, taps; /* numbers of a gathered row, of a row of weights (0: nine weights) */
    int8_t left, shift; /* of nine weights or of sums to the left; of a product's upper half plus offset to the right */
    int8_t zero, low, high; /* padding; what outputs are kept between, as int8 */
    uint8_t flip_x, flip_y; /* 128 where stored numbers are uint8 */
    int8_t factor_count;
    void (*row)(const ew_depthwise *p, const ew_lane *lane, uint8_t *y); /* computes rows of outputs */
};

/* How a part of the output is cut where memory is shared: blocks of rows x columns are computed from everything they
 * read before the first output is written, and follow each other forward or backward. */
typedef struct {
    int32_t rows, columns, backward;
} ew_blocks;

/* Channels first..last - 1 of a part of the output, channel after channel. Scratch, aligned to 4 bytes: the ring, then
 * the weights of one channel. */
void ew_depthwise_run(const ew_depthwise *p, const uint8_t *x, uint8_t *y, const ew_part *part, int32_t first,
                      int32_t last, int16_t *scratch);

/* The same in blocks. Scratch has a block of the output in addition, unless it is a single pixel. */
void ew_depthwise_shared(const ew_depthwise *p, const uint8_t *x, uint8_t *y, const ew_part *part, int32_t first,
                         int32_t last, const ew_blocks *blocks, int16_t *scratch);

/* Rows of outputs, kept within int8: of 3x3 kernels at horizontal stride 1 and 2, and of any kernel. */
void ew_depthwise_3x3(const ew_depthwise *p, const ew_lane *lane, uint8_t *y);
void ew_depthwise_3x3_half(const ew_depthwise *p, const ew_lane *lane, uint8_t *y);
void ew_depthwise_any(const ew_depthwise *p, const ew_lane *lane, uint8_t *y);

/* The first word that begins at `p` or behind it. */
EW_INLINE int16_t *ew_word_at(uint8_t *p) { return (int16_t *)(void *)(p + (-(uintptr_t)p & 3u)); }

/* The row of the ring behind this one. */
EW_INLINE int16_t *ew_ring_next(const ew_lane *lane, int16_t *row)
{
    row += lane->pitch;
    return row == lane->end ? lane->ring : row;
}

/* Steps of the output within int8. */
EW_INLINE uint8_t ew_lane_stored(int32_t v)
{
#if defined(__ARM_FEATURE_DSP) && defined(__GNUC__)
    int32_t kept;
    __asm__("ssat %0, #8, %1" : "=r"(kept) : "r"(v));
    return (uint8_t)kept;
#else
    return (uint8_t)ew_clamp(v, -128, 127);
#endif
}

#endif /* EW_DEPTHWISE_H */
