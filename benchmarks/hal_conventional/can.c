/* CAN controller on a fixed register map: the same functions as the example. */
#include "can_registers.h"

#include <stdbool.h>

#define MAILBOXES 3u

typedef struct {
    uint32_t id;
    uint32_t low, high; /* data */
    uint8_t length;
    uint8_t is_extended;
    uint8_t is_remote;
} CanFrame;

void can_init(uint16_t prescaler, uint8_t segment1, uint8_t segment2, bool loopback)
{
    CAN_CTRL |= CAN_CTRL_CONFIGURE;
    while (!(CAN_STATUS & CAN_STATUS_CONFIGURING)) {
    }
    CAN_TIMING = (loopback ? CAN_TIMING_LOOPBACK : 0u) |
                 (segment2 & CAN_TIMING_SEGMENT2_MASK) << CAN_TIMING_SEGMENT2_SHIFT |
                 (segment1 & CAN_TIMING_SEGMENT1_MASK) << CAN_TIMING_SEGMENT1_SHIFT |
                 (prescaler & CAN_TIMING_PRESCALER_MASK);
    CAN_IRQ = 0;
    CAN_CTRL = CAN_CTRL_RETRY;
    while (CAN_STATUS & CAN_STATUS_CONFIGURING) {
    }
}

void can_set_filter(uint32_t number, uint32_t id, uint32_t mask)
{
    CAN_FILTER_ID(number) = id;
    CAN_FILTER_MASK(number) = mask;
    CAN_FILTERS |= 1u << number;
}

void can_drop_filter(uint32_t number)
{
    CAN_FILTERS &= ~(1u << number);
}

void can_use_interrupts(bool received, bool sent, bool errors)
{
    CAN_IRQ = (received ? CAN_IRQ_RECEIVED : 0u) | (sent ? CAN_IRQ_SENT : 0u) | (errors ? CAN_IRQ_ERRORS : 0u);
}

/* Whether there was a free mailbox. */
bool can_send(const CanFrame *frame)
{
    for (uint32_t i = 0; i < MAILBOXES; i++) {
        if (!(CAN_TX_ID(i) & CAN_ID_REQUEST)) {
            uint32_t id = frame->id << CAN_ID_SHIFT | CAN_ID_REQUEST;

            if (frame->is_extended & 1u)
                id |= CAN_ID_EXTENDED;
            if (frame->is_remote & 1u)
                id |= CAN_ID_REMOTE;
            CAN_TX_LOW(i) = frame->low;
            CAN_TX_HIGH(i) = frame->high;
            CAN_TX_LENGTH(i) = frame->length;
            CAN_TX_ID(i) = id;
            return true;
        }
    }
    return false;
}

/* Whether there was a frame. */
bool can_receive(CanFrame *frame)
{
    uint32_t id;

    if ((CAN_FIFO & CAN_FIFO_LEVEL_MASK) == 0u)
        return false;
    id = CAN_RX_ID;
    frame->id = id >> CAN_ID_SHIFT;
    frame->is_extended = (id & CAN_ID_EXTENDED) != 0u;
    frame->is_remote = (id & CAN_ID_REMOTE) != 0u;
    frame->length = CAN_RX_LENGTH & CAN_LENGTH_MASK;
    frame->low = CAN_RX_LOW;
    frame->high = CAN_RX_HIGH;
    CAN_FIFO = CAN_FIFO_RELEASE;
    return true;
}

/* Whether a frame was lost since the last call. */
bool can_take_overrun(void)
{
    bool was_lost = CAN_FIFO & CAN_FIFO_OVERRUN;

    if (was_lost)
        CAN_FIFO = CAN_FIFO_OVERRUN;
    return was_lost;
}

/* The larger counter of errors; 256 when the bus has been left. */
uint32_t can_errors(void)
{
    uint32_t errors = CAN_ERRORS;
    uint32_t sent = (errors >> CAN_ERRORS_SEND_SHIFT) & CAN_ERRORS_MASK;
    uint32_t received = (errors >> CAN_ERRORS_RECEIVE_SHIFT) & CAN_ERRORS_MASK;

    if (errors & CAN_ERRORS_BUS_OFF)
        return 256u;
    return sent > received ? sent : received;
}
