#include "share_window.h"

/* One pixel. Taps on the padding add nothing. */
static void ew_share_pixel(const ew_share_window *p, const uint8_t *x, uint8_t *to, int32_t top, int32_t left)
{
    const uint8_t *w = (const uint8_t *)p->weights;
    for (int32_t i = 0, row = top; i < p->kernel_h; i++, row += p->dilation_h) {
        const uint8_t *const line = row >= 0 && row < p->height ? x + ew_row(&p->x, row) : NULL;
        for (int32_t j = 0, column = left; j < p->kernel_w; j++, column += p->dilation_w, w += p->next)
            if (line && column >= 0 && column < p->width)
                p->tap(line + column * p->x.pixel, w, p->depth, p->zero, to, p->channels);
    }
}

void ew_share_windows(const ew_share_window *p, const void *x, void *sums, const ew_part *part)
{
    for (int32_t row = part->top; row < part->bottom; row++) {
        uint8_t *const line = (uint8_t *)sums + ew_row(&p->y, row);
        for (int32_t column = part->left; column < part->right; column++)
            ew_share_pixel(p, (const uint8_t *)x, line + column * p->y.pixel, row * p->stride_h - p->pad_h,
                           column * p->stride_w - p->pad_w);
    }
}
