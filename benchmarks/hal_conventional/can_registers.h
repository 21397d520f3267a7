/* The fixed register map of the CAN controller, as such peripherals have it: 128 bytes. */
#ifndef CAN_REGISTERS_H
#define CAN_REGISTERS_H

#include "register.h"

#define CAN_BASE 0x1a108000u
#define CAN_CTRL REG(CAN_BASE + 0x00u)
#define CAN_STATUS REG(CAN_BASE + 0x04u)
#define CAN_TIMING REG(CAN_BASE + 0x08u)
#define CAN_IRQ REG(CAN_BASE + 0x0cu)
#define CAN_ERRORS REG(CAN_BASE + 0x10u)
#define CAN_FIFO REG(CAN_BASE + 0x14u)
#define CAN_RX_ID REG(CAN_BASE + 0x18u)
#define CAN_RX_LENGTH REG(CAN_BASE + 0x1cu)
#define CAN_RX_LOW REG(CAN_BASE + 0x20u)
#define CAN_RX_HIGH REG(CAN_BASE + 0x24u)
#define CAN_FILTERS REG(CAN_BASE + 0x28u)
#define CAN_TX_ID(box) REG(CAN_BASE + 0x30u + 16u * (box))
#define CAN_TX_LENGTH(box) REG(CAN_BASE + 0x34u + 16u * (box))
#define CAN_TX_LOW(box) REG(CAN_BASE + 0x38u + 16u * (box))
#define CAN_TX_HIGH(box) REG(CAN_BASE + 0x3cu + 16u * (box))
#define CAN_FILTER_ID(filter) REG(CAN_BASE + 0x60u + 8u * (filter))
#define CAN_FILTER_MASK(filter) REG(CAN_BASE + 0x64u + 8u * (filter))

#define CAN_CTRL_CONFIGURE (1u << 0)
#define CAN_CTRL_RETRY (1u << 1)
#define CAN_STATUS_CONFIGURING (1u << 0)
#define CAN_TIMING_PRESCALER_MASK 0x3ffu
#define CAN_TIMING_SEGMENT1_SHIFT 16
#define CAN_TIMING_SEGMENT1_MASK 0xfu
#define CAN_TIMING_SEGMENT2_SHIFT 20
#define CAN_TIMING_SEGMENT2_MASK 0x7u
#define CAN_TIMING_LOOPBACK (1u << 30)
#define CAN_IRQ_RECEIVED (1u << 0)
#define CAN_IRQ_SENT (1u << 1)
#define CAN_IRQ_ERRORS (1u << 2)
#define CAN_ERRORS_BUS_OFF (1u << 0)
#define CAN_ERRORS_SEND_SHIFT 16
#define CAN_ERRORS_RECEIVE_SHIFT 24
#define CAN_ERRORS_MASK 0xffu
#define CAN_FIFO_LEVEL_MASK 0x3u
#define CAN_FIFO_OVERRUN (1u << 4)
#define CAN_FIFO_RELEASE (1u << 5)
#define CAN_ID_REQUEST (1u << 0)
#define CAN_ID_REMOTE (1u << 1)
#define CAN_ID_EXTENDED (1u << 2)
#define CAN_ID_SHIFT 3
#define CAN_LENGTH_MASK 0xfu

#endif
