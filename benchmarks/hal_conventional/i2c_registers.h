/* The fixed register map of the I2C master, as such peripherals have it: 24 bytes. */
#ifndef I2C_REGISTERS_H
#define I2C_REGISTERS_H

#include "register.h"

#define I2C_BASE 0x1a105000u
#define I2C_CTRL REG(I2C_BASE + 0x00u)
#define I2C_DIVIDER REG(I2C_BASE + 0x04u)
#define I2C_TXDATA REG(I2C_BASE + 0x08u)
#define I2C_COMMAND REG(I2C_BASE + 0x0cu)
#define I2C_STATUS REG(I2C_BASE + 0x10u)
#define I2C_RXDATA REG(I2C_BASE + 0x14u)

#define I2C_CTRL_ENABLE (1u << 0)
#define I2C_CTRL_IRQ (1u << 1)
#define I2C_COMMAND_GO (1u << 0)
#define I2C_COMMAND_START (1u << 1)
#define I2C_COMMAND_STOP (1u << 2)
#define I2C_COMMAND_RECEIVE (1u << 3)
#define I2C_COMMAND_REFUSE (1u << 4)
#define I2C_STATUS_BUSY (1u << 0)
#define I2C_STATUS_FAILURE (3u << 1) /* nobody acknowledged, another master was stronger */
#define I2C_STATUS_DONE (1u << 3)

#endif
