/* CMSIS-NN as it is installed: its Include folder must be on the compiler's path, its library linked. */
#ifndef EW_CMSIS_H
#define EW_CMSIS_H

#include <arm_nnfunctions.h>

#include "base.h"

#endif /* EW_CMSIS_H */
