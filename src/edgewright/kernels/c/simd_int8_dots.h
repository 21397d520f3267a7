/* Eight-bit convolutions and dense layers by dot products of bytes: four pixels times sixteen channels in registers, or
 * eight times eight.
 *
 * Rows of the input are packed with their padding, as many as some rows of the output need; windows are read where they
 * lie there. So every byte is copied once or twice, not once for each window. */
#ifndef EW_SIMD_INT8_DOTS_H
#define EW_SIMD_INT8_DOTS_H

#include "simd_panel.h"
#include "simd_tiles.h"

#if EW_HAS_DOTS
/* As ew_simd_int8_run, block after block of rows. False where the room does not hold the rows of a window. */
int32_t ew_panel_run(const ew_simd_int8 *conv, const uint8_t *x, uint8_t *y, ew_part part, uint8_t *room);

/* All channels of the pixels in a tile. */
void ew_panel_tile(const ew_simd_int8 *conv, const uint8_t *tile, int32_t count, uint8_t *const *rows);
#endif

#endif /* EW_SIMD_INT8_DOTS_H */
