/* The part of <string.h> that emitted code and compilers use. */
#ifndef BOARD_STRING_H
#define BOARD_STRING_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif
void *memcpy(void *to, const void *from, size_t bytes);
void *memmove(void *to, const void *from, size_t bytes);
void *memset(void *to, int value, size_t bytes);
int memcmp(const void *one, const void *two, size_t bytes);
#ifdef __cplusplus
}
#endif

#endif
