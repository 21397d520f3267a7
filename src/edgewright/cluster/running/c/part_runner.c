/* Runs parts of a device as they are told to, one by one: for cores that this machine is not, under an emulator.
 * Arguments: a file of memory and its size. On standard input each line has the number of a part and the addresses,
 * from the start of the memory, of its arenas, inputs and outputs; each is answered by a line. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "part_calls.h"

int main(int count, char **given) {
    if (count != 3) return 2;
    const int file = open(given[1], O_RDWR);
    const size_t size = strtoull(given[2], NULL, 10);
    uint8_t *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file < 0 || memory == MAP_FAILED) return 3;
    static char line[1 << 16];
    while (fgets(line, sizeof line, stdin)) {
        char *at = line;
        const unsigned long part = strtoul(at, &at, 10);
        void *places[MOST_PLACES];
        for (int i = 0; i < MOST_PLACES; i++) places[i] = memory + strtoull(at, &at, 10);
        if (part >= PARTS) return 4;
        calls[part](places);
        puts("done");
        fflush(stdout);
    }
    return 0;
}
