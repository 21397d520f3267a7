"""Layouts of bit field groups: flattening, the paper's heuristic, the optimiser, and the judge over all of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from edgewright.cpsat import cp_model
from edgewright.errors import Infeasible, InputError
from edgewright.hal import examples
from edgewright.hal.analysis.accesses import Access, Expression, Form, Hop, Kind, Spot
from edgewright.hal.analysis.flattening import flatten
from edgewright.hal.analysis.functions import Flow, Function, Parameter
from edgewright.hal.analysis.spaces import Joint, Slot, Space
from edgewright.hal.design_flow import analyse, naive, real_joints
from edgewright.hal.language.description import (
    Bus,
    Child,
    Description,
    Device,
    EffectTarget,
    Field,
    Group,
    Mode,
    Place,
)
from edgewright.hal.layout.assembly import Assembly, assemble, lay_out_naive
from edgewright.hal.layout.cells import Cell, width_for
from edgewright.hal.layout.cost import LayoutGoal, access_patterns, cost_of
from edgewright.hal.layout.front import layout_front
from edgewright.hal.layout.judge import faults
from edgewright.hal.layout.layout import Layout, Piece, Register, elaborate
from edgewright.hal.layout.optimal import lay_out_optimal
from edgewright.hal.layout.packing import by_gain, side_by_side
from edgewright.hal.layout.paper import combinations, lay_out_paper
from edgewright.hal.layout.rules import Rules
from edgewright.hal.layout_choice import chosen_design, total_accesses

HERE = Place("driver.c", 1)
WORDS = Bus()


def f(name, bits=8, **more):
    return Field(name, bits, HERE, **more)


def group(name, *members):
    return Group(name, members, HERE)


def described(*groups, bus=WORDS, address=0x1000):
    root = groups[-1].name
    return Description({g.name: g for g in groups}, (Device("dev", root, address, HERE, bus),))


def expression(text):
    value = int(text) if text.isdigit() else None
    names = frozenset() if value is not None else frozenset({text})
    return Expression((0, 0), text, names, value)


def access(group_name, base, path, *, device=None, number=0, owner=""):
    """An access such as pads[i].dir, written "pads[i].dir"."""
    hops = []
    for word in path.split("."):
        member, _, index = word.rstrip("]").partition("[")
        hops.append(Hop(member, expression(index) if index else None))
    spot = Spot("driver.c", Form.READ, (0, 0), None, "", (0, 0), False, True, True)
    return Access(number, "go", Kind.READ, group_name, expression(base), device, tuple(hops), owner, HERE, spot, 0)


def function(*accesses, parameters=()):
    numbered = tuple(replace(a, number=n) for n, a in enumerate(accesses))
    return Function("go", "driver.c", HERE, (0, 0), parameters, numbered, Flow((), ()))


def joint(*slots, writes=False, times=1, space="Dev", **more):
    return [Joint(space, slots, writes, "go", **more)] * times


def grouping(layout, space):
    return {frozenset(p.slot for p in r.pieces) for r in layout.spaces[space].registers}


def offsets(description, spaces, layout):
    return [(r.offset, [(x.name, x.bit) for x in r.fields]) for r in elaborate(description, spaces, layout)]


def one_space(*fields, bus=WORDS):
    """A device of plain fields, flattened by hand."""
    description = described(group("Dev", *fields), bus=bus)
    slots = tuple(Slot(x.name, ((x.name, None if x.count is None else -1),), "Dev", x, counts(x)) for x in fields)
    return description, {"Dev": Space("Dev", slots)}


def counts(field):
    return () if field.count is None else (field.count,)


# The paper's example

INNER1 = group("Inner1", f("a"), f("b"), f("c"))
INNER2 = group("Inner2", f("d"), f("e"))
OUTER = group("Outer", Child("inner1", "Inner1", HERE), Child("inner2", "Inner2", HERE), f("f"))


@pytest.mark.parametrize("pointers", [False, True])
def test_the_papers_example(pointers):
    description = described(INNER1, INNER2, OUTER)
    parameters = tuple(Parameter(n, g) for n, g in [("p", "Inner1"), ("q", "Inner2")])
    spaces, _ = flatten(description, [function(parameters=parameters if pointers else ())])
    one, two = ("Inner1", "Inner2") if pointers else ("Outer", "Outer")
    name = (lambda prefix, x: x) if pointers else (lambda prefix, x: f"{prefix}_{x}")
    a, b, c = (name("inner1", x) for x in "abc")
    d, e = (name("inner2", x) for x in "de")
    joints = joint(d, e, times=5, space=two) + joint(a, c, times=2, space=one) + joint(a, b, c, times=2, space=one)
    assert combinations(one, joints)[-2:] == [(a, b, c), (a, c)]
    layout = lay_out_paper(description, spaces, joints)
    assert offsets(description, spaces, layout) == [
        (0, [("inner1.a", 0), ("inner1.b", 8), ("inner1.c", 16)]),
        (4, [("inner2.d", 0), ("inner2.e", 8)]),
        (8, [("f", 0)]),
    ]
    best = lay_out_optimal(description, spaces, joints, LayoutGoal(minimise="accesses"))
    for together, where in (({a, b, c}, one), ({d, e}, two)):
        assert any(together <= found for found in grouping(best, where))
    assert best.optimal


# Flattening

PAD = group("Pad", f("dir", 1), f("cfg", 8))
GPIO = group("Gpio", Child("pads", "Pad", HERE, 4), f("status", 32, mode=Mode.RO), f("keys", 4, count=3))


def test_constant_indices_expand_arrays_and_groups():
    description = described(PAD, GPIO)
    code = function(access("Gpio", "gpio", "pads[2].dir", device="dev"))
    spaces, uses = flatten(description, [code])
    assert list(spaces) == ["Gpio"]
    names = [slot.name for slot in spaces["Gpio"].slots]
    assert names[:4] == ["pads_0_dir", "pads_0_cfg", "pads_1_dir", "pads_1_cfg"]
    assert names[-3:] == ["keys_0", "keys_1", "keys_2"]
    use = uses["go", 0]
    assert (use.space, use.base, use.slot, use.indices) == ("Gpio", "gpio", "pads_2_dir", ())


def test_variable_indices_keep_element_wise_arrays():
    description = described(PAD, GPIO)
    code = function(
        access("Gpio", "gpio", "pads[i].dir", device="dev"), access("Gpio", "gpio", "keys[1]", device="dev")
    )
    spaces, uses = flatten(description, [code])
    assert spaces["Gpio"].slot("pads_dir").counts == (4,)
    assert spaces["Gpio"].slot("pads_dir").steps == (("pads", -1), ("dir", None))
    assert [index.text for index in uses["go", 0].indices] == ["i"]
    assert uses["go", 0].names == {"gpio", "i"}
    assert uses["go", 1].slot == "keys_1"


def test_a_pointer_keeps_a_group_and_accesses_go_through_its_area():
    description = described(PAD, GPIO)
    code = function(access("Pad", "pad", "dir"), access("Gpio", "gpio", "pads[j].cfg", device="dev"))
    spaces, uses = flatten(description, [code])
    assert list(spaces) == ["Pad", "Gpio"]
    assert [(area.name, area.space, area.counts) for area in spaces["Gpio"].areas] == [("pads", "Pad", (4,))]
    assert uses["go", 0].base == "pad"
    assert (uses["go", 1].base, uses["go", 1].space, uses["go", 1].slot) == ("&gpio->pads[j]", "Pad", "cfg")
    assert uses["go", 1].names == {"gpio", "j"}
    assert uses["go", 1].indices == ()


def test_a_parameter_that_is_only_passed_on_keeps_its_group_and_those_around_it():
    around = group("Bank", Child("pad", "Pad", HERE), f("x"))
    root = group("Top", Child("banks", "Bank", HERE, 2))
    code = function(access("Top", "a ? b : c", "banks[1].pad.dir", device="dev"), parameters=(Parameter("p", "Pad"),))
    spaces, uses = flatten(described(PAD, around, root), [code])
    assert list(spaces) == ["Pad", "Bank", "Top"]
    assert uses["go", 0].base == "&(a ? b : c)->banks[1].pad"


def test_slot_names_differ_even_where_the_source_is_nasty():
    inner = group("In", f("b"))
    root = group("Top", f("a_0_b"), Child("a", "In", HERE, 2))
    spaces, _ = flatten(described(inner, root), [])
    assert [slot.name for slot in spaces["Top"].slots] == ["a_0_b", "a_0_b_", "a_1_b"]


def test_an_index_outside_its_array_is_refused():
    with pytest.raises(InputError, match=r"driver\.c:1:1.*keys\[7\]"):
        flatten(described(PAD, GPIO), [function(access("Gpio", "gpio", "keys[7]", device="dev"))])


# Naive


def test_naive_gives_every_slot_its_registers():
    description, spaces = one_space(f("a", 3), f("wide", 80, split=True), f("v", 5, count=3))
    layout = lay_out_naive(description, spaces)
    assert offsets(description, spaces, layout) == [
        (0, [("a", 0)]),
        (4, [("wide", 0)]),
        (8, [("wide", 0)]),
        (12, [("wide", 0)]),
        (16, [("v[0]", 0)]),
        (20, [("v[1]", 0)]),
        (24, [("v[2]", 0)]),
    ]
    assert faults(description, spaces, layout, []) == []


# The judge: every rule, with a layout that breaks it


def shared(*fields, joints=(), bus=WORDS):
    """The faults of a layout that has all fields in one register."""
    description, spaces = one_space(*fields, bus=bus)
    layout = assemble(description, spaces, {"Dev": (Cell(tuple(x.name for x in fields)),)}, Assembly("test"))
    return faults(description, spaces, layout, joints)


OTHER = (EffectTarget("Dev", "zz"),)


@pytest.mark.parametrize(
    ("fields", "joints", "words"),
    [
        ((f("a", rse=OTHER), f("b")), [], "reading one of them acts"),
        ((f("a", clear_on_read=True), f("b", mode=Mode.RO)), [], "reading one of them acts"),
        ((f("a", fifo=True), f("b")), [], "reading one of them acts"),
        ((f("a", wse=OTHER), f("b")), [], "writing one of them acts"),
        ((f("a", mode=Mode.WO), f("b")), [], "writing one of them acts"),
        ((f("a", wse=OTHER), f("b", w1c=True)), [], "writing one of them acts"),
        ((f("a"), f("b"), f("c", mode=Mode.RO)), joint("a", writes=True), "c, which the hardware changes"),
        ((f("a"), f("b", by_hardware=True)), joint("a", writes=True), "b, which the hardware changes"),
        ((f("a"), f("b", w1c=True)), joint("b", writes=True), "b, which the hardware changes"),
    ],
)
def test_rules_of_side_effects(fields, joints, words):
    assert any(words in fault for fault in shared(*fields, joints=joints))


@pytest.mark.parametrize(
    ("fields", "joints"),
    [
        ((f("a"), f("b")), joint("a", writes=True)),  # read-modify-write of plain fields
        ((f("a"), f("b", mode=Mode.RO)), joint("a", writes=True)),  # nothing to keep
        ((f("a", w1c=True), f("b", w1s=True), f("c", mode=Mode.RO)), joint("a", writes=True)),  # zeros do no harm
        ((f("a", fifo=True, mode=Mode.RO), f("b", mode=Mode.WO)), joint("b", writes=True)),  # a data register
        ((f("a", by_hardware=True), f("b", by_hardware=True)), joint("a", "b", writes=True)),  # always together
    ],
)
def test_lawful_neighbours(fields, joints):
    assert shared(*fields, joints=joints) == []


def broken(change, *fields, bus=WORDS):
    description, spaces = one_space(*(fields or (f("a"), f("b"))), bus=bus)
    layout = change(lay_out_naive(description, spaces))
    return faults(description, spaces, layout, [])


def with_registers(layout, *registers):
    return Layout({"Dev": replace(layout.spaces["Dev"], registers=registers)}, "test")


def register(offset, *pieces, width=32, **more):
    return Register(offset, width, pieces, **more)


A, B = Piece("a", 0, 8), Piece("b", 8, 8)


@pytest.mark.parametrize(
    ("registers", "words"),
    [
        ([register(0, A)], "b is not placed once"),
        ([register(0, A), register(4, A, B)], "a is not placed once"),
        ([register(0, A, replace(B, bit=7))], "overlaps another field"),
        ([register(0, A, replace(B, bit=28))], "does not fit"),
        ([register(0, A), register(0, B)], "overlap at byte 0"),
        ([register(0, A), register(2, B)], "not aligned"),
        ([register(0, A), register(8, B)], "end at byte 12"),
        ([register(0, A), register(4, replace(B, bit=0), width=8)], "8 bits wide"),
        ([register(0, A), register(4, replace(B, lanes=3))], "not a power of two"),
        ([register(0, A), register(4, replace(B, lanes=2))], "no array"),
        ([register(0, A), register(4, B, counts=(2,), strides=(4,))], "needs () registers"),
        ([register(0, A, Piece("b", 8, 4)), register(4, Piece("b", 0, 4, 4))], "not declared split"),
    ],
)
def test_rules_of_registers(registers, words):
    assert any(words in fault for fault in broken(lambda layout: with_registers(layout, *registers)))


def test_rules_of_lanes_pins_sizes_and_devices():
    lanes = (register(0, Piece("v", 0, 1, 0, 4), counts=(1,), strides=(4,)),)
    acting = broken(lambda x: with_registers(x, *lanes), f("v", 1, count=4, clear_on_read=True))
    assert any("has lanes, and accessing it acts" in fault for fault in acting)
    description, spaces = one_space(f("v", 1, count=4, by_hardware=True))
    layout = with_registers(lay_out_naive(description, spaces), *lanes)
    assert any(
        "v, which the hardware changes" in x for x in faults(description, spaces, layout, joint("v", writes=True))
    )
    assert faults(description, spaces, layout, joint("v")) == []
    description, spaces = one_space(f("a"), f("b", pinned=(8, 3)))
    naive, pinned = lay_out_naive(description, spaces), lay_out_paper(description, spaces, [])
    assert offsets(description, spaces, naive)[1] == (4, [("b", 0)])  # where pins do not count
    assert (8, [("b", 3)]) in offsets(description, spaces, pinned)
    moved = with_registers(lay_out_naive(description, spaces), register(0, A), register(8, B))
    assert any("pinned to byte 8, bit 3" in fault for fault in faults(description, spaces, moved, []))
    assert any("no multiple" in x for x in broken(lambda x: Layout({"Dev": replace(x.spaces["Dev"], size=9)}, "test")))
    two = replace(description, devices=(*description.devices, Device("late", "Dev", 0x1008, HERE)))
    assert any("dev and late overlap at 0x1008" in x for x in faults(two, spaces, pinned, []))


# The optimiser


def scored(description, spaces, joints, cells, goal):
    rules = {"Dev": Rules.of(description, spaces["Dev"], joints)}
    how = Assembly("test", by_gain(rules, access_patterns(joints), goal.sizes), power_of_two=goal.power_of_two)
    layout = assemble(description, spaces, {"Dev": cells}, how)
    return cost_of(description, spaces, layout, joints).score(goal.weights), layout


def partitions(names):
    if not names:
        yield []
        return
    first, *rest = names
    for smaller in partitions(rest):
        for n, part in enumerate(smaller):
            yield [*smaller[:n], [first, *part], *smaller[n + 1 :]]
        yield [[first], *smaller]


def every_layout(description, spaces, joints, goal):
    """All lawful ways to share registers, lanes included, judged one by one."""
    slots = {slot.name: slot for slot in spaces["Dev"].slots}
    rules = Rules.of(description, spaces["Dev"], joints)
    for partition in partitions(list(slots)):
        if any(len({slots[x].counts for x in part}) > 1 for part in partition):
            continue
        if any(sum(slots[x].field.bits for x in part) > 32 for part in partition):
            continue
        choices = [[]]
        for part in partition:
            options = [Cell(tuple(part))]
            lanes = rules.lanes(part[0]) if len(part) == 1 else 1
            options += [Cell(tuple(part), lanes)] if lanes > 1 else []
            choices = [[*cells, option] for cells in choices for option in options]
        for cells in choices:
            score, layout = scored(description, spaces, joints, tuple(cells), goal)
            is_small = goal.max_map is None or layout.map_bytes(description) <= goal.max_map
            if is_small and not faults(description, spaces, layout, joints):
                yield score


FLAVOURS = [
    {},
    {},
    {},
    {"mode": Mode.RO},
    {"mode": Mode.WO},
    {"w1c": True},
    {"by_hardware": True},
    {"fifo": True},
    {"clear_on_read": True},
    {"wse": OTHER},
    {"rse": OTHER},
    {"shared_with_isr": True},
    {"count": 6},
    {"count": 6, "mode": Mode.RO},
]


PLAIN = [{}, {}, {}, {"mode": Mode.RO}, {"shared_with_isr": True}]


@st.composite
def problems(draw, most=7, bus=WORDS, flavours=FLAVOURS):
    size = draw(st.integers(2, most))
    fields = [
        f(f"f{n}", draw(st.sampled_from([1, 2, 3, 8, 12, 16, 32])), **draw(st.sampled_from(flavours)))
        for n in range(size)
    ]
    joints = []
    for _ in range(draw(st.integers(0, 6))):
        writes = draw(st.booleans())
        able = [x for x in fields if x.mode is not (Mode.RO if writes else Mode.WO)]
        wanted = draw(st.lists(st.sampled_from(able), max_size=4, unique_by=lambda x: x.name)) if able else []
        wanted = [x for x in wanted if x.count == wanted[0].count]
        if wanted:
            more = {"dynamic": wanted[0].count is not None, "depth": draw(st.integers(0, 1))}
            if writes and not any(x.w1c for x in wanted):
                more["gates"] = tuple(x.name for x in wanted[1:-1] if draw(st.booleans()))
            joints += joint(*(x.name for x in wanted), writes=writes, times=draw(st.integers(1, 4)), **more)
    return (*one_space(*fields, bus=bus), joints)


KINDS = ["balanced", "code", "accesses", "map"]


GATED = one_space(f("a"), f("b", by_hardware=True), f("c", 2), f("d", 3)), joint(*"abcd", writes=True, gates=("b", "c"))


@settings(max_examples=25, deadline=None)
@given(problems(most=5) | problems(most=5, flavours=PLAIN), st.sampled_from(KINDS))
@example((*GATED[0], GATED[1] + joint("a", "d", times=3)), "accesses")
@example((*GATED[0], GATED[1] + joint("a", "d", writes=True, times=3) + joint("b")), "code")
@example((*one_space(f("a"), f("b", shared_with_isr=True)), joint("a", writes=True) + joint("b", writes=True)), "map")
@example((*one_space(f("v", 1, count=8)), joint("v", writes=True, dynamic=True) + joint("v", dynamic=True)), "map")
@example((*one_space(f("v", 8, count=8)), joint("v", writes=True) + joint("v", dynamic=True)), "map")
def test_optimal_equals_brute_force(problem, minimise):
    description, spaces, joints = problem
    goal = LayoutGoal(minimise=minimise, views=False)
    with patch.object(cp_model, "CpSolver", side_effect=[solver := cp_model.CpSolver()]):
        best = lay_out_optimal(description, spaces, joints, goal)
    assert best.optimal
    assert best.cost == best.bound == min(every_layout(description, spaces, joints, goal))
    # The model's own objective counts what the places save; with what every layout pays it is the score.
    sizes = goal.sizes
    aside = {True: sizes.shift + sizes.join, False: sizes.shift + sizes.mask}
    always = sum(w.times * len(w.slots) * aside[w.writes] for w in access_patterns(joints))
    assert solver.objective_value + goal.weights[0] * always == pytest.approx(best.cost)


@settings(max_examples=15, deadline=None)
@given(problems(most=5) | problems(most=5, flavours=PLAIN), st.integers(1, 12))
def test_limits_are_kept_or_proven_impossible(problem, words):
    description, spaces, joints = problem
    goal = LayoutGoal(max_map=4 * words, views=False)
    scores = list(every_layout(description, spaces, joints, goal))
    if scores:
        best = lay_out_optimal(description, spaces, joints, goal)
        assert best.cost == min(scores)
        assert best.map_bytes(description) <= 4 * words
    else:
        with pytest.raises(Infeasible, match=f"fits in {4 * words} bytes: the smallest has"):
            lay_out_optimal(description, spaces, joints, goal)


@settings(max_examples=25, deadline=None)
@given(problems(bus=Bus(32, 8)) | problems(), st.sampled_from(KINDS))
def test_all_layouts_are_lawful_and_the_optimal_is_best(problem, minimise):
    description, spaces, joints = problem
    goal = LayoutGoal(minimise=minimise)
    layouts = [
        lay_out_naive(description, spaces),
        lay_out_paper(description, spaces, joints),
        lay_out_optimal(description, spaces, joints, goal),
    ]
    layouts.append(side_by_side(layouts[2], spaces))
    assert [faults(description, spaces, layout, joints) for layout in layouts] == [[], [], [], []]
    for name in spaces:
        assert grouping(layouts[3], name) == grouping(layouts[2], name)
    scores = [cost_of(description, spaces, layout, joints).score(goal.weights) for layout in layouts]
    assert scores[2] == min(scores)


def test_fields_of_a_register_lie_side_by_side_as_they_are_declared():
    description, spaces = one_space(f("go", 1), f("data"), f("mode", 2), f("late", 1), f("other", 4))
    pieces = (Piece("late", 0, 1), Piece("mode", 4, 2), Piece("data", 16, 8), Piece("go", 31, 1))
    layout = with_registers(lay_out_naive(description, spaces), register(0, *pieces), register(4, Piece("other", 0, 4)))
    tidy = side_by_side(layout, spaces)
    first, second = tidy.spaces["Dev"].registers
    assert [(piece.slot, piece.bit) for piece in first.pieces] == [
        ("go", 0),
        ("data", 8),
        ("mode", 16),
        ("late", 18),
    ]
    assert second == layout.spaces["Dev"].registers[1] and side_by_side(tidy, spaces) is tidy


def test_byte_lanes_give_narrow_registers():
    description, spaces = one_space(f("a", 8), f("b", 16), f("c", 8), bus=Bus(32, 8))
    joints = [x for name in "abc" for x in joint(name, writes=True, times=3)]
    layout = lay_out_optimal(description, spaces, joints, LayoutGoal())
    assert sorted(r.width for r in layout.spaces["Dev"].registers) == [8, 8, 16]
    assert layout.map_bytes(description) == 4
    assert width_for(9, Bus(32, 8)) == 16


def test_most_is_gained_by_keeping_apart_what_is_written_apart():
    description, spaces = one_space(f("a"), f("b"), f("c"))
    apart = [x for name in "abc" for x in joint(name, writes=True, times=3)]
    assert len(lay_out_optimal(description, spaces, apart, LayoutGoal()).spaces["Dev"].registers) == 3
    assert (
        len(lay_out_optimal(description, spaces, apart, LayoutGoal(max_map=8, views=False)).spaces["Dev"].registers)
        == 2
    )
    assert (
        len(
            lay_out_optimal(description, spaces, joint("a", "b", "c", writes=True), LayoutGoal())
            .spaces["Dev"]
            .registers
        )
        == 1
    )


def test_indexed_areas_have_strides_of_a_power_of_two_where_the_limit_allows():
    pad = group("Pad", f("in", 32, mode=Mode.RO), f("out", 32), f("cfg", 32))
    description = described(pad, group("Dev", Child("pads", "Pad", HERE, 4), f("on", 1)))
    spaces, _ = flatten(description, [function(parameters=(Parameter("p", "Pad"),))])
    joints = joint("in", space="Pad") + joint("out", writes=True, space="Pad")
    roomy = lay_out_optimal(description, spaces, joints, LayoutGoal())
    assert roomy.spaces["Dev"].areas[0].strides == (16,)
    assert roomy.map_bytes(description) == 68
    tight = lay_out_optimal(description, spaces, joints, LayoutGoal(max_map=52))
    assert tight.spaces["Dev"].areas[0].strides == (12,)
    with pytest.raises(Infeasible, match="the smallest has 52"):
        lay_out_optimal(description, spaces, joints, LayoutGoal(max_map=51))


def test_areas_between_pins_count_once_under_a_limit():
    part = group("Part", f("cfg", 1), f("sel", 12), f("out", 2))
    description = described(part, group("Dev", Child("part", "Part", HERE), f("mask", 2, pinned=(8, 0)), f("on", 7)))
    spaces, _ = flatten(description, [function(parameters=(Parameter("p", "Part"),))])
    least = lay_out_optimal(description, spaces, [], LayoutGoal(minimise="map")).map_bytes(description)
    assert least == 12  # the part lies between the free register and the pinned one
    for limit in range(least, least + 9):
        assert lay_out_optimal(description, spaces, [], LayoutGoal(max_map=limit)).map_bytes(description) <= limit
    with pytest.raises(Infeasible, match="the smallest has 12"):
        lay_out_optimal(description, spaces, [], LayoutGoal(max_map=least - 1))


def test_pins_hold_and_what_is_free_goes_around_them():
    description, spaces = one_space(f("a", 32), f("b", 4, pinned=(5, 2)), f("c", 4, pinned=(4, 0)), f("d", 32))
    layout = lay_out_optimal(description, spaces, joint("a") + joint("b"), LayoutGoal())
    assert offsets(description, spaces, layout) == [(0, [("a", 0)]), (4, [("b", 10), ("c", 0)]), (8, [("d", 0)])]
    description, spaces = one_space(f("a", 4, pinned=(0, 0), fifo=True), f("b", 4, pinned=(0, 4)))
    with pytest.raises(Infeasible, match=r"a and b share a register.*pins"):
        lay_out_optimal(description, spaces, [], LayoutGoal())


def test_hundreds_of_fields():
    fields = [f(f"f{n}", 1 + n % 12, mode=Mode.RO if n % 5 == 0 else Mode.RW) for n in range(240)]
    description, spaces = one_space(*fields)
    joints = [x for n in range(0, 120, 3) for x in joint(f"f{n + 1}", f"f{n + 2}", writes=n % 5 not in (3, 4), times=2)]
    joints = [x for x in joints if not x.writes or all(int(name[1:]) % 5 for name in x.slots)]
    layout = lay_out_optimal(description, spaces, joints, LayoutGoal())
    assert faults(description, spaces, layout, joints) == []
    paper = cost_of(description, spaces, lay_out_paper(description, spaces, joints), joints)
    assert layout.bound <= layout.cost <= paper.score(LayoutGoal().weights)


def test_the_front_runs_from_the_least_map_to_the_least_code():
    description, spaces = one_space(*(f(name, 8) for name in "abcdef"), f("bits", 1, count=8))
    joints = [x for name in "abcdef" for x in joint(name, writes=True, times=2)]
    joints += joint("bits", writes=True, dynamic=True)
    front = layout_front(description, spaces, joints)
    maps, codes = [p.map_bytes for p in front], [p.code for p in front]
    assert maps == sorted(set(maps))
    assert codes == sorted(codes, reverse=True)
    assert (maps[0], maps[-1]) == (12, 24 + 32)
    assert all(faults(description, spaces, p.layout, joints) == [] for p in front)
    assert all(p.layout.map_bytes(description) == p.map_bytes for p in front)


def test_a_solver_out_of_time_keeps_what_it_started_from():
    """No proof and no failure: the layout of the local search, with a bound."""
    description, spaces = one_space(*(f(name) for name in "abcdefgh"))
    joints = joint(*"ab") + joint(*"cd", writes=True) + joint(*"efg") + joint("h", writes=True) + joint(*"ac")
    for limit in (None, 16):
        layout = lay_out_optimal(description, spaces, joints, LayoutGoal(limit), patience=1e-9)
        assert faults(description, spaces, layout, joints) == []
        assert limit is None or layout.map_bytes(description) <= limit
        assert layout.bound <= layout.cost


@pytest.mark.parametrize("name", ["gpio", "adc", "uart", "rtc"])
def test_the_default_takes_no_more_accesses_than_a_register_for_each_field(name):
    """Nor is a layout that is best at one thing better in all that is known without a compiler."""
    folder = Path(examples.__file__).parent
    analysis = analyse([folder / f"{name}.c"], [folder])
    found = chosen_design(analysis)
    assert total_accesses(found) <= total_accesses(naive(analysis))
    figures = total_accesses(found), found.layout.map_bytes(analysis.description)
    cost = cost_of(analysis.description, analysis.spaces, found.layout, real_joints(found)).code
    for minimise in ("code", "accesses", "map"):
        other = chosen_design(analysis, goal=LayoutGoal(minimise=minimise))
        theirs = total_accesses(other), other.layout.map_bytes(analysis.description)
        code = cost_of(analysis.description, analysis.spaces, other.layout, real_joints(other)).code
        dominates = theirs[0] <= figures[0] and theirs[1] <= figures[1] and code <= cost
        assert not dominates or (*theirs, code) == (*figures, cost)
