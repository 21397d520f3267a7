/* A transposed convolution with a bias. Element (y, x, c) of an image lies at [ew_row(image, y) + x * pixel + c]. */
void ew_transpose_bias(const float *x, const ew_image *in, const float *w, const float *bias, float *y,
                       const ew_image *out, const ew_part *part, int32_t height, int32_t width, int32_t depth,
                       int32_t outputs, int32_t kernel_rows, int32_t kernel_columns, int32_t stride_rows,
                       int32_t stride_columns, int32_t top, int32_t left)
{
    for (int32_t row = part->top; row < part->bottom; row++) {
        for (int32_t column = part->left; column < part->right; column++) {
            float *const pixel = y + ew_row(out, row) + column * out->pixel;
            for (int32_t k = 0; k < outputs; k++) {
                pixel[k] = bias[k];
            }
            /* The taps that bring an input pixel here. */
            for (int32_t i = (row + top) % stride_rows; i < kernel_rows; i += stride_rows) {
                const int32_t from = (row + top - i) / stride_rows;
                if (row + top < i || from >= height) {
                    continue;
                }
                for (int32_t j = (column + left) % stride_columns; j < kernel_columns; j += stride_columns) {
                    const int32_t at = (column + left - j) / stride_columns;
                    if (column + left < j || at >= width) {
                        continue;
                    }
                    const float *const read = x + ew_row(in, from) + at * in->pixel;
                    for (int32_t k = 0; k < outputs; k++) {
                        const float *const tap = w + ((k * kernel_rows + i) * kernel_columns + j) * depth;
                        for (int32_t c = 0; c < depth; c++) {
                            pixel[k] += read[c] * tap[c];
                        }
                    }
                }
            }
        }
    }
}
