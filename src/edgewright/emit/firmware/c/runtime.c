/* What compilers and the emitted code expect of a C library: memcpy and its like, a word at a time where alignment
 * allows. */
#include <stdint.h>
#include <string.h>

#if defined(__clang__)
#define PLAIN __attribute__((no_builtin)) /* or they would call themselves */
#else
#define PLAIN __attribute__((optimize("no-tree-loop-distribute-patterns")))
#endif

typedef uint32_t __attribute__((may_alias)) word;

PLAIN void *memcpy(void *to, const void *from, size_t bytes)
{
    uint8_t *t = (uint8_t *)to;
    const uint8_t *f = (const uint8_t *)from;
    if ((((uintptr_t)t ^ (uintptr_t)f) & 3) == 0) {
        while (((uintptr_t)t & 3) != 0 && bytes) {
            *t++ = *f++;
            bytes--;
        }
        for (; bytes >= 16; bytes -= 16, t += 16, f += 16) {
            const word a = ((const word *)(const void *)f)[0], b = ((const word *)(const void *)f)[1];
            const word c = ((const word *)(const void *)f)[2], d = ((const word *)(const void *)f)[3];
            ((word *)(void *)t)[0] = a;
            ((word *)(void *)t)[1] = b;
            ((word *)(void *)t)[2] = c;
            ((word *)(void *)t)[3] = d;
        }
        for (; bytes >= 4; bytes -= 4, t += 4, f += 4)
            *(volatile word *)(void *)t = *(const word *)(const void *)f;
    }
    while (bytes) {
        *(volatile uint8_t *)t++ = *f++;
        bytes--;
    }
    return to;
}

PLAIN void *memmove(void *to, const void *from, size_t bytes)
{
    uint8_t *t = (uint8_t *)to;
    const uint8_t *f = (const uint8_t *)from;
    if ((uintptr_t)t <= (uintptr_t)f)
        return memcpy(to, from, bytes); /* which goes upwards */
    while (bytes) {
        bytes--;
        ((volatile uint8_t *)t)[bytes] = f[bytes];
    }
    return to;
}

PLAIN void *memset(void *to, int value, size_t bytes)
{
    uint8_t *t = (uint8_t *)to;
    const word four = (uint8_t)value * 0x01010101u;
    while (((uintptr_t)t & 3) != 0 && bytes) {
        *(volatile uint8_t *)t++ = (uint8_t)value;
        bytes--;
    }
    for (; bytes >= 16; bytes -= 16, t += 16) {
        ((word *)(void *)t)[0] = four;
        ((word *)(void *)t)[1] = four;
        ((word *)(void *)t)[2] = four;
        ((word *)(void *)t)[3] = four;
    }
    for (; bytes >= 4; bytes -= 4, t += 4)
        *(volatile word *)(void *)t = four;
    while (bytes) {
        *(volatile uint8_t *)t++ = (uint8_t)value;
        bytes--;
    }
    return to;
}

PLAIN int memcmp(const void *one, const void *two, size_t bytes)
{
    const uint8_t *a = (const uint8_t *)one, *b = (const uint8_t *)two;
    for (; bytes; bytes--, a++, b++)
        if (*a != *b)
            return *a < *b ? -1 : 1;
    return 0;
}
