"""What once went wrong, as statements of random drivers: barriers, names that mean something else, order on the bus."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from tests.hal.random_groups import FieldDecl
from tests.hal.random_text import Line, Made, Nest, Scope, Statement
from tests.hal.random_values import is_writable

if TYPE_CHECKING:
    from tests.hal.random_code import Coder

DECLARED = """
typedef volatile uint32_t watched_t;
static watched_t seen;
static uint32_t done;
static uint32_t current;
uint32_t a;
uint32_t tmp1 = 7u;
#define OWN tmp1

__attribute__((weak)) void board_hook(void) {}
static void turn(void) { current += 1u; }
static void turn_by_way(void) { turn(); }
static void spin(uint32_t times) { for (times &= 3u; times; times--) {} }
static void stop(uint32_t code) { if (code == 0x9e3779b9u) for (;;) {} }
#define EACH(i, n) for (uint32_t i = 0; i < (n); i++)
#define TIMES(i) for (; i; i--)
__attribute__((unused)) static uint32_t pick(int n, ...)
{
    uint32_t sum = 0;
    __builtin_va_list rest;
    __builtin_va_start(rest, n);
    while (n--) sum += 3u * sum + __builtin_va_arg(rest, uint32_t);
    __builtin_va_end(rest);
    return sum;
}
static const struct board_ops { uint32_t (*note)(uint32_t); } board_ops = {board_note};
__attribute__((unused)) static void (*board_called)(void);

"""
_TAKEN = re.compile(r"[?:,] *drive\d+ *[:;}]")  # a function's name as a value
_UPDATED = r"\b{0}\b(\[[^;]*?\])?\)?\s*(\+\+|--|[-+*&|^]=|<<=|>>=)|(\+\+|--)[^;,=]*\b{0}\b"


def around(text: str) -> Callable[[Coder, Scope], list[Statement]]:
    """Writes before and after a statement that nothing may be moved across."""
    return lambda coder, scope: [*coder.writes(scope), Line(text.format(coder.atom(scope))), *coder.writes(scope)]


def flush(coder: Coder, scope: Scope) -> list[Statement]:
    """Writes around a read whose value nobody uses."""
    place = coder.paths(scope, lambda field: field.readable and not field.reading_acts, True)
    reading = [Line(f"{{ uint32_t unused_ = {place}; (void)unused_; }}")] if place else []
    return [*coder.writes(scope), *reading, *coder.writes(scope)]


def changed_index(coder: Coder, scope: Scope) -> list[Statement]:
    """The same element twice by its text, and another by its meaning: two calls down the index changes."""
    found = [coder.choose(scope, is_writable, True, lambda _: "current") for _ in range(2)]
    places = [one[0] for one in found if one]
    lines = [Line(f"{place} = {coder.atom(scope)};") for place in places]
    return [*lines[:1], Line("turn_by_way();"), *lines[1:]] if lines else []


def inner_variable(declared: str) -> Callable[[Coder, Scope], list[Statement]]:
    """A block in which a name stands for a variable that lives outside of the function."""

    def made(coder: Coder, scope: Scope) -> list[Statement]:
        inner = (Line(declared), *coder.writes(scope), Line("a += 1u;"))
        return [*coder.writes(scope), Nest("", inner)]

    return made


def written(value: str) -> Callable[[Coder, Scope], list[Statement]]:
    """Reads, which want temporaries, and a write of something that depends on where it stands."""
    return lambda coder, scope: [
        *coder.reads(scope),
        Line(f"{coder.paths(scope, is_writable, True) or 'total'} = {value};"),
    ]


def two_devices(coder: Coder, scope: Scope) -> list[Statement]:
    """Writes of several devices in turn."""
    lines = [coder.writes(scope)[:2] for _ in range(3)]
    return [line for number in range(2) for part in lines for line in part[number : number + 1]]


def status_after_setting(coder: Coder, scope: Scope) -> list[Statement]:
    """Flags before and after writes on which they may depend."""
    name = coder.rng.choice(scope.numbers)
    before, after = (
        [Line(f"{name} += {flag};") for flag in coder.flags(scope, 2)[number : number + 1]] for number in (0, 1)
    )
    return [*before, *coder.writes(scope), *after]


def under(head: str) -> Callable[[Coder, Scope], list[Statement]]:
    """Accesses as the body of a statement."""
    return lambda coder, scope: [
        *coder.writes(scope),
        Nest(head, tuple(coder.writes(scope.inner(2, 1)))),
        *coder.writes(scope),
    ]


def weighed(text: str) -> Callable[[Coder, Scope], list[Statement]]:
    """An access that depends on a read, with an attribute or the like in between."""

    def made(coder: Coder, scope: Scope) -> list[Statement]:
        flag = coder.paths(scope, lambda field: field.readable, True) or "total"
        place = coder.paths(scope, is_writable, True) or "total"
        return [*coder.reads(scope), Line(text.format(flag=flag, place=place)), *coder.writes(scope)]

    return made


def own_table(coder: Coder, scope: Scope) -> list[Statement]:
    """A function of the driver called through a constant table."""
    fits = [
        one
        for one in coder.made
        if [kind for kind, _ in one.numbers] == ["uint32_t"]
        and not (one.pointers or one.buffer)
        and one.result == "uint32_t"
        and one.cost * scope.times < 250
    ]
    name = coder.rng.choice([one.name for one in fits] + ["board_note"])
    coder.cost += 250 * scope.times if fits else 1
    table, value = coder.fresh("ops"), coder.quiet(scope, 1)
    lines = (
        Line(f"static const struct {{ uint32_t code; uint32_t (*run)(uint32_t); }} {table} = {{3u, {name}}};"),
        Line(f"total += {table}.run({value});"),
    )
    return [*coder.writes(scope), Nest("", lines), *coder.writes(scope)]


CASES: dict[str, tuple[int, Callable[[Coder, Scope], list[Statement]]]] = {
    "weak function": (4, around("board_hook();")),
    "atomic store": (4, around("__atomic_store_n(&done, {}, 5);")),
    "volatile by another name": (4, around("seen = {};")),
    "callee with a loop": (4, around("spin({});")),
    "callee that may never return": (4, around("stop({});")),
    "index changed two calls down": (6, changed_index),
    "inner extern": (4, inner_variable("extern uint32_t a;")),
    "inner static": (4, inner_variable("static uint32_t a;")),
    "macro for a name of ours": (4, written("OWN")),
    "line number": (4, written("__LINE__")),
    "two devices": (6, two_devices),
    "pragma of a loop": (4, around("\n#pragma GCC unroll 4\nfor (int i_ = 0; i_ < 2; i_++) board_note({});")),
    "loop of a macro": (4, around("EACH(i_, 2u) board_note({});")),
    "loop of a macro without a part": (3, around("{{ uint32_t i_ = 2u; TIMES(i_) board_note(i_ + {}); }}")),
    "attribute": (4, around("if (total & 1u) __extension__ total = board_note({});")),
    "arguments without a number": (4, around("total += pick(2, {}, 5u);")),
    "table of functions": (4, around("total ^= board_ops.note({});")),
    "call of what is registered": (3, around("board_called = turn_by_way; board_called();")),
    "read that flushes": (8, flush),
    "pragma of a loop of accesses": (4, under("\n#pragma GCC unroll 2\nfor (int i_ = 0; i_ < 2; i_++)")),
    "pragma as an operator": (3, under('_Pragma("GCC unroll 2") for (int i_ = 0; i_ < 2; i_++)')),
    "loop of a macro over accesses": (4, under("EACH(i_, 2u)")),
    "likely": (4, weighed("if (__builtin_expect({flag} != 0u, 1)) {place} = 1u;")),
    "attribute in brackets": (3, weighed("if ({flag}) [[likely]] {place} = 1u;")),
    "attribute between cases": (
        3,
        weighed("switch ({flag}) {{ case 1u: {place} = 1u; __attribute__((fallthrough)); default: {place} = 0u; }}"),
    ),
    "attribute of a local": (3, weighed("{{ uint32_t w_ __attribute__((unused)) = {flag}; {place} = w_ + 1u; }}")),
    "own table of functions": (5, own_table),
    "array of any size": (3, around("{{ typedef uint8_t row_[1u + (board_note({}) & 3u)]; total += sizeof(row_); }}")),
    "status after a setting": (6, status_after_setting),
}


def variadic(coder: Coder) -> Iterable[Made]:
    """A function that takes what it writes from `va_arg`, and one that calls it."""
    scope = Scope(["n"], [], [])
    places = [coder.paths(scope, is_writable, True) or "total" for _ in range(3)]
    lines = (
        Line("__builtin_va_list rest;"),
        Line("__builtin_va_start(rest, n);"),
        *(Line(f"{place} = __builtin_va_arg(rest, uint32_t);") for place in places),
        Line("__builtin_va_end(rest);"),
    )
    yield Made("set_all", "void", (("uint32_t", "n"), ("...", "")), (), False, lines, len(lines), static=True)
    call = Line("set_all(3u, x0, x0 + 1u, 3u * x0);")
    yield Made("drive_all", "void", (("uint32_t", "x0"),), (), False, (call,), len(lines))


def interrupt_routine(coder: Coder) -> Iterable[Made]:
    """A routine that is known by its name, with what it calls back, and a function that registers that.

    They use fields that nobody marks nor updates, which would be refused. Nothing is called back where the driver's
    other functions have their addresses taken: the routine may reach these, for all that anyone knows.
    """
    text = "\n".join(map(str, coder.made))
    scope = Scope(["a"], [], [])

    def fits(field: FieldDecl) -> bool:
        return field.writable and not re.search(_UPDATED.format(field.name), text)

    places = [place for place in (coder.paths(scope, fits, True) for _ in range(4)) if place]
    opening = Line("uint32_t a = total;")
    if not places:
        return
    has_callbacks = not _TAKEN.search(text)
    served = [Line(f"{place} = a >> 1;") for place in places[2:] if has_callbacks]
    if served:
        yield Made("serve", "void", (), (), False, (opening, *served), len(served), static=True)
        yield Made("drive_open", "void", (), (), False, (Line("board_called = serve;"),), 1)
    lines = [
        opening,
        *[Line("if (board_called) board_called();")] * has_callbacks,
        *(Line(f"{place} = a & 1u;") for place in places[:2]),
    ]
    yield Made("BOARD_IRQHandler", "void", (), (), False, tuple(lines), len(lines))
