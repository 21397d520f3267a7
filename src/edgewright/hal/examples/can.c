/* CAN controller: three mailboxes to send from, a FIFO of received frames, filters.
 *
 * Shows: descriptors in an array that are set and started at once, error counters read with their flags.
 */
#include "edgewright_hal.h"

#include <stdbool.h>
#include <stdint.h>

#define MAILBOXES 3u

typedef struct {
    uint32_t id;
    uint32_t low, high; /* data */
    uint8_t length;
    uint8_t is_extended;
    uint8_t is_remote;
} CanFrame;

bfGroup CanMailbox {
    uint32 low, high;
    uint29 id;
    bit extended, remote;
    uint4 length;
    bit hw request; /* until it has been sent */
};

bfGroup CanFilter {
    uint29 id, mask;
    bit enable;
};

bfGroup CanType {
    bit reset_value(1) configure; /* timing may change, nothing is sent */
    bit ro reset_value(1) configuring;
    bit loopback, silent, retry;
    uint10 prescaler;
    uint4 segment1;
    uint3 segment2;
    uint2 jump;
    uint2 ro level; /* frames in the FIFO */
    uint29 ro id;   /* of the oldest */
    bit ro extended, remote;
    uint4 ro length;
    uint32 ro low, high;
    bit w1s hw release; /* takes the oldest away */
    bit w1c overrun;
    uint8 ro sendErrors, receiveErrors;
    bit ro busOff;
    bit irqReceived, irqSent, irqErrors;
    bfGroup CanMailbox mailboxes[3];
    bfGroup CanFilter filters[4];
};

make_device(CanType, can, 0x1a108000);

void can_init(uint16_t prescaler, uint8_t segment1, uint8_t segment2, bool loopback)
{
    can->configure = 1;
    while (!can->configuring) {
    }
    can->prescaler = prescaler;
    can->segment1 = segment1;
    can->segment2 = segment2;
    can->jump = 0;
    can->loopback = loopback;
    can->silent = 0;
    can->retry = 1;
    can->irqReceived = 0;
    can->irqSent = 0;
    can->irqErrors = 0;
    can->configure = 0;
    while (can->configuring) {
    }
}

void can_set_filter(uint32_t number, uint32_t id, uint32_t mask)
{
    bfGroup CanFilter *filter = &can->filters[number];

    filter->id = id;
    filter->mask = mask;
    filter->enable = 1;
}

void can_drop_filter(uint32_t number)
{
    can->filters[number].enable = 0;
}

void can_use_interrupts(bool received, bool sent, bool errors)
{
    can->irqReceived = received;
    can->irqSent = sent;
    can->irqErrors = errors;
}

/* Whether there was a free mailbox. */
bool can_send(const CanFrame *frame)
{
    for (uint32_t i = 0; i < MAILBOXES; i++) {
        bfGroup CanMailbox *box = &can->mailboxes[i];

        if (!box->request) {
            box->low = frame->low;
            box->high = frame->high;
            box->length = frame->length;
            box->id = frame->id;
            box->extended = frame->is_extended;
            box->remote = frame->is_remote;
            box->request = 1;
            return true;
        }
    }
    return false;
}

/* Whether there was a frame. */
bool can_receive(CanFrame *frame)
{
    if (can->level == 0u)
        return false;
    frame->id = can->id;
    frame->is_extended = can->extended;
    frame->is_remote = can->remote;
    frame->length = can->length;
    frame->low = can->low;
    frame->high = can->high;
    can->release = 1;
    return true;
}

/* Whether a frame was lost since the last call. */
bool can_take_overrun(void)
{
    bool was_lost = can->overrun;

    if (was_lost)
        can->overrun = 1;
    return was_lost;
}

/* The larger counter of errors; 256 when the bus has been left. */
uint32_t can_errors(void)
{
    snapshot {
        uint32_t sent = can->sendErrors, received = can->receiveErrors;

        if (can->busOff)
            return 256u;
        return sent > received ? sent : received;
    }
}
