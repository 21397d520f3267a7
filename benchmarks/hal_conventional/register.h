/* A register at a fixed address. */
#ifndef REGISTER_H
#define REGISTER_H

#include <stdint.h>

#define REG(address) (*(volatile uint32_t *)(address))

#endif
