/* Convolutions of numbers that were stored in eight bits as they came: four channels of a pixel at a time, or one
 * where each channel reads some of the input alone. */
#ifndef EW_DYNAMIC_CONV_H
#define EW_DYNAMIC_CONV_H

#include "base.h"

typedef struct {
    const int8_t *weights; /* blocks of four channels: for each tap and input channel four weights side by side; or,
                            * with groups, those of each channel in a row */
    const float *scales, *bias;
    ew_image x, y;
    int32_t height, width, depth, kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, pad_h, pad_w;
    int32_t channels;
    int32_t per_group; /* channels that read the same `depth` channels of the input; 0: all read all */
    int32_t first; /* channel of these, within the first group */
    int32_t in_turn; /* sums are multiplied by one scale after the other */
    int32_t limits; /* 1: not below low, 2: not above high */
    float low, high;
} ew_dynamic_conv;

/* A part of the output, pixel by pixel in raster order, or in the reverse order; x has this scale and zero point. */
void ew_dynamic_conv_run(
    const ew_dynamic_conv *p, const int8_t *x, float *y, const ew_part *part, int32_t is_backward, float scale,
    int32_t zero);

#endif /* EW_DYNAMIC_CONV_H */
