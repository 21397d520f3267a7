/* Stand-in for parsing without a compiler's own headers. No guard: assert.h may be included again with another NDEBUG. */
#undef assert
#ifdef NDEBUG
#define assert(condition) ((void)0)
#else
void edgewright_assert_failed(void);
#define assert(condition) ((condition) ? (void)0 : edgewright_assert_failed())
#endif
#ifndef static_assert
#define static_assert _Static_assert
#endif
