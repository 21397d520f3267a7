/* I2C master: a step for each byte, with a start before it or a stop behind it.
 *
 * Shows: fields that are set at once and start something by the last of them, a snapshot of flags for each turn of a loop.
 */
#include "edgewright_hal.h"

#include <stdbool.h>
#include <stdint.h>

bfGroup I2cType {
    bit enable;
    uint12 reset_value(0xfff) divider; /* clock cycles of a quarter of a bit */
    bit irqEnable;
    uint8 data; /* what the step sends */
    bit start, stop, receive;
    bit refuse; /* what was received is not acknowledged */
    bit hw go;      /* starts the step; hardware ends it */
    uint2 ro failure; /* nobody acknowledged, another master was stronger */
    uint8 ro received;
    bit w1c done;
};

make_device(I2cType, i2c, 0x1a105000);

void i2c_init(uint16_t divider, bool interrupts)
{
    i2c->divider = divider;
    i2c->irqEnable = interrupts;
    i2c->enable = 1;
}

void i2c_off(void)
{
    i2c->enable = 0;
}

/* Whether the step went well. */
static bool send(uint8_t byte, bool first, bool last)
{
    uint8_t failure, is_busy;

    i2c->data = byte;
    i2c->start = first;
    i2c->stop = last;
    i2c->receive = 0;
    i2c->refuse = 0;
    i2c->go = 1;
    do
        snapshot {
            failure = i2c->failure;
            is_busy = i2c->go;
        }
    while (is_busy);
    return failure == 0u;
}

static uint8_t receive_one(bool last)
{
    i2c->data = 0;
    i2c->start = 0;
    i2c->stop = last;
    i2c->receive = 1;
    i2c->refuse = last;
    i2c->go = 1;
    while (i2c->go) {
    }
    return i2c->received;
}

bool i2c_probe(uint8_t address)
{
    return send((uint8_t)(address << 1), true, true);
}

bool i2c_write(uint8_t address, const uint8_t *bytes, uint32_t count)
{
    bool is_good = send((uint8_t)(address << 1), true, count == 0u);

    for (uint32_t i = 0; is_good && i < count; i++)
        is_good = send(bytes[i], false, i + 1u == count);
    return is_good;
}

bool i2c_read(uint8_t address, uint8_t *bytes, uint32_t count)
{
    bool is_good = send((uint8_t)(address << 1 | 1), true, false);

    for (uint32_t i = 0; is_good && i < count; i++)
        bytes[i] = receive_one(i + 1u == count);
    return is_good;
}

bool i2c_write_register(uint8_t address, uint8_t number, uint8_t value)
{
    return send((uint8_t)(address << 1), true, false) && send(number, false, false) && send(value, false, true);
}

/* Whether a step has ended since the last call. */
bool i2c_take_done(void)
{
    bool was_done = i2c->done;

    if (was_done)
        i2c->done = 1;
    return was_done;
}
