/* Pixels times all channels of an eight-bit layer, by dot products of bytes: some pixels times a panel of channels in
 * registers. */
#ifndef EW_SIMD_INT8_DOTS_H
#define EW_SIMD_INT8_DOTS_H

#include "simd_panel.h"
#include "simd_tiles.h"

/* Where the pixels of a layer are. Bytes of each come in pieces; up to 12 behind the last are read. */
typedef struct {
    const uint8_t *const *x; /* the first piece of each pixel */
    uint8_t *const *y;
    int32_t piece, total; /* bytes of each piece but the last, and of all; multiples of 4 */
    size_t apart; /* bytes from piece to piece */
} ew_dot_pixels;

void ew_dot_pixels_run(const ew_simd_int8 *conv, const ew_dot_pixels *at, int32_t count);

#endif /* EW_SIMD_INT8_DOTS_H */
