/* DMA controller: eight channels with two ends each.
 *
 * Shows: groups in groups, functions that take a pointer to a group wherever it lies, a bus with byte lanes, w1s and
 * w1c, side effects on fields of another group (group::field), updates in place, a status word over all channels.
 */
#include "edgewright_hal.h"

#include <stdbool.h>

bfGroup DmaEnd {
    uint32 address;
    uint2 width; /* 1, 2 or 4 bytes: 0, 1, 2 */
    bit increment;
    uint5 request; /* peripheral that asks for each transfer; 0: memory */
};

bfGroup DmaChannel {
    bfGroup DmaEnd source;
    bfGroup DmaEnd target;
    uint16 hw count; /* elements left */
    uint2 priority;
    bit irqEnable;
    bit w1s hw running;
    bit w1c done, failed;
};

bfGroup DmaType {
    bit enable;
    bit wo wse(DmaChannel::running, DmaChannel::done, DmaChannel::failed) reset;
    uint32 retries;
    bfGroup DmaChannel channels[8];
    uint8 gathers(channels, done) finished;
};

make_device(DmaType, dma, 0x1a104000);
bus(dma, 32, 8);

void dma_init(void)
{
    dma->reset = 1;
    dma->retries = 0;
    dma->enable = 1;
}

static void set_end(bfGroup DmaEnd *end, uint32_t address, uint8_t width, uint8_t request)
{
    end->address = address;
    end->width = width;
    end->increment = request == 0u;
    end->request = request;
}

void dma_copy(uint32_t channel, uint32_t from, uint32_t to, uint16_t words)
{
    set_end(&dma->channels[channel].source, from, 2, 0);
    set_end(&dma->channels[channel].target, to, 2, 0);
    dma->channels[channel].count = words;
    dma->channels[channel].running = 1;
}

void dma_receive(uint32_t channel, uint32_t from, uint8_t request, uint32_t to, uint16_t bytes)
{
    bfGroup DmaChannel *it = &dma->channels[channel];

    set_end(&it->source, from, 0, request);
    set_end(&it->target, to, 0, 0);
    it->priority = 3;
    it->irqEnable = 1;
    it->count = bytes;
    it->running = 1;
}

/* Waits for the end of a transfer: whether it went well. */
bool dma_wait(uint32_t channel)
{
    bfGroup DmaChannel *it = &dma->channels[channel];

    while (it->running) {
    }
    if (it->failed) {
        it->failed = 1;
        dma->retries++;
        return false;
    }
    dma->channels[channel].done = 1;
    return true;
}

/* A bit for each channel that is done; they are no longer so afterwards. */
uint32_t dma_take_done(void)
{
    uint8_t finished = dma->finished;

    dma->finished = finished;
    return finished;
}
