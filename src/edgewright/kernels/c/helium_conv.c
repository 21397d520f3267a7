#include "helium_conv.h"

/* What the window at an output pixel covers. */
static void ew_helium_gather(const ew_convolution *p, const uint8_t *x, int32_t row, int32_t column, int8_t *to)
{
    const int32_t left = column * p->stride_w - p->pad_w, run = p->kernel_w * p->depth;
    int32_t y = row * p->stride_h - p->pad_h;
    const int is_run = p->dilation_w == 1 && p->x.pixel == p->depth && left >= 0 && left + p->kernel_w <= p->width;
    for (int32_t i = 0; i < p->kernel_h; i++, y += p->dilation_h, to += run) {
        if (y < 0 || y >= p->height) {
            ew_helium_fill(p->zero, run, to);
            continue;
        }
        const uint8_t *line = x + ew_row(&p->x, y);
        if (is_run) {
            ew_helium_copy(line + left * p->x.pixel, run, p->flip, to);
            continue;
        }
        int32_t at = left;
        for (int32_t j = 0; j < p->kernel_w; j++, at += p->dilation_w)
            if (at < 0 || at >= p->width)
                ew_helium_fill(p->zero, p->depth, to + j * p->depth);
            else
                ew_helium_copy(line + at * p->x.pixel, p->depth, p->flip, to + j * p->depth);
    }
}

void ew_helium_conv(const ew_convolution *p, const uint8_t *x, uint8_t *y, ew_part part, int8_t *column)
{
    const int32_t rows = part.bottom - part.top, columns = part.right - part.left;
    for (int32_t i = 0; i < rows; i++) {
        const int32_t row = p->is_backward ? part.bottom - 1 - i : part.top + i;
        uint8_t *const line = y + ew_row(&p->y, row);
        for (int32_t j = 0; j < columns; j++) {
            const int32_t at = p->is_backward ? part.right - 1 - j : part.left + j;
            const int8_t *from = column;
            if (p->pixels)
                ew_helium_gather(p, x, row, at, column);
            else
                from = (const int8_t *)x + ew_row(&p->x, row * p->stride_h) + at * p->stride_w * p->x.pixel;
            ew_helium_pixel(&p->products, from, line + at * p->y.pixel);
        }
    }
}
