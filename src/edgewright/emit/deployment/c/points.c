#ifndef EW_HAS_POLL /* define it where the compiler knows no weak functions */
#ifdef __GNUC__
__attribute__((weak))
#endif
void ew_poll(void)
{
}
#endif

static void mark(volatile uint32_t *place, uint32_t network, uint32_t here) {
    EW_LOCK();
    *place = (*place & ~network) | (here ? network : 0u);
    EW_UNLOCK();
}

static void stand(volatile uint32_t *place, uint32_t network) {
    mark(place, network, 1u);
    ew_poll();
    mark(place, network, 0u);
}

