/* Stand-in for parsing without a compiler's own headers (32-bit world). */
#ifndef EDGEWRIGHT_STRING_H
#define EDGEWRIGHT_STRING_H

#include <stddef.h>

void *memcpy(void *to, const void *from, size_t size);
void *memmove(void *to, const void *from, size_t size);
void *memset(void *to, int value, size_t size);
int memcmp(const void *one, const void *other, size_t size);
size_t strlen(const char *text);
int strcmp(const char *one, const char *other);
char *strcpy(char *to, const char *from);
char *strncpy(char *to, const char *from, size_t size);

#endif
