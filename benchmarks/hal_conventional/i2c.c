/* I2C master on a fixed register map: the same functions as the example. */
#include "i2c_registers.h"

#include <stdbool.h>

void i2c_init(uint16_t divider, bool interrupts)
{
    I2C_DIVIDER = divider;
    I2C_CTRL = I2C_CTRL_ENABLE | (interrupts ? I2C_CTRL_IRQ : 0u);
}

void i2c_off(void)
{
    I2C_CTRL &= ~I2C_CTRL_ENABLE;
}

static uint32_t wait(void)
{
    uint32_t status;

    do {
        status = I2C_STATUS;
    } while (status & I2C_STATUS_BUSY);
    return status;
}

/* Whether the step went well. */
static bool send(uint8_t byte, bool first, bool last)
{
    uint32_t command = I2C_COMMAND_GO;

    if (first)
        command |= I2C_COMMAND_START;
    if (last)
        command |= I2C_COMMAND_STOP;
    I2C_TXDATA = byte;
    I2C_COMMAND = command;
    return (wait() & I2C_STATUS_FAILURE) == 0u;
}

static uint8_t receive_one(bool last)
{
    uint32_t command = I2C_COMMAND_GO | I2C_COMMAND_RECEIVE;

    if (last)
        command |= I2C_COMMAND_STOP | I2C_COMMAND_REFUSE;
    I2C_COMMAND = command;
    (void)wait();
    return (uint8_t)I2C_RXDATA;
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
    bool was_done = I2C_STATUS & I2C_STATUS_DONE;

    if (was_done)
        I2C_STATUS = I2C_STATUS_DONE;
    return was_done;
}
