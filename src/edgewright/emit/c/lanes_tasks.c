/* Lanes as tasks of a microcontroller with several cores. Define one of
 *
 *   EW_LANES_FREERTOS   a task for each further core: FreeRTOS with several cores, ESP-IDF
 *   EW_LANES_ZEPHYR     a thread for each further core: Zephyr with CONFIG_SMP
 *   EW_LANES_PICO       core 1 of an RP2040 or RP2350, with the Pico SDK alone
 *
 * or EW_CALLER_BRINGS_LANES, and write ew_lanes_run and ew_lanes_meet. With none of them one core does everything, which
 * is right too. Counters are words that one lane writes and others read: cores without atomic instructions will do. */
#ifndef EW_CALLER_BRINGS_LANES

#ifndef EW_LANE_STACK
#define EW_LANE_STACK 8192 /* bytes of a task's stack */
#endif

#if defined(EW_LANES_FREERTOS)
#if defined(ESP_PLATFORM)
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"
#else
#include "FreeRTOS.h"
#include "task.h"
#endif
#define EW_LANE_REST() taskYIELD()
#elif defined(EW_LANES_ZEPHYR)
#include <zephyr/kernel.h>
#define EW_LANE_REST() k_yield()
#elif defined(EW_LANES_PICO)
#include "pico/multicore.h"
#define EW_LANE_REST() tight_loop_contents()
#endif

#ifdef EW_LANE_REST
#include <stddef.h>

static volatile uint32_t ew_team_met[EW_LANE_COUNT]; /* barriers that each lane has reached */
static volatile uint32_t ew_team_done[EW_LANE_COUNT]; /* the last run that each lane has finished */
static uint32_t ew_team_runs;
static ew_lane_work ew_team_work;
static void *ew_team_context;

static void ew_lane_tell(volatile uint32_t *counter, uint32_t number)
{
    __sync_synchronize();
    *counter = number;
    __sync_synchronize();
}

static void ew_lane_wait(const volatile uint32_t *counter, uint32_t wanted)
{
    while ((int32_t)(*counter - wanted) < 0)
        EW_LANE_REST();
    __sync_synchronize();
}

static void ew_lane_take_part(int32_t lane)
{
    __sync_synchronize();
    ew_team_work(ew_team_context, lane, EW_LANE_COUNT);
    ew_lane_tell(&ew_team_done[lane], ew_team_runs);
}

#if defined(EW_LANES_FREERTOS)
static TaskHandle_t ew_team_tasks[EW_LANE_COUNT];

static void ew_lane_task(void *lane)
{
    for (;;) {
        ulTaskNotifyTake(pdTRUE, portMAX_DELAY);
        ew_lane_take_part((int32_t)(intptr_t)lane);
    }
}

/* A task on a core of its own, with the priority of the caller. */
static int32_t ew_lane_begin(int32_t lane)
{
    void *const which = (void *)(intptr_t)lane;
    const UBaseType_t priority = uxTaskPriorityGet(NULL);
    TaskHandle_t *const task = &ew_team_tasks[lane];
    if (*task)
        return 1;
#if defined(ESP_PLATFORM)
    {
        const BaseType_t core = (xPortGetCoreID() + lane) % EW_LANE_COUNT;
        return xTaskCreatePinnedToCore(ew_lane_task, "lane", EW_LANE_STACK, which, priority, task, core) == pdPASS;
    }
#else
    return xTaskCreate(ew_lane_task, "lane", EW_LANE_STACK / sizeof(StackType_t), which, priority, task) == pdPASS;
#endif
}

static void ew_lane_call(int32_t lane)
{
    xTaskNotifyGive(ew_team_tasks[lane]);
}
#elif defined(EW_LANES_ZEPHYR)
static K_THREAD_STACK_ARRAY_DEFINE(ew_team_stacks, EW_LANE_COUNT, EW_LANE_STACK);
static struct k_thread ew_team_threads[EW_LANE_COUNT];
static struct k_sem ew_team_calls[EW_LANE_COUNT];
static int32_t ew_team_is_there[EW_LANE_COUNT];

static void ew_lane_thread(void *lane, void *b, void *c)
{
    (void)b;
    (void)c;
    for (;;) {
        k_sem_take(&ew_team_calls[(intptr_t)lane], K_FOREVER);
        ew_lane_take_part((int32_t)(intptr_t)lane);
    }
}

static int32_t ew_lane_begin(int32_t lane)
{
    if (!ew_team_is_there[lane]) {
        k_sem_init(&ew_team_calls[lane], 0, 1);
        k_thread_create(
            &ew_team_threads[lane], ew_team_stacks[lane], EW_LANE_STACK, ew_lane_thread, (void *)(intptr_t)lane, NULL,
            NULL, k_thread_priority_get(k_current_get()), 0, K_NO_WAIT);
        ew_team_is_there[lane] = 1;
    }
    return 1;
}

static void ew_lane_call(int32_t lane)
{
    k_sem_give(&ew_team_calls[lane]);
}
#else
#if EW_LANE_COUNT != 2
#error "an RP2040 has two cores: compile the network with --lanes 2"
#endif
static int32_t ew_team_is_there;
static uint32_t ew_team_stack[EW_LANE_STACK / 4];

static void ew_lane_core(void)
{
    for (;;)
        ew_lane_take_part((int32_t)multicore_fifo_pop_blocking());
}

static int32_t ew_lane_begin(int32_t lane)
{
    (void)lane;
    if (!ew_team_is_there)
        multicore_launch_core1_with_stack(ew_lane_core, ew_team_stack, sizeof ew_team_stack);
    ew_team_is_there = 1;
    return 1;
}

static void ew_lane_call(int32_t lane)
{
    multicore_fifo_push_blocking((uint32_t)lane);
}
#endif

void ew_lanes_meet(int32_t lane, int32_t lanes)
{
    const uint32_t number = ew_team_met[lane] + 1;
    if (lanes == 1)
        return;
    ew_lane_tell(&ew_team_met[lane], number);
    for (int32_t other = 0; other < lanes; other++)
        ew_lane_wait(&ew_team_met[other], number);
}

/* One task may call this at a time. Where a task cannot be made, the caller does everything. */
void ew_lanes_run(ew_lane_work work, void *context)
{
    for (int32_t lane = 1; lane < EW_LANE_COUNT; lane++)
        if (!ew_lane_begin(lane)) {
            work(context, 0, 1);
            return;
        }
    ew_team_work = work;
    ew_team_context = context;
    ew_team_runs++;
    __sync_synchronize();
    for (int32_t lane = 1; lane < EW_LANE_COUNT; lane++)
        ew_lane_call(lane);
    work(context, 0, EW_LANE_COUNT);
    for (int32_t lane = 1; lane < EW_LANE_COUNT; lane++)
        ew_lane_wait(&ew_team_done[lane], ew_team_runs);
}
#else
void ew_lanes_meet(int32_t lane, int32_t lanes)
{
    (void)lane;
    (void)lanes;
}

void ew_lanes_run(ew_lane_work work, void *context)
{
    work(context, 0, 1);
}
#endif
#endif
