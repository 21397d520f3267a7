/* The fixed register map of PULPino's GPIO: 64 bytes. */
#ifndef GPIO_REGISTERS_H
#define GPIO_REGISTERS_H

#include "register.h"

#define GPIO_BASE 0x1a101000u
#define GPIO_PADDIR REG(GPIO_BASE + 0x00u)
#define GPIO_PADIN REG(GPIO_BASE + 0x04u)
#define GPIO_PADOUT REG(GPIO_BASE + 0x08u)
#define GPIO_INTEN REG(GPIO_BASE + 0x0cu)
#define GPIO_INTTYPE0 REG(GPIO_BASE + 0x10u)
#define GPIO_INTTYPE1 REG(GPIO_BASE + 0x14u)
#define GPIO_INTSTATUS REG(GPIO_BASE + 0x18u)
#define GPIO_PADFUN REG(GPIO_BASE + 0x1cu)
#define GPIO_PADCFG(pin) REG(GPIO_BASE + 0x20u + ((pin) & ~3u)) /* four pads in each */

#define GPIO_PADCFG_SHIFT(pin) (((pin) & 3u) * 8u)
#define GPIO_PADCFG_MASK 0xffu
#define GPIO_INTTYPE0_BIT 1u
#define GPIO_INTTYPE1_BIT 2u

#endif
