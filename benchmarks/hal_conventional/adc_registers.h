/* The fixed register map of the ADC, as such peripherals have it: 52 bytes. */
#ifndef ADC_REGISTERS_H
#define ADC_REGISTERS_H

#include "register.h"

#define ADC_BASE 0x1a107000u
#define ADC_CTRL REG(ADC_BASE + 0x00u)
#define ADC_STATUS REG(ADC_BASE + 0x04u)
#define ADC_SEQUENCE REG(ADC_BASE + 0x08u)
#define ADC_SAMPLE REG(ADC_BASE + 0x0cu)
#define ADC_LIMITS REG(ADC_BASE + 0x10u)
#define ADC_RESULT(step) REG(ADC_BASE + 0x14u + 4u * (step))

#define ADC_CTRL_ENABLE (1u << 0)
#define ADC_CTRL_START (1u << 1)
#define ADC_CTRL_REPEAT (1u << 2)
#define ADC_CTRL_IRQ (1u << 3)
#define ADC_CTRL_RESOLUTION_SHIFT 4
#define ADC_CTRL_RESOLUTION_MASK 0x3u
#define ADC_CTRL_AVERAGE_SHIFT 6
#define ADC_CTRL_AVERAGE_MASK 0x3u
#define ADC_CTRL_LAST_SHIFT 8
#define ADC_CTRL_LAST_MASK (0x7u << ADC_CTRL_LAST_SHIFT)
#define ADC_STATUS_DONE (1u << 0)
#define ADC_STATUS_OVERRUN (1u << 1)
#define ADC_STATUS_OUTSIDE (1u << 2)
#define ADC_SEQUENCE_BITS 4u
#define ADC_SEQUENCE_MASK 0xfu
#define ADC_SAMPLE_BITS 3u
#define ADC_SAMPLE_MASK 0x7u
#define ADC_LIMITS_HIGH_SHIFT 16
#define ADC_LIMITS_MASK 0xfffu

#endif
