/* The fixed register map of the real-time clock, as such peripherals have it: 24 bytes. */
#ifndef RTC_REGISTERS_H
#define RTC_REGISTERS_H

#include "register.h"

#define RTC_BASE 0x1a106000u
#define RTC_TIME REG(RTC_BASE + 0x00u)
#define RTC_DATE REG(RTC_BASE + 0x04u)
#define RTC_CTRL REG(RTC_BASE + 0x08u)
#define RTC_CORRECTION REG(RTC_BASE + 0x0cu)
#define RTC_ALARM REG(RTC_BASE + 0x10u)
#define RTC_STATUS REG(RTC_BASE + 0x14u)

#define RTC_TIME_SECONDS_MASK 0x3fu
#define RTC_TIME_MINUTES_SHIFT 8
#define RTC_TIME_MINUTES_MASK 0x3fu
#define RTC_TIME_HOURS_SHIFT 16
#define RTC_TIME_HOURS_MASK 0x1fu
#define RTC_DATE_DAY_MASK 0x1fu
#define RTC_DATE_MONTH_SHIFT 8
#define RTC_DATE_MONTH_MASK 0xfu
#define RTC_DATE_YEAR_SHIFT 16
#define RTC_DATE_YEAR_MASK 0x3fu
#define RTC_CTRL_RUN (1u << 0)
#define RTC_CTRL_ALARM (1u << 1)
#define RTC_CORRECTION_SLOWER (1u << 15)
#define RTC_CORRECTION_MASK 0x1ffu
#define RTC_STATUS_ALARMED (1u << 0)

#endif
