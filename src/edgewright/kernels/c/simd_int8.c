#include "simd_dot.h"
#include "simd_int8.h"
#include "simd_int8_dots.h"

#if !EW_HAS_DOTS
/* What the bytes of the tile are larger than the numbers they stand for. */
static int32_t ew_simd_surplus(const ew_simd_int8 *conv)
{
    return conv->zero + (conv->is_signed && !EW_DOT_SIGNED ? 128 : !conv->is_signed && EW_DOT_SIGNED ? -128 : 0);
}

/* Some pixels of a tile times two vectors of channels. */
typedef struct {
    const uint8_t *tile; /* of the first pixel */
    int32_t depth; /* bytes per pixel, a multiple of 4 */
    const int8_t *first, *second; /* panels, from the first of these bytes on */
    const int32_t *start; /* of the sums; NULL: continue those there are */
    int32_t (*sums)[2 * EW_LANES];
} ew_simd_dots;

#if EW_LANES == 16
#define EW_SIMD_DOTS 12
#elif EW_LANES == 8
#define EW_SIMD_DOTS 4
#elif defined(__aarch64__)
#define EW_SIMD_DOTS 8
#else
#define EW_SIMD_DOTS 2
#endif

#define EW_DOTS_1(X) X(0)
#define EW_DOTS_2(X) EW_DOTS_1(X) X(1)
#define EW_DOTS_3(X) EW_DOTS_2(X) X(2)
#define EW_DOTS_4(X) EW_DOTS_3(X) X(3)
#define EW_DOTS_6(X) EW_DOTS_4(X) X(4) X(5)
#define EW_DOTS_8(X) EW_DOTS_6(X) X(6) X(7)
#define EW_DOTS_10(X) EW_DOTS_8(X) X(8) X(9)
#define EW_DOTS_12(X) EW_DOTS_10(X) X(10) X(11)

#define EW_DOT_DECLARE(i) ew_vi s##i, t##i;
#define EW_DOT_START(i) s##i = b0; t##i = b1;
#define EW_DOT_LOAD(i) s##i = ew_vi_load(job->sums[i]); t##i = ew_vi_load(job->sums[i] + EW_LANES);
#define EW_DOT_STEP(i) { const ew_dot_x v = ew_dot_input(a + (i) * EW_SIMD_STEP); s##i = ew_dot(s##i, v, w0); t##i = ew_dot(t##i, v, w1); }
#define EW_DOT_ONE(i) s##i = ew_dot(s##i, ew_dot_input(a + (i) * EW_SIMD_STEP), w0);
#define EW_DOT_STORE(i) ew_vi_store(job->sums[i], s##i); ew_vi_store(job->sums[i] + EW_LANES, t##i);

/* Without a second panel the second vector of sums is left as it began. */
#define EW_DOTS(n)                                                                              \
    static void ew_simd_dots_##n(const ew_simd_dots *job)                                       \
    {                                                                                           \
        const int8_t *first = job->first, *second = job->second;                                \
        const uint8_t *a = job->tile, *const end = a + job->depth;                              \
        EW_DOTS_##n(EW_DOT_DECLARE)                                                             \
        if (job->start) {                                                                       \
            const ew_vi b0 = ew_vi_load(job->start), b1 = ew_vi_load(job->start + EW_LANES);    \
            EW_DOTS_##n(EW_DOT_START)                                                           \
        } else {                                                                                \
            EW_DOTS_##n(EW_DOT_LOAD)                                                            \
        }                                                                                       \
        if (second) {                                                                           \
            for (; a < end; a += 4, first += 4 * EW_PANEL, second += 4 * EW_PANEL) {            \
                const ew_dot_w w0 = ew_dot_weights(first), w1 = ew_dot_weights(second);         \
                EW_DOTS_##n(EW_DOT_STEP)                                                        \
            }                                                                                   \
        } else {                                                                                \
            for (; a < end; a += 4, first += 4 * EW_PANEL) {                                    \
                const ew_dot_w w0 = ew_dot_weights(first);                                      \
                EW_DOTS_##n(EW_DOT_ONE)                                                         \
            }                                                                                   \
        }                                                                                       \
        EW_DOTS_##n(EW_DOT_STORE)                                                               \
    }

EW_DOTS(1)
EW_DOTS(2)
#if EW_SIMD_DOTS > 2
EW_DOTS(3)
EW_DOTS(4)
#endif
#if EW_SIMD_DOTS > 4
EW_DOTS(6)
EW_DOTS(8)
#endif
#if EW_SIMD_DOTS > 8
EW_DOTS(10)
EW_DOTS(12)
#endif

/* As many of `count` pixels as one call takes; how many that were. */
static int32_t ew_simd_some_dots(const ew_simd_dots *job, int32_t count)
{
#if EW_SIMD_DOTS > 8
    if (count >= 12)
        return ew_simd_dots_12(job), 12;
    if (count >= 10)
        return ew_simd_dots_10(job), 10;
#endif
#if EW_SIMD_DOTS > 4
    if (count >= 8)
        return ew_simd_dots_8(job), 8;
    if (count >= 6)
        return ew_simd_dots_6(job), 6;
#endif
#if EW_SIMD_DOTS > 2
    if (count >= 4)
        return ew_simd_dots_4(job), 4;
    if (count == 3)
        return ew_simd_dots_3(job), 3;
#endif
    if (count >= 2)
        return ew_simd_dots_2(job), 2;
    return ew_simd_dots_1(job), 1;
}

/* All blocks of `count` pixels for two vectors of channels. */
static void ew_simd_sum_up(
    const ew_simd_int8 *conv, const uint8_t *tile, int32_t lines, int32_t count, int32_t column, const int32_t *start,
    int32_t (*sums)[2 * EW_LANES])
{
    const int32_t total = (conv->kernel_y * conv->kernel_x * conv->depth + 3) / 4 * 4;
    const int32_t next = column + EW_LANES;
    for (int32_t from = 0; from < total; from += EW_SIMD_BYTES, tile += lines * EW_SIMD_STEP) {
        const int8_t *const panels = conv->weights + from * EW_PANEL;
        const size_t all = (size_t)total * EW_PANEL;
        ew_simd_dots job = {NULL, 0, NULL, NULL, NULL, NULL};
        job.depth = ew_min(EW_SIMD_BYTES, total - from);
        job.first = panels + (size_t)(column / EW_PANEL) * all + column % EW_PANEL * 4;
        if (next < conv->channels)
            job.second = panels + (size_t)(next / EW_PANEL) * all + next % EW_PANEL * 4;
        job.start = from == 0 ? start : NULL;
        for (int32_t done = 0; done < count;) {
            job.tile = tile + done * EW_SIMD_STEP;
            job.sums = sums + done;
            done += ew_simd_some_dots(&job, count - done);
        }
    }
}

/* All channels of the pixels in a tile. */
static void ew_simd_dot_tile(const ew_simd_int8 *conv, const uint8_t *tile, int32_t count, uint8_t *const *rows)
{
    int32_t sums[EW_SIMD_DOTS][2 * EW_LANES], start[2 * EW_LANES];
    const int32_t surplus = ew_simd_surplus(conv);
    for (int32_t column = 0; column < conv->channels; column += 2 * EW_LANES) {
        const int32_t columns = ew_min(2 * EW_LANES, conv->channels - column);
        const int32_t whole = columns > EW_LANES ? 2 * EW_LANES : EW_LANES; /* tables end with whole panels */
        for (int32_t i = 0; i < 2 * EW_LANES; i++)
            start[i] = i < whole ? (int32_t)((conv->finish.bias ? (uint32_t)conv->finish.bias[column + i] : 0u) -
                                             (uint32_t)surplus * (uint32_t)conv->totals[column + i])
                                 : 0;
        for (int32_t done = 0; done < count; done += EW_SIMD_DOTS) {
            const int32_t some = ew_min(EW_SIMD_DOTS, count - done);
            ew_simd_sum_up(conv, tile + done * EW_SIMD_STEP, count, some, column, start, sums);
            for (int32_t n = 0; n < some && !conv->finish.bias; n++) {
                int32_t *const to = (int32_t *)(void *)rows[done + n] + column;
                for (int32_t i = 0; i < columns; i++)
                    to[i] += sums[n][i];
            }
            for (int32_t shift = 0; shift < whole && conv->finish.bias; shift += EW_LANES) {
                const ew_simd_ending ending = ew_simd_prepared(&conv->finish, column + shift);
                for (int32_t n = 0; n < some; n++)
                    ew_simd_put(
                        rows[done + n] + column + shift, ew_simd_stored(&ending, ew_vi_load(sums[n] + shift)),
                        columns - shift);
            }
        }
    }
}
#endif

/* Bytes of padding, or of a row of the image, for a window that reaches beyond the row, or whose taps lie apart. */
static void ew_simd_pack_edge(
    const ew_simd_int8 *conv, const uint8_t *x, int32_t side, int32_t from, int32_t until, uint8_t flip, uint8_t *to)
{
    for (int32_t k = from / conv->depth; from < until; k++) {
        const int32_t skip = from - k * conv->depth, run = ew_min(conv->depth - skip, until - from);
        const int32_t j = side + k * conv->dilation_x;
        if (x && j >= 0 && j < conv->width)
            ew_simd_flipped(to, x + j * conv->in.pixel + skip, run, flip);
        else
            memset(to, (uint8_t)((uint8_t)conv->zero ^ flip), (size_t)run);
        to += run;
        from += run;
    }
}

/* Bytes from..until of row k of the windows of `count` pixels side by side, the first at column `side` of the image. */
static void ew_simd_pack_row(
    const ew_simd_int8 *conv, const uint8_t *x, int32_t side, int32_t count, int32_t from, int32_t until, uint8_t *to)
{
    const uint8_t flip = conv->is_signed != EW_DOT_SIGNED ? 0x80 : 0;
    const int32_t is_joined = conv->kernel_x == 1 || (conv->dilation_x == 1 && conv->in.pixel == conv->depth);
    const int32_t last = x && is_joined ? conv->width - conv->kernel_x : -1; /* column of the last whole window */
    const int32_t step = conv->stride_x, pixel = conv->in.pixel, run = until - from;
    for (int32_t n = 0; n < count; n++, side += step, to += EW_SIMD_STEP)
        if (side >= 0 && side <= last)
            ew_simd_flipped(to, x + side * pixel + from, run, flip);
        else
            ew_simd_pack_edge(conv, x, side, from, until, flip, to);
}

/* Block `from`.. of a tile: row by row of the windows, for pixels of one output row at a time. */
static void ew_simd_pack_block(
    const ew_simd_int8 *conv, const uint8_t *x, ew_part part, int32_t first, int32_t count, int32_t from, uint8_t *tile)
{
    const int32_t width = part.right - part.left, unit = conv->kernel_x * conv->depth;
    const int32_t until = ew_min(from + EW_SIMD_BYTES, conv->kernel_y * unit);
    int32_t row = part.top + first / width, column = part.left + first % width;
    for (int32_t done = 0, some; done < count; done += some, row++, column = part.left) {
        uint8_t *const line = tile + done * EW_SIMD_STEP;
        some = ew_min(count - done, part.right - column);
        for (int32_t k = 0; k < conv->kernel_y; k++) {
            const int32_t i = row * conv->stride_y - conv->top + k * conv->dilation_y;
            const int32_t begin = ew_max(from, k * unit), end = ew_min(until, (k + 1) * unit);
            if (begin < end)
                ew_simd_pack_row(
                    conv, i >= 0 && i < conv->height ? x + ew_row(&conv->in, i) : NULL,
                    column * conv->stride_x - conv->left, some, begin - k * unit, end - k * unit, line + begin - from);
        }
    }
    for (int32_t end = until - from; end % 4; end++) /* meets weights that are zero */
        for (int32_t n = 0; n < count; n++)
            tile[n * EW_SIMD_STEP + end] = 0;
}

/* Where the tile's pixels go. */
static void ew_simd_lines_of(
    const ew_simd_int8 *conv, uint8_t *y, ew_part part, int32_t first, int32_t count, uint8_t **rows)
{
    const int32_t width = part.right - part.left;
    int32_t row = part.top + first / width, column = part.left + first % width;
    for (int32_t n = 0; n < count; n++) {
        rows[n] = y + ew_row(&conv->out, row) + column * conv->out.pixel;
        if (++column == part.right) {
            column = part.left;
            row++;
        }
    }
}

void ew_simd_int8_run(const ew_simd_int8 *conv, const void *x, void *y, ew_part part, uint8_t *tile)
{
    const int32_t pixels = (part.bottom - part.top) * (part.right - part.left);
    const int32_t total = conv->kernel_y * conv->kernel_x * conv->depth;
    uint8_t *rows[EW_SIMD_LINES];
#if EW_HAS_DOTS
    if (ew_panel_run(conv, (const uint8_t *)x, (uint8_t *)y, part, tile))
        return;
#endif
    for (int32_t done = 0; done < pixels; done += conv->rows) {
        const int32_t count = ew_min(conv->rows, pixels - done);
        const int32_t first = conv->is_backward ? pixels - done - count : done;
        uint8_t *block = tile;
        for (int32_t from = 0; from < total; from += EW_SIMD_BYTES, block += count * EW_SIMD_STEP)
            ew_simd_pack_block(conv, (const uint8_t *)x, part, first, count, from, block);
        ew_simd_lines_of(conv, (uint8_t *)y, part, first, count, rows);
#if EW_HAS_DOTS
        ew_panel_tile(conv, tile, count, rows);
#else
        ew_simd_dot_tile(conv, tile, count, rows);
#endif
    }
}
