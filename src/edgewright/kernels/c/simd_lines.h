/* Element by element along lines, and means over images, float32 and eight-bit.
 *
 * Each vector is read before it is written, first to last or last to first: elements that share memory as a kernel that
 * goes element by element allows come out right. */
#ifndef EW_SIMD_LINES_H
#define EW_SIMD_LINES_H

#include "simd_int.h"
#include "simd_math.h"

enum { EW_SIMD_ONE = 0, EW_SIMD_ADD = 1, EW_SIMD_SUB = 2, EW_SIMD_MUL = 3, EW_SIMD_DIV = 4, EW_SIMD_SCALE = 5 };

typedef struct {
    int32_t what; /* of the two operands, the first one, or first * second + third */
    int32_t steps[3]; /* from element to element of each operand: 1, or 0 where it is one number */
    int32_t is_backward;
    int32_t kind; /* activation */
    float a, b;
} ew_simd_map;

void ew_simd_map_run(const ew_simd_map *map, const float *x0, const float *x1, const float *x2, float *y, int32_t n);

/* Sum of two lines of bytes in TFLite's arithmetic: both brought to one scale with 20 bits more, rounded; then the sum. */
typedef struct {
    int32_t is_signed[2], zero[2], multiplier[2], shift[2]; /* of the operands */
    int32_t sign; /* -1: the second is subtracted */
    int32_t out_multiplier, out_shift, out_zero, low, high;
    int32_t is_backward;
} ew_simd_add8;

void ew_simd_add8_run(const ew_simd_add8 *add, const void *a, const void *b, void *y, int32_t n);

/* y = scale * sum over height * width pixels, for each channel. */
void ew_simd_mean(const float *x, ew_image in, int32_t height, int32_t width, int32_t channels, float scale, float *y);

#endif /* EW_SIMD_LINES_H */
