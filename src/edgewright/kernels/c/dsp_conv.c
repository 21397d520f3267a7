#include "dsp_conv.h"

/* Words of columns from four channels of a tap to its next four: where columns are split, those of all other taps lie
 * between. */
EW_INLINE int32_t ew_dsp_jump(const ew_dsp_convolution *layer)
{
#ifdef EW_HAS_SPLIT
    if (layer->is_split)
        return 4 * layer->rows * layer->runs;
#else
    (void)layer;
#endif
    return 4;
}

/* A run of `length` bytes of which begin..end - 1 exist, at `source`; the others are the zero point. */
static uint32_t *ew_dsp_cut_run(const ew_dsp_convolution *layer, const uint8_t *source, int32_t begin, int32_t end,
                                int32_t length, uint32_t minus, uint32_t *column)
{
    const int32_t jump = ew_dsp_jump(layer);
    const uint32_t zero = (uint8_t)(layer->zero ^ layer->flip), flip = layer->flip * 0x01010101u;
    for (int32_t at = 0; at < length; at += 4, column += jump) {
        uint32_t word = zero * 0x01010101u;
        if (at >= begin && at + 4 <= end)
            word = ew_dsp_load(source + (at - begin));
        else
            for (int32_t i = ew_max(begin - at, 0); i < ew_min(end - at, 4); i++)
                word ^= (source[at + i - begin] ^ zero) << (8 * i);
        ew_dsp_put(column, word ^ flip, minus);
    }
    return column;
}

/* All that a window reads, wherever it lies; its first tap is at row i and column j. */
static void ew_dsp_gather(const ew_dsp_convolution *layer, const uint8_t *x, int32_t i, int32_t j, uint32_t minus,
                          uint32_t *to)
{
    for (int32_t ky = 0; ky < layer->rows; ky++, i += layer->row_step) {
        const int32_t is_inside = i >= 0 && i < layer->height;
        const uint8_t *line = is_inside ? x + ew_row(&layer->x, i) : x;
        for (int32_t kx = 0; kx < layer->runs; kx++) {
            const int32_t at = j + kx * layer->step;
            int32_t begin = ew_max(0, -at), end = ew_min(layer->pixels, layer->width - at);
            if (!is_inside || begin >= end)
                begin = end = 0;
            uint32_t *const next =
                ew_dsp_cut_run(layer, begin < end ? line + (at + begin) * layer->x.pixel : x, begin * layer->depth,
                               end * layer->depth, layer->pixels * layer->depth, minus, to);
#ifdef EW_HAS_SPLIT
            to = layer->is_split ? to + 4 : next;
#else
            to = next;
#endif
        }
    }
}

/* Where a window is, and where its results go. */
typedef struct {
    uint8_t *to;
    int32_t i, j;            /* its first tap: row and column */
    int32_t row, rest;       /* row of the output; pixels left in it, this one included */
    int32_t is_inside;       /* all rows of the window */
} ew_dsp_cursor;

static void ew_dsp_begin_row(const ew_dsp_convolution *layer, uint8_t *y, const ew_part *part, ew_dsp_cursor *at)
{
    const int32_t column = layer->is_backward ? part->right - 1 : part->left;
    at->rest = part->right - part->left;
    at->i = at->row * layer->row_stride - layer->top;
    at->j = column * layer->stride - layer->left;
    at->is_inside = at->i >= 0 && at->i + (layer->rows - 1) * layer->row_step < layer->height;
    at->to = y + ew_row(&layer->y, at->row) + column * layer->y.pixel;
}

static void ew_dsp_next(const ew_dsp_convolution *layer, uint8_t *y, const ew_part *part, ew_dsp_cursor *at)
{
    const int32_t step = layer->is_backward ? -1 : 1;
    if (--at->rest) {
        at->j += step * layer->stride;
        at->to += step * layer->y.pixel;
    } else {
        at->row += step;
        ew_dsp_begin_row(layer, y, part, at);
    }
}

#ifdef EW_HAS_SPLIT
/* Split columns of two windows that lie inside. */
static void ew_dsp_two_windows(const ew_dsp_convolution *layer, const uint8_t *x, const ew_dsp_cursor *one,
                               const ew_dsp_cursor *two, uint32_t minus, uint32_t *to)
{
    const uint8_t *a = x + one->j * layer->x.pixel, *b = x + two->j * layer->x.pixel;
    const int32_t words = layer->depth >> 2, gap = layer->step * layer->x.pixel - layer->depth;
    for (int32_t ky = 0, row = 0; ky < layer->rows; ky++, row += layer->row_step, to += 4 * layer->runs)
        ew_dsp_two_split(a + ew_row(&layer->x, one->i + row), b + ew_row(&layer->x, two->i + row), to, words, minus,
                         16 * layer->rows * layer->runs, layer->runs, gap);
}
#endif

/* `is_circular`: x is a rolling buffer, where rows begin again. */
EW_INLINE void ew_dsp_by_pairs(const ew_dsp_convolution *layer, const void *x, void *y, const ew_part *part,
                               void *columns, int32_t is_circular)
{
    const uint8_t *bytes = (const uint8_t *)x;
    const uint32_t minus = ((uint32_t)-layer->zero & 0xFFFFu) * 0x10001u, flip = layer->flip * 0x01010101u;
    const int32_t length = layer->pixels * layer->depth;
    const int32_t last = layer->width - (layer->runs * layer->pixels - 1) * layer->step; /* first tap: before it */
    int32_t count = (part->bottom - part->top) * (part->right - part->left);
    ew_dsp_work work;
    ew_dsp_cursor at;
    ew_dsp_open(&layer->sums, &work);
    at.row = layer->is_backward ? part->bottom - 1 : part->top;
    ew_dsp_begin_row(layer, (uint8_t *)y, part, &at);
    for (; count > 0; count -= 2) {
        uint32_t *to = (uint32_t *)columns;
        const ew_dsp_cursor one = at;
        if (count > 1) /* a last pixel without a partner is its own */
            ew_dsp_next(layer, (uint8_t *)y, part, &at);
        const int32_t is_inside =
            one.is_inside && at.is_inside && one.j >= 0 && at.j >= 0 && one.j < last && at.j < last;
#ifdef EW_HAS_SPLIT
        if (is_inside && layer->is_split)
            ew_dsp_two_windows(layer, bytes, &one, &at, minus, to);
        else
#endif
        if (is_inside && is_circular) {
            const uint8_t *a = bytes + one.j * layer->x.pixel, *b = bytes + at.j * layer->x.pixel;
            for (int32_t ky = 0; ky < layer->rows; ky++) {
                const int32_t i = ky * layer->row_step, up = ew_row(&layer->x, one.i + i);
                const int32_t down = ew_row(&layer->x, at.i + i);
                for (int32_t kx = 0, tap = 0; kx < layer->runs; kx++, tap += layer->step * layer->x.pixel)
                    to = ew_dsp_two_runs(a + up + tap, b + down + tap, length, minus, flip, to);
            }
        } else if (is_inside) {
            const uint8_t *a = bytes + one.i * layer->x.row + one.j * layer->x.pixel;
            const uint8_t *b = bytes + at.i * layer->x.row + at.j * layer->x.pixel;
            for (int32_t ky = 0, line = 0; ky < layer->rows; ky++, line += layer->row_step * layer->x.row)
                for (int32_t kx = 0, tap = line; kx < layer->runs; kx++, tap += layer->step * layer->x.pixel)
                    to = ew_dsp_two_runs(a + tap, b + tap, length, minus, flip, to);
        } else {
            ew_dsp_gather(layer, bytes, one.i, one.j, minus, to);
            ew_dsp_gather(layer, bytes, at.i, at.j, minus, to + 1);
        }
        layer->pairs(&work, (const uint32_t *)columns, one.to, at.to);
        if (count > 2)
            ew_dsp_next(layer, (uint8_t *)y, part, &at);
    }
}

void ew_dsp_conv(const ew_dsp_convolution *layer, const void *x, void *y, const ew_part *part, void *columns)
{
    ew_dsp_by_pairs(layer, x, y, part, columns, 0);
}

void ew_dsp_conv_circular(const ew_dsp_convolution *layer, const void *x, void *y, const ew_part *part, void *columns)
{
    ew_dsp_by_pairs(layer, x, y, part, columns, 1);
}
