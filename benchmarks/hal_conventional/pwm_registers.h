/* The fixed register map of the timer, as such peripherals have it: 44 bytes. */
#ifndef PWM_REGISTERS_H
#define PWM_REGISTERS_H

#include "register.h"

#define PWM_BASE 0x1a109000u
#define PWM_CTRL REG(PWM_BASE + 0x00u)
#define PWM_PRESCALER REG(PWM_BASE + 0x04u)
#define PWM_PERIOD REG(PWM_BASE + 0x08u)
#define PWM_COUNT REG(PWM_BASE + 0x0cu)
#define PWM_OUTPUT REG(PWM_BASE + 0x10u)
#define PWM_IRQ REG(PWM_BASE + 0x14u)
#define PWM_STATUS REG(PWM_BASE + 0x18u)
#define PWM_COMPARE(channel) REG(PWM_BASE + 0x1cu + 4u * (channel))

#define PWM_CTRL_ENABLE (1u << 0)
#define PWM_CTRL_CENTRED (1u << 1)
#define PWM_OUTPUT_ENABLE(channel) (1u << (4u * (channel)))
#define PWM_OUTPUT_INVERTED(channel) (2u << (4u * (channel)))
#define PWM_CHANNEL(channel) (1u << (channel))

#endif
