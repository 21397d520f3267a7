/* What a library that is traced calls where a stage begins: it calls whoever watches. */
#include <stdint.h>
void (*ew_watcher)(int32_t);
void ew_probe(int32_t stage);

void ew_probe(int32_t stage)
{
    if (ew_watcher)
        ew_watcher(stage);
}
