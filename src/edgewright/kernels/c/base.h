/* What every kernel stands on: types, small helpers, and what compilers call differently. */
#ifndef EW_BASE_H
#define EW_BASE_H

#include <stdint.h>
#include <string.h>

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF /* a * b + c is rounded twice, as in the reference; GCC is told by -ffp-contract=off */
#endif

#if defined(__GNUC__)
#define EW_ALIGNED(n) __attribute__((aligned(n)))
#define EW_FENCE() __asm__ volatile("" ::: "memory") /* memory is used again under another type */
#define EW_INLINE static inline __attribute__((always_inline))
#define EW_RESTRICT __restrict
#else
#define EW_ALIGNED(n)
#define EW_FENCE() ((void)0)
#define EW_INLINE static inline
#define EW_RESTRICT
#endif

/* EW_PROBE(stage) marks where a stage begins; a profiler defines it. */
#ifndef EW_PROBE
#ifdef EW_PROFILE
#ifdef __cplusplus
extern "C"
#endif
void ew_probe(int32_t stage);
#define EW_PROBE(stage) ew_probe(stage)
#else
#define EW_PROBE(stage) ((void)0)
#endif
#endif

static inline int32_t ew_min(int32_t a, int32_t b) { return a < b ? a : b; }
static inline int32_t ew_max(int32_t a, int32_t b) { return a > b ? a : b; }
static inline int32_t ew_between(int32_t low, int32_t x, int32_t high) { return x < low ? low : x > high ? high : x; }

/* An image as a kernel sees it: elements from row to row and from pixel to pixel. A rolling buffer keeps `rows` rows:
 * row i is found at i % rows; 0 keeps them all. */
typedef struct {
    int32_t row, pixel, rows;
} ew_image;

/* Rows and columns of an output to compute, half-open. */
typedef struct {
    int32_t top, bottom, left, right;
} ew_part;

static inline int32_t ew_row(const ew_image *image, int32_t y)
{
    return (image->rows ? y % image->rows : y) * image->row;
}

/* From row y at `offset` to row y + by, where a rolling buffer has more than `by` rows: cheaper than a remainder. */
static inline int32_t ew_row_on(const ew_image *image, int32_t offset, int32_t by)
{
    const int32_t end = image->rows * image->row;
    offset += by * image->row;
    return end && offset >= end ? offset - end : offset;
}

#endif /* EW_BASE_H */
