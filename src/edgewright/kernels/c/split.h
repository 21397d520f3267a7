/* Part of libraries in which windows of some layers are gathered by channels before taps, so that the weights of fewer
 * channels begin those of more. */
#ifndef EW_SPLIT_H
#define EW_SPLIT_H

#define EW_HAS_SPLIT 1

#endif /* EW_SPLIT_H */
