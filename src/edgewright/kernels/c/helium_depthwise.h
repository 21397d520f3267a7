/* Depthwise convolution of int8 with M-profile vectors: sixteen channels of a pixel at a time. */
#ifndef EW_HELIUM_DEPTHWISE_H
#define EW_HELIUM_DEPTHWISE_H

#include "helium.h"

#define EW_MOST_TAPS 32

/* The pixels of `part`; products.depth (taps) is EW_MOST_TAPS at most. Weights: tap by tap, channels side by side. */
void ew_helium_depthwise(const ew_convolution *p, const int8_t *x, uint8_t *y, ew_part part);

#endif /* EW_HELIUM_DEPTHWISE_H */
