/* Real-time clock: time and date that hardware moves, an alarm, a correction of the crystal.
 *
 * Shows: fields that are read and written at once, or the time would be torn (together).
 */
#include "edgewright_hal.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint8_t seconds, minutes, hours, day, month, year;
} RtcTime;

bfGroup RtcType {
    uint6 hw together(minutes, hours, day, month, year) seconds;
    uint6 hw minutes;
    uint5 hw hours;
    uint5 hw reset_value(1) day;
    uint4 hw reset_value(1) month;
    uint6 hw year; /* since 2000 */
    bit running;
    uint9 correction; /* parts of a million */
    bit slower;       /* the correction makes it so */
    uint6 alarmSeconds, alarmMinutes;
    uint5 alarmHours;
    bit alarmEnable;
    bit w1c alarmed;
};

make_device(RtcType, rtc, 0x1a106000);

void rtc_init(int32_t correction)
{
    rtc->slower = correction < 0;
    rtc->correction = (uint16_t)(correction < 0 ? -correction : correction);
    rtc->running = 1;
}

void rtc_set(const RtcTime *time)
{
    rtc->seconds = time->seconds;
    rtc->minutes = time->minutes;
    rtc->hours = time->hours;
    rtc->day = time->day;
    rtc->month = time->month;
    rtc->year = time->year;
}

void rtc_get(RtcTime *time)
{
    time->seconds = rtc->seconds;
    time->minutes = rtc->minutes;
    time->hours = rtc->hours;
    time->day = rtc->day;
    time->month = rtc->month;
    time->year = rtc->year;
}

uint32_t rtc_seconds_of_day(void)
{
    uint32_t seconds = rtc->seconds, minutes = rtc->minutes, hours = rtc->hours;

    return (hours * 60u + minutes) * 60u + seconds;
}

void rtc_set_alarm(uint8_t hours, uint8_t minutes, uint8_t seconds)
{
    rtc->alarmed = 1;
    rtc->alarmHours = hours;
    rtc->alarmMinutes = minutes;
    rtc->alarmSeconds = seconds;
    rtc->alarmEnable = 1;
}

void rtc_cancel_alarm(void)
{
    rtc->alarmEnable = 0;
    rtc->alarmed = 1;
}

/* Whether the alarm went off since the last call. */
bool rtc_take_alarm(void)
{
    bool went_off = rtc->alarmed;

    if (went_off)
        rtc->alarmed = 1;
    return went_off;
}
