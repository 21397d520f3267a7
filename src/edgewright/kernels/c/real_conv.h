/* float32 convolutions for small cores: four channels of a pixel at a time. */
#ifndef EW_REAL_CONV_H
#define EW_REAL_CONV_H

#include "base.h"

typedef struct {
    const float *weights; /* blocks of four channels: for each tap and input channel four weights side by side */
    const float *bias;    /* of as many channels as blocks hold, or NULL */
    ew_image x, y;
    int32_t height, width, depth, kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, pad_h, pad_w;
    int32_t channels;
    int32_t limits; /* 1: not below low, 2: not above high */
    float low, high;
} ew_real_conv;

/* A part of the output, pixel by pixel in raster order, or in the reverse order. */
void ew_real_conv_run(const ew_real_conv *p, const float *x, float *y, const ew_part *part, int32_t is_backward);

#endif /* EW_REAL_CONV_H */
