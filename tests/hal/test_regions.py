"""Access regions: those that a colouring of the whole conflict graph gives, found in work that grows with the code."""

from __future__ import annotations

from cProfile import Profile
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewright.hal.analysis.bodies import read_functions
from edgewright.hal.analysis.clusters import clusters_of
from edgewright.hal.analysis.colouring import regions_of
from edgewright.hal.analysis.conflicts import Conflicts
from edgewright.hal.analysis.flattening import flatten
from edgewright.hal.analysis.functions import LISTED, Function
from edgewright.hal.language.description import Description
from edgewright.hal.language.groups import describe
from edgewright.hal.language.source import read_source
from tests.hal.cases import GROUPS
from tests.hal.random_drivers import draw_program


def read(text: str) -> tuple[tuple[Function, ...], Description]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "driver.c"
        path.write_text(text)
        source = read_source([path])
        description = describe(source)
        return read_functions(source, description), description


def coloured(function: Function, description: Description) -> tuple[tuple[int, ...], ...]:
    """Each access in the first region of its kind in which it conflicts with none; every pair is judged."""
    judge = Conflicts(function, description)
    regions: list[list[int]] = []
    for access in function.accesses:
        for region in regions:
            members = [function.accesses[number] for number in region]
            is_free = all(judge.reason(member, access) is None for member in members)
            if members[0].kind is access.kind and is_free:
                region.append(access.number)
                break
        else:
            regions.append([access.number])
    return tuple(map(tuple, regions))


def check_regions(text: str) -> int:
    """Compares the regions of every function; the number of accesses in regions of several."""
    functions, description = read(text)
    merged = 0
    for function in functions:
        found = regions_of(Conflicts(function, description)).regions
        assert found == coloured(function, description), f"{function.name} in\n{text}"
        merged += sum(len(region) for region in found if len(region) > 1)
    return merged


@given(st.integers(0, 1 << 32), st.booleans())
@settings(max_examples=25, deadline=None)
def test_regions_are_those_of_the_conflict_graph(seed, plain):
    check_regions(str(draw_program(seed, functions=4, plain=plain)))


# Bodies of any flow of control: labels that are jumped to from anywhere make loops that no keyword shows.
STATEMENTS = (
    "s += dev->x;", "s += dev->y;", "s += dev->status;", "s += dev->count;", "s += dev->data;", "s += twin->x;",
    "dev->x = s;", "dev->y = s;", "dev->go = 1;", "dev->clear_x = 1;", "twin->x = s;", "dev->flags = s;",
    "dev->error = 1;", "dev->again[1] = 1;", "dev->again[i] = 1;", "twin->error = 1;", "s += dev->error;",
    "dev->part[i].c = s;",
    "s += dev->part[i].c;", "s += dev->part[i].d;", "s += p->c;", "p->d = s;", "i++;", "p = q;", "unknown();",
    "next();", "s += dev->part[global_index].d;", "dev->part[1].c = 3;", "dev->part[2].c = 4;", "s += dev->part[1].d;",
    "if (s > 3) {", "while (s--) {", "do {", "for (j = 0; j < 4; j++) {", "switch (s) { case 1:", "} else {", "}",
    "if (s) break;", "if (s) continue;", "case 2:", "s = s ? dev->x : dev->y;", "if (s && dev->x) s++;", "return s;",
    *(f"l{n}: ;" for n in range(3)), *(f"if (s > {n}) goto l{n};" for n in range(3)),
)  # fmt: skip


@st.composite
def bodies(draw) -> str:
    """A body in which every brace is closed, and every label that is jumped to stands once."""
    lines: list[str] = []
    opened: list[str] = []
    labels: set[str] = set()
    for statement in draw(st.lists(st.sampled_from(STATEMENTS), min_size=4, max_size=24)):
        match statement.split()[0]:
            case "}" if "else" in statement and (not opened or opened[-1] != "if"):
                continue
            case "}" if not opened:
                continue
            case "}":
                kind = opened.pop()
                if "else" in statement:
                    opened.append("else")
                elif kind == "do":
                    statement = "} while (s < 9);"
            case "case" if not opened or opened[-1] != "switch" or "case 2" in labels:
                continue
            case "case":
                labels.add("case 2")
            case "l0:" | "l1:" | "l2:" as label if label in labels:
                continue
            case "l0:" | "l1:" | "l2:" as label:
                labels.add(label)
        if "break" in statement and not {"while", "do", "for", "switch"} & set(opened):
            continue
        if "continue" in statement and not {"while", "do", "for"} & set(opened):
            continue
        if statement.endswith(("{", "case 1:")) and "}" not in statement:
            opened.append(statement.split()[0])
            if statement.startswith("switch"):
                labels.discard("case 2")
        lines.append(statement)
    lines += ["} while (s);" if kind == "do" else "}" for kind in reversed(opened)]
    lines += [f"{label}: ;" for label in ("l0", "l1", "l2") if f"{label}:" not in labels]
    return "\n".join(lines)


@given(st.lists(bodies(), min_size=1, max_size=6))
@settings(max_examples=25, deadline=None)
def test_regions_with_any_flow_of_control(some):
    head = "int f{n}(bfGroup Part *p, bfGroup Part *q, int i, int s) {{ int j = 0;\n{body}\nreturn s; }}\n"
    check_regions(GROUPS + "\n".join(head.format(n=n, body=body) for n, body in enumerate(some)))


def test_the_tests_see_regions_of_several_accesses():
    assert sum(check_regions(str(draw_program(seed))) for seed in range(1)) > 30


FIELDS = 10
QUICK = "if after if"  # others are in check-all
SHAPES = {
    "straight code": "{access}",
    "if after if": "if (s & {n}u) {{ {access} }}",
    "every second under an if": "if (s & {n}u) {access} s += dev->f0;",
    "loop after loop": "while (s-- > {n}u) {{ {access} }}",
    "loops made by goto": "l{n}: {access} if (s > {n}u) goto l{n};",
    "one loop around all": "l{n}: {access} if (s > {n}u) goto l0;",
}


def driver(accesses: int, shape: str, kinds: str) -> str:
    """One function with so many accesses to ten fields: reads, writes, or both in turn."""
    fields = "".join(f"uint4 f{n}; " for n in range(FIELDS))
    head = f'#include "edgewright_hal.h"\nbfGroup Dev {{ {fields}}};\nmake_device(Dev, dev, 0x1000);\n'
    lines = []
    for n in range(accesses):
        is_read = kinds == "reads" or (kinds == "both" and n % 3 == 0)
        access = f"s += dev->f{n % FIELDS};" if is_read else f"dev->f{n % FIELDS} = {n % 16};"
        lines.append(SHAPES[shape].format(access=access, n=n))
    return head + "uint32_t f(uint32_t s)\n{\n" + "\n".join(lines) + "\nreturn s;\n}\n"


def work(text: str) -> int:
    """Calls of functions, Python's and C's, on the way from a function's events to its clusters."""
    (function,), description = read(text)
    _, uses = flatten(description, (function,))
    counter = Profile()
    counter.enable()
    judge = Conflicts(function, description)
    clusters_of(judge, regions_of(judge), uses)
    counter.disable()
    return sum(entry.callcount for entry in counter.getstats())


@pytest.mark.parametrize(
    ("shape", "kinds"),
    [
        *(pytest.param(shape, "both", marks=() if shape == QUICK else pytest.mark.slow) for shape in SHAPES),
        ("straight code", "reads"),
        pytest.param("if after if", "writes", marks=pytest.mark.slow),
    ],
)
def test_work_grows_with_the_code(shape, kinds):
    small, large = (work(driver(accesses, shape, kinds)) for accesses in (250, 500))
    assert LISTED < 250, "conflicts would be listed, which grows with the square"
    assert large <= 2.4 * small
