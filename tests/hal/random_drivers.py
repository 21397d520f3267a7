"""Random drivers in the bfGroup language, the same for the same seed, and a way to make a failing one small."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from random import Random

from tests.hal.random_cases import DECLARED, interrupt_routine, variadic
from tests.hal.random_code import Coder
from tests.hal.random_groups import DeviceDecl, FieldDecl, GroupDecl, World, draw_world, with_words
from tests.hal.random_text import Line, Made, Nest, Statement

OPENING = """#include "edgewright_hal.h"

"""
MIDDLE = """
#define LIMIT 3u
#define ONCE(x) ((x) != 0u)

extern uint32_t board_note(uint32_t code);
extern uint32_t board_wait(uint32_t ticks);

static uint32_t total;
static uint32_t words[4];

"""
CLOSING = """
uint32_t state_of_driver(void)
{
    return total + words[0] + words[1] + words[2] + words[3];
}
"""


@dataclass(frozen=True, slots=True)
class Program:
    """A driver: peripherals and the functions that drive them."""

    seed: int
    world: World
    functions: tuple[Made, ...]
    kinds: Counter[str] = field(default_factory=Counter, compare=False)  # what it is made of
    has_cases: bool = False  # what once went wrong is among it

    @property
    def has_snapshots(self) -> bool:
        return any("snapshot" in str(function) for function in self.functions)

    def __str__(self) -> str:
        declared = "\n".join(map(str, self.world.groups)) + "\n" + "".join(map(str, self.world.devices))
        code = "\n".join(map(str, self.functions))
        return OPENING + declared + MIDDLE + (DECLARED if self.has_cases else "") + code + CLOSING


def draw_program(seed: int, functions: int = 20, plain: bool = False) -> Program:
    """The driver of a seed."""
    rng = Random(seed)
    world = draw_world(rng, plain)
    has_words = not plain and seed % 5 in (2, 4)  # the same drivers as ever for all other seeds
    has_cases = not plain and seed % 5 in (1, 3)
    coder = Coder(rng, with_words(rng, world) if has_words else world, has_words=has_words, has_cases=has_cases)
    for number in range(functions):
        coder.function(f"drive{number}")
    made = tuple(_hidden(rng, coder.made))
    taking = variadic(coder) if has_cases and rng.random() < 0.5 else ()
    routine = interrupt_routine(coder) if has_cases and rng.random() < 0.5 else ()
    return Program(seed, coder.world, (*made, *taking, *routine), coder.kinds, has_cases)


def _hidden(rng: Random, made: list[Made]) -> Iterator[Made]:
    """Some functions that others call are static."""
    for number, one in enumerate(made):
        called = any(f"{one.name}(" in str(other) for other in made[number + 1 :])
        yield replace(one, static=True) if called and rng.random() < 0.25 else one


def shrunk(program: Program, fails: Callable[[Program], bool], tries: int = 300) -> Program:
    """A smaller program that still fails: functions, statements and fields go while it does."""
    changed = True
    while changed:
        changed = False
        for way in (_fewer_functions, _fewer_statements, _fewer_members, _fewer_devices):
            found = _first(way(program), fails, tries)
            while found is not None:
                program, changed = found, True
                found = _first(way(program), fails, tries)
    return program


def _first(ways: Iterator[Program], fails: Callable[[Program], bool], tries: int) -> Program | None:
    return next((way for _, way in zip(range(tries), ways, strict=False) if fails(way)), None)


def _fewer_functions(program: Program) -> Iterator[Program]:
    """Half of them gone, then a quarter, down to one."""
    made, step = program.functions, max(1, len(program.functions) // 2)
    while step:
        for start in range(0, len(made), step):
            kept = made[:start] + made[start + step :]
            if kept:
                yield replace(program, functions=kept)
        step //= 2


def _fewer_statements(program: Program) -> Iterator[Program]:
    for number, made in enumerate(program.functions):
        for body in _without_one(made.body):
            smaller = replace(made, body=body)
            yield replace(program, functions=(*program.functions[:number], smaller, *program.functions[number + 1 :]))


def _without_one(body: tuple[Statement, ...]) -> Iterator[tuple[Statement, ...]]:
    for number, statement in enumerate(body):
        before, after = body[:number], body[number + 1 :]
        if after or not isinstance(statement, Line) or "return" not in statement.text:
            yield (*before, *after)
        if isinstance(statement, Nest):
            yield (*before, *statement.body, *after)
            yield from ((*before, replace(statement, body=inner), *after) for inner in _without_one(statement.body))


def _fewer_members(program: Program) -> Iterator[Program]:
    for number, group in enumerate(program.world.groups):
        for smaller in _smaller_groups(group):
            groups = (*program.world.groups[:number], *smaller, *program.world.groups[number + 1 :])
            yield replace(program, world=World(groups, program.world.devices))


def _smaller_groups(group: GroupDecl) -> Iterator[tuple[GroupDecl, ...]]:
    yield ()
    for number, member in enumerate(group.members):
        before, after = group.members[:number], group.members[number + 1 :]
        yield (replace(group, members=(*before, *after)),)
        if isinstance(member, FieldDecl) and member.marks:
            yield (replace(group, members=(*before, replace(member, marks=()), *after)),)


def _fewer_devices(program: Program) -> Iterator[Program]:
    devices = program.world.devices
    for device in devices:
        kept: tuple[DeviceDecl, ...] = tuple(other for other in devices if other is not device)
        yield replace(program, world=World(program.world.groups, kept))
        if device.bus != (32, 32):
            wide = tuple(replace(other, bus=(32, 32)) for other in devices)
            yield replace(program, world=World(program.world.groups, wide))
