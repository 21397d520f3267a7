/* UART with FIFOs and an interrupt handler.
 *
 * Shows: fifo, clear_on_read, reset_value, fields that the main program and an interrupt handler both write
 * (shared_with_isr), conditions that must not be read in advance, and an unknown function between accesses.
 */
#include "edgewright_hal.h"

#include <stdbool.h>
#include <stddef.h>

#define TX_DEPTH 16u

bfGroup UartType {
    uint8 wo fifo wse(txLevel, txIdle) txData;
    uint8 ro fifo rse(rxReady) rxData;
    uint5 ro txLevel;
    bit ro txIdle; /* the last stop bit has left */
    bit ro rxReady;
    uint3 ro clear_on_read errors; /* overrun, parity, framing */
    uint16 reset_value(0xffff) divider;
    uint2 wordLength; /* bits beyond five */
    bit stopBits, parityEnable, parityEven;
    bit wo wse(txLevel, txIdle, rxReady) flush;
    bit shared_with_isr rxIrq, txIrq;
};

make_device(UartType, uart, 0x1a100000);

void uart_error(uint8_t errors);       /* the application's */
void uart_received(uint8_t character); /* the application's */

/* Eight bits, one stop bit; parity as said. */
void uart_setup(uint16_t divider, bool parity, bool even)
{
    uart->divider = divider;
    uart->wordLength = 3;
    uart->stopBits = 0;
    uart->parityEnable = parity;
    uart->parityEven = even;
    uart->flush = 1;
    uart->rxIrq = 1;
    uart->txIrq = 0;
}

void uart_send(const uint8_t *data, uint32_t length)
{
    for (uint32_t i = 0; i < length; i++) {
        while (uart->txLevel == TX_DEPTH) {
        }
        uart->txData = data[i];
    }
}

void uart_wait_tx_done(void)
{
    while (!uart->txIdle) {
    }
}

/* The next character, or -1 when none has come. */
int32_t uart_poll(void)
{
    if (!uart->rxReady)
        return -1;
    return uart->rxData;
}

/* Whether a character came without an error. */
bool uart_receive(uint8_t *character)
{
    bool is_good = uart->rxReady && uart->errors == 0u;

    *character = is_good ? uart->rxData : 0u;
    return is_good;
}

void uart_notify_when_sent(bool wanted)
{
    uart->txIrq = wanted;
}

/* The interrupt handler: takes what came, and asks for no more "sent" interrupts once all is sent. */
void uart_irq(void)
{
    uint8_t errors = uart->errors;

    if (errors != 0u)
        uart_error(errors);
    while (uart->rxReady)
        uart_received(uart->rxData);
    if (uart->txIdle)
        uart->txIrq = 0;
}
