#include "simd_int8_dots.h"

#if EW_HAS_DOTS
/* Pixels times a panel of channels. Bytes of a pixel come in pieces. */
typedef struct {
    const uint8_t *const *x; /* the first piece of each pixel */
    uint8_t *const *y;
    int32_t piece, total; /* bytes of each piece but the last, and of all; multiples of 4 */
    size_t apart; /* bytes from piece to piece */
    const int8_t *weights;
    int32_t start[EW_PANEL]; /* of the sums */
    const ew_panel_ending *ending; /* NULL: y are sums that are added to */
    int32_t column, columns; /* of the panel in y */
} ew_panel_job;

#define EW_ROWS_1(X) X(0)
#define EW_ROWS_2(X) EW_ROWS_1(X) X(1)
#define EW_ROWS_4(X) EW_ROWS_2(X) X(2) X(3)
#define EW_ROWS_8(X) EW_ROWS_4(X) X(4) X(5) X(6) X(7)

#define EW_PANEL_LOAD(i) x##i = vld1q_s8((const int8_t *)x[i] + at);
#define EW_PANEL_DOT(i, lane, a, w) a##i = vdotq_laneq_s32(a##i, w, x##i, lane);

/* Vectors a and b, or a to d, of a panel's channels. */
#define EW_HALF_START(i) int32x4_t a##i = start0, b##i = start1; int8x16_t x##i;
#define EW_HALF_STEP(i, lane) EW_PANEL_DOT(i, lane, a, w0) EW_PANEL_DOT(i, lane, b, w1)
#define EW_HALF_STORE(i) vst1q_s32(sums[i], a##i); vst1q_s32(sums[i] + 4, b##i);
#define EW_HALF_FINISH(i, kind) ew_panel_put(y[i], ew_panel_half(ending, kind, a##i, b##i), job->columns);
#define EW_HALF_WEIGHTS const int8x16_t w0 = vld1q_s8(w), w1 = vld1q_s8(w + 16);
#define EW_FULL_START(i) EW_HALF_START(i) int32x4_t c##i = start2, d##i = start3;
#define EW_FULL_STEP(i, lane) EW_HALF_STEP(i, lane) EW_PANEL_DOT(i, lane, c, w2) EW_PANEL_DOT(i, lane, d, w3)
#define EW_FULL_STORE(i) EW_HALF_STORE(i) vst1q_s32(sums[i] + 8, c##i); vst1q_s32(sums[i] + 12, d##i);
#define EW_FULL_FINISH(i, kind) ew_panel_put(y[i], ew_panel_bytes(ending, kind, a##i, b##i, c##i, d##i), job->columns);
#define EW_FULL_WEIGHTS EW_HALF_WEIGHTS const int8x16_t w2 = vld1q_s8(w + 32), w3 = vld1q_s8(w + 48);

#define EW_HALF_LANE_0(i) EW_HALF_STEP(i, 0)
#define EW_HALF_LANE_1(i) EW_HALF_STEP(i, 1)
#define EW_HALF_LANE_2(i) EW_HALF_STEP(i, 2)
#define EW_HALF_LANE_3(i) EW_HALF_STEP(i, 3)
#define EW_FULL_LANE_0(i) EW_FULL_STEP(i, 0)
#define EW_FULL_LANE_1(i) EW_FULL_STEP(i, 1)
#define EW_FULL_LANE_2(i) EW_FULL_STEP(i, 2)
#define EW_FULL_LANE_3(i) EW_FULL_STEP(i, 3)
#define EW_PANEL_FOUR(n, size, lane)                                                            \
    {                                                                                           \
        EW_##size##_WEIGHTS                                                                     \
        EW_ROWS_##n(EW_##size##_LANE_##lane)                                                    \
        w += 4 * EW_PANEL;                                                                      \
    }

#define EW_HALF_FINISH_PLAIN(i) EW_HALF_FINISH(i, EW_PANEL_NO_TIES)
#define EW_HALF_FINISH_TIES(i) EW_HALF_FINISH(i, EW_PANEL_TIES)
#define EW_FULL_FINISH_PLAIN(i) EW_FULL_FINISH(i, EW_PANEL_NO_TIES)
#define EW_FULL_FINISH_TIES(i) EW_FULL_FINISH(i, EW_PANEL_TIES)

/* Whatever else becomes of the sums of some pixels. */
static void ew_panel_other_ends(const ew_panel_job *job, int32_t first, int32_t count, const int32_t (*sums)[EW_PANEL])
{
    for (int32_t n = 0; n < count; n++) {
        const int32_t *const s = sums[n];
        if (job->ending) {
            const uint8x16_t bytes = ew_panel_bytes(
                job->ending, job->ending->kind, vld1q_s32(s), vld1q_s32(s + 4), vld1q_s32(s + 8), vld1q_s32(s + 12));
            ew_panel_put(job->y[first + n] + job->column, bytes, job->columns);
        } else {
            int32_t *const to = (int32_t *)(void *)job->y[first + n] + job->column;
            for (int32_t i = 0; i < job->columns; i++)
                to[i] += s[i];
        }
    }
}

/* Pixels from `done` on, n at a time while there are as many; the first that is left. Reads up to 12 bytes behind the last
 * of a pixel. */
#define EW_PANEL_PIXELS(n, size)                                                                \
    static int32_t ew_panel_pixels_##size##_##n(const ew_panel_job *job, int32_t done, int32_t count) \
    {                                                                                           \
        const ew_panel_ending *const ending = job->ending;                                      \
        const int32_t kind = ending ? ending->kind : EW_PANEL_REAL;                             \
        const int32_t total = job->total, piece = job->piece;                                   \
        for (; done + n <= count; done += n) {                                                  \
            const uint8_t *const *const x = job->x + done;                                      \
            const int8_t *w = job->weights;                                                     \
            const int32x4_t start0 = vld1q_s32(job->start), start1 = vld1q_s32(job->start + 4); \
            const int32x4_t start2 = vld1q_s32(job->start + 8), start3 = vld1q_s32(job->start + 12); \
            size_t from = 0;                                                                    \
            EW_ROWS_##n(EW_##size##_START)                                                      \
            (void)start2, (void)start3;                                                         \
            for (int32_t left = total; left > 0; left -= piece, from += job->apart) {           \
                size_t at = from;                                                               \
                int32_t some = ew_min(piece, left);                                             \
                for (; some >= 16; some -= 16, at += 16) {                                      \
                    EW_ROWS_##n(EW_PANEL_LOAD)                                                  \
                    EW_PANEL_FOUR(n, size, 0)                                                   \
                    EW_PANEL_FOUR(n, size, 1)                                                   \
                    EW_PANEL_FOUR(n, size, 2)                                                   \
                    EW_PANEL_FOUR(n, size, 3)                                                   \
                }                                                                               \
                if (some > 0) {                                                                 \
                    EW_ROWS_##n(EW_PANEL_LOAD)                                                  \
                    EW_PANEL_FOUR(n, size, 0)                                                   \
                    if (some > 4)                                                               \
                        EW_PANEL_FOUR(n, size, 1)                                               \
                    if (some > 8)                                                               \
                        EW_PANEL_FOUR(n, size, 2)                                               \
                }                                                                               \
            }                                                                                   \
            if (kind <= EW_PANEL_TIES) {                                                        \
                uint8_t *y[n];                                                                  \
                for (int32_t i = 0; i < n; i++)                                                 \
                    y[i] = job->y[done + i] + job->column;                                      \
                if (kind == EW_PANEL_NO_TIES) {                                                 \
                    EW_ROWS_##n(EW_##size##_FINISH_PLAIN)                                       \
                } else {                                                                        \
                    EW_ROWS_##n(EW_##size##_FINISH_TIES)                                        \
                }                                                                               \
            } else {                                                                            \
                int32_t sums[n][EW_PANEL] = {{0}};                                              \
                EW_ROWS_##n(EW_##size##_STORE)                                                  \
                ew_panel_other_ends(job, done, n, (const int32_t(*)[EW_PANEL])sums);            \
            }                                                                                   \
        }                                                                                       \
        return done;                                                                            \
    }

EW_PANEL_PIXELS(1, HALF)
EW_PANEL_PIXELS(2, HALF)
EW_PANEL_PIXELS(8, HALF)
EW_PANEL_PIXELS(1, FULL)
EW_PANEL_PIXELS(2, FULL)
EW_PANEL_PIXELS(4, FULL)

/* All channels of `count` pixels. */
static void ew_panel_pixels(const ew_simd_int8 *conv, ew_panel_job *job, int32_t count)
{
    const int32x4_t surplus = vdupq_n_s32(conv->zero - (conv->is_signed ? 0 : 128));
    const int32_t kind = conv->finish.bias ? ew_panel_kind(&conv->finish, conv->channels) : EW_PANEL_REAL;
    job->weights = conv->weights;
    for (int32_t column = 0; column < conv->channels; column += EW_PANEL, job->weights += (size_t)job->total * EW_PANEL) {
        ew_panel_ending ending;
        job->column = column;
        job->columns = ew_min(EW_PANEL, conv->channels - column);
        for (int32_t i = 0; i < EW_PANEL; i += 4) {
            const int32x4_t bias = conv->finish.bias ? vld1q_s32(conv->finish.bias + column + i) : vdupq_n_s32(0);
            vst1q_s32(job->start + i, vmlsq_s32(bias, vld1q_s32(conv->totals + column + i), surplus));
        }
        job->ending = conv->finish.bias ? &ending : NULL;
        if (conv->finish.bias)
            ending = ew_panel_prepared(&conv->finish, kind, column);
        if (job->columns <= 8)
            ew_panel_pixels_HALF_1(job, ew_panel_pixels_HALF_2(job, ew_panel_pixels_HALF_8(job, 0, count), count), count);
        else
            ew_panel_pixels_FULL_1(job, ew_panel_pixels_FULL_2(job, ew_panel_pixels_FULL_4(job, 0, count), count), count);
    }
}

void ew_panel_tile(const ew_simd_int8 *conv, const uint8_t *tile, int32_t count, uint8_t *const *rows)
{
    const uint8_t *pixels[EW_SIMD_LINES];
    ew_panel_job job = {pixels, rows, EW_SIMD_BYTES, 0, (size_t)count * EW_SIMD_STEP, NULL, {0}, NULL, 0, 0};
    job.total = (conv->kernel_y * conv->kernel_x * conv->depth + 3) / 4 * 4;
    for (int32_t n = 0; n < count; n++)
        pixels[n] = tile + n * EW_SIMD_STEP;
    ew_panel_pixels(conv, &job, count);
}

#define EW_PANEL_LINES (24 << 10) /* bytes of rows that are kept at once, if one output row does not need more */
#define EW_PANEL_SLACK 16 /* bytes that are read behind a pixel, and written behind a gathered run */

/* Rows of the image with their padding, as many as some rows of the output need; and windows gathered from them, where
 * their rows are not made of whole fours. */
typedef struct {
    uint8_t *lines, *windows;
    int32_t line; /* bytes of a row */
    int32_t window; /* bytes from window to window; 0: none are gathered */
    int32_t height; /* rows of the output at once */
} ew_panel_lines;

/* How the room is used; false if it does not hold the rows of a window. */
static int32_t ew_panel_plan(const ew_simd_int8 *conv, ew_part part, uint8_t *room, ew_panel_lines *found)
{
    const int32_t unit = conv->kernel_x * conv->depth, total = conv->kernel_y * unit;
    const int32_t blocks = (total + EW_SIMD_BYTES - 1) / EW_SIMD_BYTES;
    const int32_t reach = (conv->kernel_y - 1) * conv->dilation_y + 1, height = part.bottom - part.top;
    const int32_t columns = (part.right - part.left - 1) * conv->stride_x + (conv->kernel_x - 1) * conv->dilation_x + 1;
    int32_t bytes = conv->rows * EW_SIMD_STEP * blocks - EW_PANEL_SLACK, rows;
    found->line = columns * conv->depth;
    found->lines = room;
    found->windows = room;
    found->window = 0;
    if (unit % 4 || (conv->dilation_x > 1 && conv->kernel_x > 1)) {
        found->window = (total + 15) / 16 * 16 + EW_PANEL_SLACK;
        found->lines = room + EW_SIMD_LINES * found->window;
        bytes -= EW_SIMD_LINES * found->window;
    }
    if ((int64_t)reach * found->line > bytes)
        return 0;
    rows = ew_max(reach, ew_min(bytes, EW_PANEL_LINES) / found->line);
    found->height = ew_min(height, 1 + (rows - reach) / conv->stride_y);
    return 1;
}

/* The taps of windows side by side, from rows of the image; 16 bytes are copied for each run of up to 16. */
static void ew_panel_gather(
    const ew_simd_int8 *conv, const ew_panel_lines *kept, const uint8_t *from, int32_t count, uint8_t *to)
{
    const int32_t runs = conv->dilation_x > 1 ? conv->kernel_x : 1;
    const int32_t run = conv->kernel_x / runs * conv->depth, next = conv->dilation_x * conv->depth;
    const int32_t down = conv->dilation_y * kept->line, total = conv->kernel_y * conv->kernel_x * conv->depth;
    const int32_t is_short = runs == 1 && run <= 16 && conv->kernel_y == 3;
    const int32_t step = conv->stride_x * conv->depth, window = kept->window;
    const uint8x8_t none = vdup_n_u8(0); /* meets weights that are zero */
    for (int32_t n = 0; n < count; n++, from += step, to += window) {
        uint8_t *tap = to;
        if (is_short) { /* three rows of a few channels: where most networks begin */
            vst1q_u8(to, vld1q_u8(from));
            vst1q_u8(to + run, vld1q_u8(from + down));
            vst1q_u8(to + 2 * run, vld1q_u8(from + 2 * down));
            vst1_u8(to + total, none);
            continue;
        }
        for (int32_t ky = 0; ky < conv->kernel_y; ky++)
            for (int32_t k = 0; k < runs; k++, tap += run)
                for (int32_t i = 0; i < run; i += 16)
                    vst1q_u8(tap + i, vld1q_u8(from + ky * down + k * next + i));
        vst1_u8(to + total, none);
    }
}

/* Pixels first..first + count - 1 of a block of the output whose rows are kept: where each is read, and written. */
static void ew_panel_places(
    const ew_simd_int8 *conv, const ew_panel_lines *kept, ew_part block, int32_t first, int32_t count, uint8_t *y,
    const uint8_t **pixels, uint8_t **rows)
{
    const int32_t width = block.right - block.left, step = conv->stride_x * conv->depth;
    int32_t row = first / width, column = first % width;
    for (int32_t done = 0, some; done < count; done += some, row++, column = 0) {
        const uint8_t *from = kept->lines + row * conv->stride_y * kept->line + column * step;
        uint8_t *const to = y + ew_row(&conv->out, block.top + row) + (block.left + column) * conv->out.pixel;
        int32_t next = step;
        some = ew_min(count - done, width - column);
        if (kept->window) {
            ew_panel_gather(conv, kept, from, some, kept->windows + done * kept->window);
            from = kept->windows + done * kept->window;
            next = kept->window;
        }
        for (int32_t n = 0; n < some; n++) {
            pixels[done + n] = from + n * next;
            rows[done + n] = to + n * conv->out.pixel;
        }
    }
}

int32_t ew_panel_run(const ew_simd_int8 *conv, const uint8_t *x, uint8_t *y, ew_part part, uint8_t *room)
{
    const int32_t reach = (conv->kernel_y - 1) * conv->dilation_y + 1;
    const uint8_t *pixels[EW_SIMD_LINES];
    uint8_t *rows[EW_SIMD_LINES];
    ew_panel_job job = {pixels, rows, conv->kernel_x * conv->depth, 0, 0, NULL, {0}, NULL, 0, 0};
    ew_panel_lines kept;
    if (part.right <= part.left || !ew_panel_plan(conv, part, room, &kept))
        return 0;
    job.apart = (size_t)(conv->dilation_y * kept.line);
    job.total = conv->kernel_y * job.piece;
    if (kept.window)
        job.piece = job.total = (job.total + 3) / 4 * 4;
    for (int32_t done = 0, height; done < part.bottom - part.top; done += height) {
        ew_part block = part;
        height = ew_min(kept.height, part.bottom - part.top - done);
        block.top = conv->is_backward ? part.bottom - done - height : part.top + done;
        block.bottom = block.top + height;
        for (int32_t i = 0; i < (height - 1) * conv->stride_y + reach; i++)
            if (i % conv->stride_y < reach)
                ew_panel_line(
                    &conv->in, conv->height, conv->width, conv->depth, x, block.top * conv->stride_y - conv->top + i,
                    part.left * conv->stride_x - conv->left, kept.line / conv->depth, conv->is_signed, conv->zero,
                    kept.lines + i * kept.line);
        for (int32_t first = 0, count, all = height * (part.right - part.left); first < all; first += count) {
            count = ew_min(EW_SIMD_LINES, all - first);
            ew_panel_places(conv, &kept, block, first, count, y, pixels, rows);
            ew_panel_pixels(conv, &job, count);
        }
    }
    return 1;
}
#endif
