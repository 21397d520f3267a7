/* Windows over int8 images without weights: averages, means, largest elements. */
#ifndef EW_POOL_H
#define EW_POOL_H

#include "base.h"

typedef struct {
    ew_image x, y;
    int32_t height, width; /* of the input */
    int32_t kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w;
    int32_t low, high;
    int32_t zero, multiplier, shift, offset; /* of means: x's zero point, to the output's scale, its zero point */
} ew_pool;

/* Channels first..last - 1 of a part of the output, pixel after pixel: from the first on, or from the last when
 * `backward`. Padding never counts. */
void ew_pool_average(const ew_pool *p, const int8_t *x, int8_t *y, const ew_part *part, int32_t first, int32_t last,
                     int32_t backward);
void ew_pool_mean(const ew_pool *p, const int8_t *x, int8_t *y, const ew_part *part, int32_t first, int32_t last,
                  int32_t backward);
void ew_pool_max(const ew_pool *p, const int8_t *x, int8_t *y, const ew_part *part, int32_t first, int32_t last,
                 int32_t backward);

#endif /* EW_POOL_H */
