"""Small drivers that set a trap for the analysis, the rewriter or verification: each is right, or refused in place."""

from __future__ import annotations

import pytest

from edgewright.hal.design_flow import analyse
from edgewright.hal.generate import generate
from edgewright.hal.language.description import Refused
from edgewright.hal.layout_choice import chosen_design
from edgewright.hal.verify import verify

HEAD = """
#include "edgewright_hal.h"
bfGroup Lamp { bit on; uint4 mode; uint8 level; uint16 time; uint4 steps[4]; };
bfGroup Horn { uint16 pitch; bit loud; uint32 wide; };
make_device(Lamp, lamp, 0x40000000);
make_device(Horn, horn, 0x40001000);
"""
TRAPS = {
    "pointers to pointers": """
uint32_t f(bfGroup Lamp **p) { (*p)->mode = 1; p++; (*p)->level = 2; (**p).time = 3; return (*p)->level; }
""",
    "pointers in structs in unions": """
struct handle { union { struct { bfGroup Lamp *lamp; uint32_t at; }; uint32_t raw[4]; }; };
void f(struct handle *h, uint32_t x)
{
    h->lamp->steps[h->at & 3] = 1;
    h->raw[1] = x;
    h->lamp->steps[h->at & 3] = 2;
}
""",
    "static by an alias": """
static void start(void) { lamp->mode = 3; lamp->level = 9; }
void f(void) __attribute__((alias("start")));
""",
    "static that is always inlined": """
__attribute__((always_inline)) static inline void small(uint32_t x) { lamp->level = x; lamp->mode = x; }
void f(uint32_t x) { small(x); lamp->on = 1; small(9); }
""",
    "numbers of lines that a generator set": """
#line 700 "made_from.y"
void f(uint32_t x)
{
    lamp->mode = x;
    lamp->time = __LINE__;
}
""",
    # GCC 12 at -Os makes the stores of the third turn twice.
    "volatile stores in a do-while": """
uint32_t f(bfGroup Lamp *l)
{
    uint32_t n = 0, sum = 0;
    do {
        sum += 1u - l->mode;
        l->level = 3u * (horn->wide >> 27);
        l->time = 0;
    } while (++n < 3u && (~3u & (horn->wide >> 25)) != 2u);
    return sum + l->mode;
}
""",
    "case labels in a loop": """
void f(const uint8_t *from, uint32_t n)
{
    lamp->mode = 2;
    switch (n & 3u) {
    case 0: do { lamp->level = *from++;
    case 3:      lamp->level = *from++; lamp->on = 1;
    case 2:      lamp->mode = 3;
            } while (n-- > 8u);
    }
    lamp->on = 0;
}
""",
    "types of reads": """
int f(uint32_t x)
{
    lamp->level = x;
    __auto_type v = lamp->level;
    v--;
    return v * 2 + (lamp->level - 1 < 0) + (horn->wide - 1 < 0) + (~lamp->time < 0);
}
""",
}


@pytest.mark.parametrize("name", TRAPS)
def test_traps_are_generated_right(tmp_path, name):
    pytest.importorskip("unicorn")
    (tmp_path / "driver.c").write_text(HEAD + TRAPS[name])
    analysis = analyse([tmp_path / "driver.c"])
    found = verify(analysis, chosen_design(analysis, "paper"), calls=8, measure=False)
    assert [str(one) for one in found.differences] == [] and not found.uncompared and found.is_equal


def test_the_pointer_behind_a_pointer_is_handed_over(tmp_path):
    (tmp_path / "driver.c").write_text(HEAD + TRAPS["pointers to pointers"])
    made = chosen_design(analyse([tmp_path / "driver.c"]), "paper")
    text = generate(made, "driver")["driver.c"]
    assert "_mode(*p, 1)" in text and "_level_time(*p, 2, 3)" in text


def test_pointers_to_groups_in_unions_are_refused(tmp_path):
    (tmp_path / "driver.c").write_text(
        HEAD + "union any { bfGroup Lamp *lamp; bfGroup Horn *horn; };\nvoid f(union any *u) { u->lamp->on = 1; }\n"
    )
    with pytest.raises(Refused) as refused:
        analyse([tmp_path / "driver.c"])
    assert str(refused.value.refusals[0]).endswith(
        "driver.c:7:27: 'lamp', a pointer to group 'Lamp', shares a union with others; use a struct"
    )
