"""Control and data flow of drivers, conflicts and access regions (S 6.4.1, S 6.4.2)."""

import pytest

from tests.hal.cases import GPIO, GPIO_B, Checked


def test_combine_example_variant_a(tmp_path):
    """Figure 6.5 (a): the write of dir conflicts with the reads of dir and intEn; all reads may be combined."""
    checked = Checked(tmp_path, "", GPIO, "combine_example")
    assert set(checked.conflicts) == {(0, 3), (1, 3)}
    assert checked.regions == [["read dir", "read intEn", "read intStatus"], ["write dir"]]


def test_combine_example_variant_b(tmp_path):
    """Figure 6.5 (b): with rse(intEn) on intStatus its read stands alone."""
    checked = Checked(tmp_path, "", GPIO_B, "combine_example")
    assert {(0, 2), (1, 2)} <= set(checked.conflicts)
    assert checked.regions == [["read dir", "read intEn"], ["read intStatus"], ["write dir"]]


# A body of `int f(bfGroup Part *p, bfGroup Part *q, int i, int j)` and the regions that must come out.
CASES = {
    "straight reads": ("return p->a + p->b;", [["read a", "read b"]]),
    "straight writes": ("p->a = 1; p->b = 0; return 0;", [["write a", "write b"]]),
    "read after write": (
        "int s = p->a; p->c = 1; return s + p->c + p->b;",
        [["read a", "read b"], ["write c"], ["read c"]],
    ),
    "written twice": ("p->a = 1; p->a = 0; return 0;", [["write a"], ["write a"]]),
    "may be the same pointer": (
        "int s = p->a; q->b = 1; return s + p->b;",
        [["read a"], ["write b"], ["read b"]],
    ),
    "may be the same element": (
        "int s = p->a; p->arr[i] = 1; return s + p->arr[j];",
        [["read a"], ["write arr[i]"], ["read arr[j]"]],
    ),
    "never the same element": (
        "int s = p->a; p->arr[1] = 1; return s + p->arr[2];",
        [["read a", "read arr[2]"], ["write arr[1]"]],
    ),
    "devices keep their order": (
        "int s = dev->x; twin->y = 1; return s + dev->y;",
        [["read x"], ["write y"], ["read y"]],
    ),
    "index changes": ("int s = p->arr[i]; i++; return s + p->arr[i];", [["read arr[i]"], ["read arr[i]"]]),
    "pointer changes": ("int s = p->a; p = q; return s + p->b;", [["read a"], ["read b"]]),
    "unknown call": ("int s = p->a; unknown(); return s + p->b;", [["read a"], ["read b"]]),
    "call that touches nothing": ("int s = p->a; s = sum(s, i); return s + p->b;", [["read a", "read b"]]),
    "call that changes the index": (
        "int s = p->arr[global_index]; next(); return s + p->arr[global_index];",
        [["read arr[global_index]"], ["read arr[global_index]"]],
    ),
    "function pointer": (
        "void (*g)(void) = unknown; int s = p->a; g(); return s + p->b;",
        [["read a"], ["read b"]],
    ),
    "assembly": ('int s = p->a; __asm__ volatile("nop"); return s + p->b;', [["read a"], ["read b"]]),
    "volatile": ("volatile int v; int s = p->a; v = 1; return s + p->b + v;", [["read a"], ["read b"]]),
    "store through a pointer": (
        "int k = 0; int *r = &k; int s = p->arr[k]; *r = 1; return s + p->arr[k];",
        [["read arr[k]"], ["read arr[k]"]],
    ),
    "short circuit": ("return p->a && p->b;", [["read a"], ["read b"]]),
    "conditional": ("return i ? p->a : p->b;", [["read a"], ["read b"]]),
    "loop condition": (
        "int s = p->a; while (p->b) s += p->c; return s + p->d;",
        [["read a", "read d"], ["read b"], ["read c"]],
    ),
    "loop body": (
        "int s = 0; for (int k = 0; k < 3; k++) { s += p->a; s += p->b; } return s;",
        [["read a", "read b"]],
    ),
    "for without parts": (
        "int s = 0; for (;;) { s += p->a; if (s > 3) break; s += p->b; } return s;",
        [["read a", "read b"]],
    ),
    "branches": ("int s = p->a; if (i) s += p->b; else s -= p->c; return s;", [["read a", "read b", "read c"]]),
    "writes on one branch": (
        "p->a = 1; if (i) p->b = 1; p->c = 2; return 0;",
        [["write a", "write c"], ["write b"]],
    ),
    "early return": ("p->a = 1; if (i) return 1; p->b = 1; return 0;", [["write a"], ["write b"]]),
    "switch": (
        "switch (i) { case 1: p->a = 1; p->b = 1; break; case 2: p->a = 0; default: p->b = 0; } return 0;",
        [["write a", "write b"], ["write a"], ["write b"]],
    ),
    "goto": ("p->a = 1; if (i) goto end; p->b = 1; end: return 0;", [["write a"], ["write b"]]),
    "changing field": (
        "int s = dev->count; s += dev->x; return s + dev->count;",
        [["read count", "read x"], ["read count"]],
    ),
    "changing field under a condition": (
        "int s = dev->x; s += (i && dev->count); return s + dev->count;",
        [["read x"], ["read count"], ["read count"]],
    ),
    "fifo": ("int s = dev->x; s += dev->data; return s + dev->y;", [["read x", "read y"], ["read data"]]),
    "read that locks": (
        "int s = dev->x; s += dev->lock; return s + dev->y;",
        [["read x"], ["read lock"], ["read y"]],
    ),
    "trigger": ("dev->x = 1; dev->go = 1; dev->y = 2; return 0;", [["write x"], ["write go"], ["write y"]]),
    "trigger with a target": (
        "int s = dev->y; dev->clear_x = 1; s += dev->x; return s + dev->part[1].a;",
        [["read y", "read a"], ["write clear_x"], ["read x"]],
    ),
    "status across a trigger": (
        "int s = dev->status; dev->clear_x = 1; return s + dev->status;",
        [["read status"], ["write clear_x"], ["read status"]],
    ),
    "write one to clear": (
        "dev->x = 1; dev->flags = 1; dev->y = 1; return 0;",
        [["write x"], ["write flags"], ["write y"]],
    ),
    "flags in a row": (
        "dev->flags = i; dev->error = 1; dev->again[0] = 1; return 0;",
        [["write flags", "write error", "write again[0]"]],
    ),
    "flags that anything else keeps apart": (
        "dev->flags = 1; i += dev->x; dev->error = 1; dev->x = 1; dev->again[0] = 1; return i;",
        [["write flags"], ["read x"], ["write error"], ["write x"], ["write again[0]"]],
    ),
    "flags of two devices": (
        "dev->flags = 1; twin->flags = 1; dev->error = 1; return 0;",
        [["write flags", "write flags"], ["write error"]],
    ),
    "flags that may be the same": (
        "dev->again[i] = 1; dev->error = 1; dev->again[j] = 1; return 0;",
        [["write again[i]", "write error"], ["write again[j]"]],
    ),
    "flags under conditions": (
        "dev->flags = 1; if (i) dev->error = 1; dev->again[0] = 1; return 0;",
        [["write flags", "write again[0]"], ["write error"]],
    ),
    "update": ("p->c |= 1; return p->c;", [["read c"], ["write c"], ["read c"]]),
    "shadowed device": (
        "bfGroup Part *dev = q; int s = p->a; dev->b = 1; return s + p->b;",
        [["read a"], ["write b"], ["read b"]],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_regions(tmp_path, name):
    body, regions = CASES[name]
    checked = Checked(
        tmp_path,
        f"int f(bfGroup Part *p, bfGroup Part *q, int i, int j) {{ (void)p; (void)q; (void)i; (void)j; {body} }}",
    )
    assert sorted(checked.regions) == sorted(regions)


def test_reasons_name_what_stands_between(tmp_path):
    checked = Checked(tmp_path, "int f(bfGroup Part *p) {\n int s = p->a;\n unknown();\n return s + p->b;\n}")
    assert checked.why(0, 1).startswith("a call of unknown() in between (line ")
