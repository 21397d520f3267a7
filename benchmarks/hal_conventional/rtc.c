/* Real-time clock on a fixed register map: the same functions as the example. */
#include "rtc_registers.h"

#include <stdbool.h>

typedef struct {
    uint8_t seconds, minutes, hours, day, month, year;
} RtcTime;

static uint32_t time_of(uint32_t hours, uint32_t minutes, uint32_t seconds)
{
    return (hours & RTC_TIME_HOURS_MASK) << RTC_TIME_HOURS_SHIFT |
           (minutes & RTC_TIME_MINUTES_MASK) << RTC_TIME_MINUTES_SHIFT | (seconds & RTC_TIME_SECONDS_MASK);
}

void rtc_init(int32_t correction)
{
    uint32_t parts = (uint32_t)(correction < 0 ? -correction : correction) & RTC_CORRECTION_MASK;

    RTC_CORRECTION = correction < 0 ? parts | RTC_CORRECTION_SLOWER : parts;
    RTC_CTRL = RTC_CTRL_RUN;
}

void rtc_set(const RtcTime *time)
{
    RTC_CTRL &= ~RTC_CTRL_RUN;
    RTC_TIME = time_of(time->hours, time->minutes, time->seconds);
    RTC_DATE = (time->year & RTC_DATE_YEAR_MASK) << RTC_DATE_YEAR_SHIFT |
               (time->month & RTC_DATE_MONTH_MASK) << RTC_DATE_MONTH_SHIFT | (time->day & RTC_DATE_DAY_MASK);
    RTC_CTRL |= RTC_CTRL_RUN;
}

/* Midnight may pass between the two registers: then again. */
void rtc_get(RtcTime *time)
{
    uint32_t now, date;

    do {
        date = RTC_DATE;
        now = RTC_TIME;
    } while (date != RTC_DATE);
    time->seconds = now & RTC_TIME_SECONDS_MASK;
    time->minutes = (now >> RTC_TIME_MINUTES_SHIFT) & RTC_TIME_MINUTES_MASK;
    time->hours = (now >> RTC_TIME_HOURS_SHIFT) & RTC_TIME_HOURS_MASK;
    time->day = date & RTC_DATE_DAY_MASK;
    time->month = (date >> RTC_DATE_MONTH_SHIFT) & RTC_DATE_MONTH_MASK;
    time->year = (date >> RTC_DATE_YEAR_SHIFT) & RTC_DATE_YEAR_MASK;
}

uint32_t rtc_seconds_of_day(void)
{
    uint32_t now = RTC_TIME;
    uint32_t minutes = (now >> RTC_TIME_MINUTES_SHIFT) & RTC_TIME_MINUTES_MASK;
    uint32_t hours = (now >> RTC_TIME_HOURS_SHIFT) & RTC_TIME_HOURS_MASK;

    return (hours * 60u + minutes) * 60u + (now & RTC_TIME_SECONDS_MASK);
}

void rtc_set_alarm(uint8_t hours, uint8_t minutes, uint8_t seconds)
{
    RTC_STATUS = RTC_STATUS_ALARMED;
    RTC_ALARM = time_of(hours, minutes, seconds);
    RTC_CTRL |= RTC_CTRL_ALARM;
}

void rtc_cancel_alarm(void)
{
    RTC_CTRL &= ~RTC_CTRL_ALARM;
    RTC_STATUS = RTC_STATUS_ALARMED;
}

/* Whether the alarm went off since the last call. */
bool rtc_take_alarm(void)
{
    bool went_off = RTC_STATUS & RTC_STATUS_ALARMED;

    if (went_off)
        RTC_STATUS = RTC_STATUS_ALARMED;
    return went_off;
}
