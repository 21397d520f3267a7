"""The worked examples of S 6, from source to code; and merges that would hinder each other."""

import re

import pytest

from edgewright.hal.analysis.accesses import Kind
from edgewright.hal.design_flow import analyse
from edgewright.hal.generate import generate
from edgewright.hal.layout.layout import elaborate
from edgewright.hal.layout_choice import chosen_design
from tests.hal.cases import GPIO, GPIO_B, GROUPS, INNER_OUTER

COMBINED = """
void combine_example(bfGroup GPIOPad *pad) {
    uint8_t tmp1, tmp2;
    HAL_READ_GPIOPad_dir_intEn(pad, &tmp1, &tmp2);
    int dir = tmp1;
    if (tmp2 && dir)
        HAL_WRITE_GPIOPad_dir(pad, HAL_READ_GPIOType_intStatus(gpio) != 0);
}
"""


def designed(tmp_path, source, method="optimal"):
    path = tmp_path / "driver.c"
    path.write_text(source)
    return chosen_design(analyse([path]), method)


def words(text):
    return re.findall(r"\w+|\S", text)


@pytest.mark.parametrize("method", ["optimal", "paper"])
@pytest.mark.parametrize("source", [GPIO, GPIO_B])
def test_combine_example_reads_both_fields_at_once(tmp_path, source, method):
    """S 6.5: what is generated for variant (b); variant (a) gives the same, since intStatus lies in another group."""
    code = generate(designed(tmp_path, source, method), "gpio")["driver.c"]
    assert " ".join(words(COMBINED)) in " ".join(words(code))
    assert "HAL_WRITE_GPIOPad_out(&gpio->pads[pinnumber], value);" in code


def test_paper_layout_of_inner_and_outer(tmp_path):
    """Figure 6.7: {a, b, c} at 0, {d, e} at 4, {f} at 8."""
    made = designed(tmp_path, INNER_OUTER, "paper")
    registers = elaborate(made.analysis.description, made.analysis.spaces, made.layout)
    found = [(r.offset, [(f.name.split(".")[-1], f.bit) for f in r.fields]) for r in registers]
    assert found == [(0, [("a", 0), ("b", 8), ("c", 16)]), (4, [("d", 0), ("e", 8)]), (8, [("f", 0)])]


BODY = "int f(bfGroup Part *p) {{ int s = 0; {} return s; }}\n"
ALL_ONE = (
    "bfGroup Part {\n    bit pin(0, 0) a; bit pin(0, 1) b; uint4 pin(0, 2) c; uint8 pin(0, 8) d; uint8 arr[4];\n};"
)


def merges(tmp_path, body):
    """The merges of f, all narrow fields being in one register."""
    head = re.sub(r"bfGroup Part \{.*?\};", ALL_ONE, GROUPS, flags=re.DOTALL)
    made = designed(tmp_path, head + BODY.format(body))
    return {(merge.kind, merge.slots) for merge in made.merging["f"].merges}


def test_reads_in_a_row_become_one(tmp_path):
    assert merges(tmp_path, "s = p->a; s += p->c;") == {(Kind.READ, ("a", "c"))}


def test_writes_in_a_row_become_one(tmp_path):
    assert merges(tmp_path, "p->a = 1; p->b = 2;") == {(Kind.WRITE, ("a", "b"))}


def test_a_read_that_moved_up_is_not_overtaken_by_a_write(tmp_path):
    """The read of a moves up to that of c, which is after the first write of a but before the merged one."""
    assert merges(tmp_path, "p->a = 1; s = p->c; p->b = 2; s += p->a;") == {(Kind.READ, ("c", "a"))}


@pytest.mark.parametrize(
    "body",
    [
        "s = p->a && p->c;",
        "s = p->a ? p->c : 1;",
        "s = s && (p->a + p->c);",  # under a short circuit: nothing may be put in front
        "s = s++ + p->a; s += (p->a = 1) + p->c;",
    ],
)
def test_nothing_is_read_in_front_of_a_condition_of_its_own(tmp_path, body):
    assert not {slots for kind, slots in merges(tmp_path, body) if kind is Kind.READ and len(slots) > 1}


@pytest.mark.parametrize(
    "body",
    [
        "while (p->a | p->c) p->a = 0;",
        "do { s++; } while (p->a + p->c < s);",
        "for (; p->a + p->c > s; s++) p->c = 0;",
    ],
)
def test_reads_of_a_loops_condition_become_one_in_it(tmp_path, body):
    """They are read again each time round."""
    assert (Kind.READ, ("a", "c")) in merges(tmp_path, body)
    head = re.sub(r"bfGroup Part \{.*?\};", ALL_ONE, GROUPS, flags=re.DOTALL)
    made = generate(designed(tmp_path, head + BODY.format(body)), "driver")["driver.c"]
    assert re.search(r"(while \(|for \(; )HAL_READ_\w+\(p, &tmp1, &tmp2\), tmp1", made)
