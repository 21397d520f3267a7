/* SPI master with a command, an address, dummy cycles and data through FIFOs. */
#ifndef SPI_H
#define SPI_H

#include <stdint.h>

enum spi_command { SPI_CMD_RD = 0, SPI_CMD_WR = 1, SPI_CMD_QRD = 2, SPI_CMD_QWR = 3, SPI_CMD_SWRST = 4 };

#define SPI_FIFO_DEPTH 8u
#define SPI_IDLE 1u /* spi_get_status when nothing is going on */

#define PIN_SSPI_FIRST 3u /* slave: chip select and four data lines */
#define PIN_SSPI_LAST 7u
#define PIN_MSPI_FIRST 12u /* master: four data lines and as many chip selects as are wanted */
#define PIN_MSPI_CSN0 16u

void spi_setup_slave(void);
void spi_setup_master(uint8_t chip_selects);
void spi_set_clock_divider(uint8_t divider);
void spi_setup_cmd_addr(uint32_t cmd, uint8_t cmd_bits, uint32_t addr, uint8_t addr_bits);
void spi_setup_dummy(uint16_t read_cycles, uint16_t write_cycles);
void spi_set_datalen(uint16_t bits);
void spi_setup_irq(uint8_t tx_threshold, uint8_t rx_threshold);
void spi_start_transaction(uint8_t command, uint8_t chip_select);
uint32_t spi_get_status(void);
void spi_write_fifo(const uint32_t *words, uint16_t bits);
void spi_read_fifo(uint32_t *words, uint16_t bits);

#endif
