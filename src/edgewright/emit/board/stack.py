"""The stack that a library can take at most: frames of the longest chain of calls, as the compiler reports them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

# Helpers of the compiler come without a report; the deepest of them (64-bit division, soft double) stays below.
HELPER = 128

_NODE = re.compile(r'^node: \{ title: "([^"]+)" label: "([^"]*)"', re.M)
_EDGE = re.compile(r'^edge: \{ sourcename: "([^"]+)" targetname: "([^"]+)"', re.M)
_FRAME = re.compile(r"\\n(\d+) bytes \(([^)]*)\)")
_POINTER = "__indirect_call"


@dataclass(frozen=True)
class _Calls:
    frames: dict[str, int | None]  # None: grows at run time
    callees: dict[str, set[str]]
    callbacks: frozenset[str]

    def depth(self, name: str, above: tuple[str, ...]) -> int | None:
        """Bytes that a call of `name` takes, or None; `above` are the functions on the way to it."""
        if name not in self.frames:
            return HELPER
        frame, depths = self.frames[name], [0]
        if frame is None:
            return None
        for callee in self.callees.get(name, ()):
            if callee in (*above, name):
                return None
            onwards = self.by_pointer if callee == _POINTER else partial(self.depth, callee)
            found = onwards((*above, name))
            if found is None:
                return None
            depths.append(found)
        return frame + max(depths)

    def by_pointer(self, above: tuple[str, ...]) -> int | None:
        """A pointer may lead to any function that calls none of those which are running; or out, to the caller's."""
        if above[-1] in self.callbacks:
            return 0
        free = (name for name in self.frames if not self.reachable(name) & set(above))
        depths = [self.depth(name, above) for name in free]
        return None if None in depths else max((d for d in depths if d is not None), default=0)

    def reachable(self, name: str) -> set[str]:
        """The function and all that it calls by name."""
        found, rest = {name}, [name]
        while rest:
            new = self.callees.get(rest.pop(), set()) - found
            found |= new
            rest += new
        return found


def stack_bound(graphs: Iterable[Path], root: str, callbacks: Iterable[str] = ()) -> int | None:
    """Bytes below the caller of `root`; None where there is no bound: recursion, a frame that grows, no report.

    What `callbacks` call through pointers are functions of the caller, whose stack is theirs to count.
    """
    calls = _Calls({}, {}, frozenset(callbacks))
    for path in graphs:
        text = path.read_text()
        for title, label in _NODE.findall(text):
            frame = _FRAME.search(label)
            if frame:
                calls.frames[title] = None if frame.group(2) == "dynamic" else int(frame.group(1))
        for caller, callee in _EDGE.findall(text):
            calls.callees.setdefault(caller, set()).add(callee)
    return calls.depth(root, ()) if root in calls.frames else None
