#include "simd_int8.h"
#include "simd_int8_dots.h"

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
    for (int32_t n = 0; n < count; n++, from += step, to += window) {
        uint8_t *tap = to;
        if (is_short) { /* three rows of a few channels: where most networks begin */
            ew_sixteen_store(to, ew_sixteen_load(from));
            ew_sixteen_store(to + run, ew_sixteen_load(from + down));
            ew_sixteen_store(to + 2 * run, ew_sixteen_load(from + 2 * down));
            memset(to + total, 0, 8); /* meets weights that are zero */
            continue;
        }
        for (int32_t ky = 0; ky < conv->kernel_y; ky++)
            for (int32_t k = 0; k < runs; k++, tap += run)
                for (int32_t i = 0; i < run; i += 16)
                    ew_sixteen_store(tap + i, ew_sixteen_load(from + ky * down + k * next + i));
        memset(to + total, 0, 8);
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

/* Block after block of rows: windows are read where they lie in rows of the input that are packed with their padding, so
 * that every byte is copied once or twice, not once for each window. False where the room does not hold a window's rows. */
static int32_t ew_panel_run(const ew_simd_int8 *conv, const uint8_t *x, uint8_t *y, ew_part part, uint8_t *room)
{
    const int32_t reach = (conv->kernel_y - 1) * conv->dilation_y + 1;
    const uint8_t *pixels[EW_SIMD_LINES];
    uint8_t *rows[EW_SIMD_LINES];
    ew_dot_pixels at = {pixels, rows, conv->kernel_x * conv->depth, 0, 0};
    ew_panel_lines kept;
    if (part.right <= part.left || !ew_panel_plan(conv, part, room, &kept))
        return 0;
    at.apart = (size_t)(conv->dilation_y * kept.line);
    at.total = conv->kernel_y * at.piece;
    if (kept.window)
        at.piece = at.total = (at.total + 3) / 4 * 4;
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
            ew_dot_pixels_run(conv, &at, count);
        }
    }
    return 1;
}

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
    const uint8_t flip = ew_dot_flip(conv->is_signed);
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

/* All channels of the pixels in a tile. */
static void ew_panel_tile(const ew_simd_int8 *conv, const uint8_t *tile, int32_t count, uint8_t *const *rows)
{
    const uint8_t *pixels[EW_SIMD_LINES];
    ew_dot_pixels at = {pixels, rows, EW_SIMD_BYTES, 0, (size_t)count * EW_SIMD_STEP};
    at.total = (conv->kernel_y * conv->kernel_x * conv->depth + 3) / 4 * 4;
    for (int32_t n = 0; n < count; n++)
        pixels[n] = tile + n * EW_SIMD_STEP;
    ew_dot_pixels_run(conv, &at, count);
}

void ew_simd_int8_run(const ew_simd_int8 *conv, const void *x, void *y, ew_part part, uint8_t *tile)
{
    const int32_t pixels = (part.bottom - part.top) * (part.right - part.left);
    const int32_t total = conv->kernel_y * conv->kernel_x * conv->depth;
    uint8_t *rows[EW_SIMD_LINES];
    if (ew_panel_run(conv, (const uint8_t *)x, (uint8_t *)y, part, tile))
        return;
    for (int32_t done = 0; done < pixels; done += conv->rows) {
        const int32_t count = ew_min(conv->rows, pixels - done);
        const int32_t first = conv->is_backward ? pixels - done - count : done;
        uint8_t *block = tile;
        for (int32_t from = 0; from < total; from += EW_SIMD_BYTES, block += count * EW_SIMD_STEP)
            ew_simd_pack_block(conv, (const uint8_t *)x, part, first, count, from, block);
        ew_simd_lines_of(conv, (uint8_t *)y, part, first, count, rows);
        ew_panel_tile(conv, tile, count, rows);
    }
}
