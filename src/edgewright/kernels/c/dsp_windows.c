#include "dsp_windows.h"

/* Pixels side by side, of which begin..end - 1 exist; the others are padding. */
static uint8_t *ew_dsp_copy_run(const ew_dsp_windows *layer, const uint8_t *line, int32_t at, int32_t count, uint8_t *to)
{
    const int32_t depth = layer->depth, size = count * depth;
    const int32_t begin = ew_between(0, -at, count) * depth, end = ew_between(0, layer->width - at, count) * depth;
    if (!line || begin >= end) {
        memset(to, layer->zero, (uint32_t)size);
        return to + size;
    }
    memset(to, layer->zero, (uint32_t)begin);
    memcpy(to + begin, line + ew_max(at, 0) * layer->x.pixel, (uint32_t)(end - begin));
    memset(to + end, layer->zero, (uint32_t)(size - end));
    return to + size;
}

/* All that the window at row i and column j of x reads. */
static void ew_dsp_copy_window(const ew_dsp_windows *layer, const uint8_t *x, int32_t i, int32_t j, uint8_t *to)
{
    const int32_t is_joined = layer->step == 1 && layer->x.pixel == layer->depth;
    for (int32_t ky = 0; ky < layer->rows; ky++, i += layer->row_step) {
        const uint8_t *line = i >= 0 && i < layer->height ? x + ew_row(&layer->x, i) : NULL;
        if (is_joined)
            to = ew_dsp_copy_run(layer, line, j, layer->columns, to);
        else
            for (int32_t kx = 0; kx < layer->columns; kx++)
                to = ew_dsp_copy_run(layer, line, j + kx * layer->step, 1, to);
    }
}

#ifdef EW_HAS_SPLIT
/* The same as ew_dsp_copy_window for split windows. */
static void ew_dsp_split_window(const ew_dsp_windows *layer, const uint8_t *x, int32_t i, int32_t j, uint8_t *to)
{
    const int32_t jump = 4 * layer->rows * layer->columns;
    for (int32_t ky = 0; ky < layer->rows; ky++, i += layer->row_step) {
        const uint8_t *line = i >= 0 && i < layer->height ? x + ew_row(&layer->x, i) : NULL;
        for (int32_t kx = 0, at = j; kx < layer->columns; kx++, at += layer->step, to += 4) {
            const uint8_t *const from = line && at >= 0 && at < layer->width ? line + at * layer->x.pixel : NULL;
            uint8_t *put = to;
            for (int32_t k = 0; k < layer->depth; k += 4, put += jump) {
                const uint32_t word = from ? ew_dsp_load(from + k) : layer->zero * 0x01010101u;
                memcpy(put, &word, sizeof word);
            }
        }
    }
}
#endif

void ew_dsp_windows_run(const ew_dsp_windows *layer, const void *x, void *y, const ew_part *part, uint8_t *window)
{
    const int32_t rows = part->bottom - part->top, columns = part->right - part->left;
    const int32_t taps = layer->rows * layer->columns * layer->depth;
    for (int32_t i = 0; i < rows; i++) {
        const int32_t row = layer->is_backward ? part->bottom - 1 - i : part->top + i;
        uint8_t *const line = (uint8_t *)y + ew_row(&layer->y, row);
        for (int32_t j = 0; j < columns; j++) {
            const int32_t column = layer->is_backward ? part->right - 1 - j : part->left + j;
            const int32_t top = row * layer->row_stride - layer->top, left = column * layer->stride - layer->left;
#ifdef EW_HAS_SPLIT
            if (layer->is_split)
                ew_dsp_split_window(layer, (const uint8_t *)x, top, left, window);
            else
#endif
                ew_dsp_copy_window(layer, (const uint8_t *)x, top, left, window);
            ew_dsp_dense(&layer->sums, layer->fours, window, line + column * layer->y.pixel, taps);
        }
    }
}
