/* What lies at the places of a matrix times (column, row, 0, 1), a mixture of four pixels; 0 outside the image. */
void ew_transform_bilinear(const float *x, const ew_image *in, const float *matrix, float *y, const ew_image *out,
                           const ew_part *part, int32_t height, int32_t width, int32_t depth)
{
    const float *const h = matrix, *const v = matrix + 4;
    const float h0 = h[3] + (h[0] * 0.5f + h[1] * 0.5f - 0.5f), v0 = v[3] + (v[0] * 0.5f + v[1] * 0.5f - 0.5f);
    for (int32_t row = part->top; row < part->bottom; row++) {
        for (int32_t column = part->left; column < part->right; column++) {
            const float at_x = h[0] * (float)column + h[1] * (float)row + h0;
            const float at_y = v[0] * (float)column + v[1] * (float)row + v0;
            const int is_in = at_x >= 0.0f && at_x <= (float)(width - 1) && at_y >= 0.0f && at_y <= (float)(height - 1);
            const int32_t left = is_in ? (int32_t)at_x : 0, top = is_in ? (int32_t)at_y : 0;
            const int32_t right = ew_min(left + 1, width - 1), bottom = ew_min(top + 1, height - 1);
            const float across = at_x - (float)left, down = at_y - (float)top;
            const float *const upper = x + ew_row(in, top), *const lower = x + ew_row(in, bottom);
            float *const pixel = y + ew_row(out, row) + column * out->pixel;
            for (int32_t c = 0; c < depth; c++) {
                const float a = (1.0f - across) * upper[left * in->pixel + c] + across * upper[right * in->pixel + c];
                const float b = (1.0f - across) * lower[left * in->pixel + c] + across * lower[right * in->pixel + c];
                pixel[c] = is_in ? (1.0f - down) * a + down * b : 0.0f;
            }
        }
    }
}
