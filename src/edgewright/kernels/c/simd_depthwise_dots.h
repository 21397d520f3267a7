/* Eight-bit depthwise convolutions by dot products of bytes.
 *
 * Rows of the input are kept as bytes while windows need them. For a row of outputs, and sixteen channels at a time, four
 * rows each are laid across: the four bytes of a channel side by side, column after column. Then one instruction adds up
 * four taps of four channels. */
#ifndef EW_SIMD_DEPTHWISE_DOTS_H
#define EW_SIMD_DEPTHWISE_DOTS_H

#include "simd_panel.h"
#include "simd_windows.h"

#if EW_HAS_DOTS
/* Group after group of channels, row after row. False where the room, which is for rows of floats, does not hold all that
 * is kept here. */
int32_t ew_dots_run(const ew_simd_depthwise8 *conv, const uint8_t *x, uint8_t *y, ew_part part, uint8_t *room);
#endif

#endif /* EW_SIMD_DEPTHWISE_DOTS_H */
