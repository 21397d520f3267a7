/* A stand-in for CMSIS-NN: the functions that emitted code calls, as simple loops, written from the published
 * interface (types, order of arguments, layout of weights, rounding). */
#ifndef ARM_NNFUNCTIONS_H
#define ARM_NNFUNCTIONS_H

#include <stdint.h>
#include <stddef.h>

typedef enum { ARM_CMSIS_NN_SUCCESS = 0, ARM_CMSIS_NN_ARG_ERROR = -1 } arm_cmsis_nn_status;
typedef struct { int32_t w, h; } cmsis_nn_tile;
typedef struct { void *buf; int32_t size; } cmsis_nn_context;
typedef struct { int32_t n, h, w, c; } cmsis_nn_dims;
typedef struct { int32_t *multiplier, *shift; } cmsis_nn_per_channel_quant_params;
typedef struct { int32_t multiplier, shift; } cmsis_nn_per_tensor_quant_params;
typedef struct { int32_t min, max; } cmsis_nn_activation;
typedef struct {
    int32_t input_offset, output_offset;
    cmsis_nn_tile stride, padding, dilation;
    cmsis_nn_activation activation;
} cmsis_nn_conv_params;
typedef struct {
    int32_t input_offset, output_offset, ch_mult;
    cmsis_nn_tile stride, padding, dilation;
    cmsis_nn_activation activation;
} cmsis_nn_dw_conv_params;
typedef struct {
    cmsis_nn_tile stride, padding;
    cmsis_nn_activation activation;
} cmsis_nn_pool_params;
typedef struct {
    int32_t input_offset, filter_offset, output_offset;
    cmsis_nn_activation activation;
} cmsis_nn_fc_params;

static inline int32_t stub_requantize(int32_t sum, int32_t multiplier, int32_t shift)
{
    const int32_t left = shift > 0 ? shift : 0, right = shift > 0 ? 0 : -shift;
    const int64_t product = (int64_t)(sum * (int32_t)(1 << left)) * multiplier;
    const int32_t high = (int32_t)((product + (1 << 30)) >> 31), mask = (int32_t)((1u << right) - 1u);
    return (high >> right) + ((high & mask) > (mask >> 1) + (high < 0) ? 1 : 0);
}

static inline int8_t stub_clamp(int32_t v, cmsis_nn_activation range)
{
    return (int8_t)(v < range.min ? range.min : v > range.max ? range.max : v);
}

/* Writes over the context buffer, as the real functions do: it must not lie on anything alive. */
static inline void stub_scribble(const cmsis_nn_context *ctx)
{
    for (int32_t i = 0; i < ctx->size; i++)
        ((uint8_t *)ctx->buf)[i] = 0xA5;
}

static inline arm_cmsis_nn_status arm_convolve_wrapper_s8(
    const cmsis_nn_context *ctx, const cmsis_nn_conv_params *p, const cmsis_nn_per_channel_quant_params *q,
    const cmsis_nn_dims *in, const int8_t *x, const cmsis_nn_dims *filter, const int8_t *w,
    const cmsis_nn_dims *bias_dims, const int32_t *bias, const cmsis_nn_dims *out, int8_t *y)
{
    if (filter->n != out->c || filter->c != in->c || bias_dims->c != out->c || in->n != out->n)
        return ARM_CMSIS_NN_ARG_ERROR;
    stub_scribble(ctx);
    for (int32_t n = 0; n < out->n; n++)
        for (int32_t i = 0; i < out->h; i++)
            for (int32_t j = 0; j < out->w; j++)
                for (int32_t o = 0; o < out->c; o++) {
                    int32_t sum = bias[o];
                    for (int32_t a = 0; a < filter->h; a++)
                        for (int32_t b = 0; b < filter->w; b++) {
                            const int32_t row = i * p->stride.h - p->padding.h + a * p->dilation.h;
                            const int32_t col = j * p->stride.w - p->padding.w + b * p->dilation.w;
                            if (row < 0 || row >= in->h || col < 0 || col >= in->w)
                                continue;
                            for (int32_t k = 0; k < in->c; k++)
                                sum += (x[((n * in->h + row) * in->w + col) * in->c + k] + p->input_offset) *
                                       w[((o * filter->h + a) * filter->w + b) * in->c + k];
                        }
                    *y++ = stub_clamp(stub_requantize(sum, q->multiplier[o], q->shift[o]) + p->output_offset,
                                      p->activation);
                }
    return ARM_CMSIS_NN_SUCCESS;
}

static inline arm_cmsis_nn_status arm_depthwise_conv_wrapper_s8(
    const cmsis_nn_context *ctx, const cmsis_nn_dw_conv_params *p, const cmsis_nn_per_channel_quant_params *q,
    const cmsis_nn_dims *in, const int8_t *x, const cmsis_nn_dims *filter, const int8_t *w,
    const cmsis_nn_dims *bias_dims, const int32_t *bias, const cmsis_nn_dims *out, int8_t *y)
{
    if (filter->c != out->c || in->c * p->ch_mult != out->c || bias_dims->c != out->c)
        return ARM_CMSIS_NN_ARG_ERROR;
    stub_scribble(ctx);
    for (int32_t n = 0; n < out->n; n++)
        for (int32_t i = 0; i < out->h; i++)
            for (int32_t j = 0; j < out->w; j++)
                for (int32_t o = 0; o < out->c; o++) {
                    int32_t sum = bias[o];
                    for (int32_t a = 0; a < filter->h; a++)
                        for (int32_t b = 0; b < filter->w; b++) {
                            const int32_t row = i * p->stride.h - p->padding.h + a * p->dilation.h;
                            const int32_t col = j * p->stride.w - p->padding.w + b * p->dilation.w;
                            if (row < 0 || row >= in->h || col < 0 || col >= in->w)
                                continue;
                            sum += (x[((n * in->h + row) * in->w + col) * in->c + o / p->ch_mult] + p->input_offset) *
                                   w[(a * filter->w + b) * out->c + o];
                        }
                    *y++ = stub_clamp(stub_requantize(sum, q->multiplier[o], q->shift[o]) + p->output_offset,
                                      p->activation);
                }
    return ARM_CMSIS_NN_SUCCESS;
}

static inline arm_cmsis_nn_status arm_fully_connected_s8(
    const cmsis_nn_context *ctx, const cmsis_nn_fc_params *p, const cmsis_nn_per_tensor_quant_params *q,
    const cmsis_nn_dims *in, const int8_t *x, const cmsis_nn_dims *filter, const int8_t *w,
    const cmsis_nn_dims *bias_dims, const int32_t *bias, const cmsis_nn_dims *out, int8_t *y)
{
    if (filter->c != out->c || bias_dims->c != out->c || p->filter_offset)
        return ARM_CMSIS_NN_ARG_ERROR;
    stub_scribble(ctx);
    for (int32_t n = 0; n < in->n; n++, x += filter->n)
        for (int32_t o = 0; o < out->c; o++) {
            int32_t sum = bias[o];
            for (int32_t k = 0; k < filter->n; k++)
                sum += (x[k] + p->input_offset) * w[o * filter->n + k];
            *y++ = stub_clamp(stub_requantize(sum, q->multiplier, q->shift) + p->output_offset, p->activation);
        }
    return ARM_CMSIS_NN_SUCCESS;
}

static inline arm_cmsis_nn_status stub_pool(const cmsis_nn_context *ctx, const cmsis_nn_pool_params *p,
                                            const cmsis_nn_dims *in, const int8_t *x, const cmsis_nn_dims *filter,
                                            const cmsis_nn_dims *out, int8_t *y, int is_max)
{
    if (in->c != out->c)
        return ARM_CMSIS_NN_ARG_ERROR;
    stub_scribble(ctx);
    for (int32_t i = 0; i < out->h; i++)
        for (int32_t j = 0; j < out->w; j++)
            for (int32_t o = 0; o < out->c; o++) {
                int32_t sum = 0, count = 0, best = -128;
                for (int32_t a = 0; a < filter->h; a++)
                    for (int32_t b = 0; b < filter->w; b++) {
                        const int32_t row = i * p->stride.h - p->padding.h + a;
                        const int32_t col = j * p->stride.w - p->padding.w + b;
                        if (row < 0 || row >= in->h || col < 0 || col >= in->w)
                            continue;
                        const int32_t v = x[(row * in->w + col) * in->c + o];
                        sum += v, count++;
                        best = v > best ? v : best;
                    }
                const int32_t mean = (sum > 0 ? sum + count / 2 : sum - count / 2) / count;
                *y++ = stub_clamp(is_max ? best : mean, p->activation);
            }
    return ARM_CMSIS_NN_SUCCESS;
}

static inline arm_cmsis_nn_status arm_avgpool_s8(const cmsis_nn_context *ctx, const cmsis_nn_pool_params *p,
                                                 const cmsis_nn_dims *in, const int8_t *x,
                                                 const cmsis_nn_dims *filter, const cmsis_nn_dims *out, int8_t *y)
{
    return stub_pool(ctx, p, in, x, filter, out, y, 0);
}

static inline arm_cmsis_nn_status arm_max_pool_s8(const cmsis_nn_context *ctx, const cmsis_nn_pool_params *p,
                                                  const cmsis_nn_dims *in, const int8_t *x,
                                                  const cmsis_nn_dims *filter, const cmsis_nn_dims *out, int8_t *y)
{
    return stub_pool(ctx, p, in, x, filter, out, y, 1);
}

static inline arm_cmsis_nn_status arm_elementwise_add_s8(
    const int8_t *a, const int8_t *b, const int32_t a_offset, const int32_t a_mult, const int32_t a_shift,
    const int32_t b_offset, const int32_t b_mult, const int32_t b_shift, const int32_t left_shift, int8_t *y,
    const int32_t y_offset, const int32_t y_mult, const int32_t y_shift, const int32_t y_min, const int32_t y_max,
    const int32_t size)
{
    const cmsis_nn_activation range = {y_min, y_max};
    for (int32_t i = 0; i < size; i++) {
        const int32_t u = stub_requantize((a[i] + a_offset) * (1 << left_shift), a_mult, a_shift);
        const int32_t v = stub_requantize((b[i] + b_offset) * (1 << left_shift), b_mult, b_shift);
        y[i] = stub_clamp(stub_requantize(u + v, y_mult, y_shift) + y_offset, range);
    }
    return ARM_CMSIS_NN_SUCCESS;
}

#endif
