"""The problem of laying out registers: the spaces, the accesses and the goal, and what follows from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from ..analysis.spaces import Joint, Space, Spaces
from ..language.description import Description
from .assembly import Assembly, assemble, is_spaced, space_size
from .cells import Cell, Cells, pinned_cells
from .constraint_model import LayoutPart
from .cost import AccessPattern, LayoutGoal, access_patterns
from .layout import Layout
from .packing import by_gain
from .paper import paper_cells
from .rules import Rules, packed

NEAR = 128  # bytes that a load or store of 16 bits reaches from a pointer: 31 words on RISC-V and on Cortex-M
MANY = 60  # slots of a space beyond which local search alone has to do, and unused slots are packed beforehand


@dataclass(frozen=True, slots=True)
class RegisterLayoutProblem:
    """Spaces to be laid out for the accesses of a driver, with the rules that hold in each."""

    description: Description
    spaces: Spaces
    joints: Sequence[Joint]
    goal: LayoutGoal
    patterns: tuple[AccessPattern, ...]
    rules: Mapping[str, Rules]

    @classmethod
    def of(
        cls, description: Description, spaces: Spaces, joints: Sequence[Joint], goal: LayoutGoal
    ) -> RegisterLayoutProblem:
        rules = {name: Rules.of(description, space, joints, goal.has_views) for name, space in spaces.items()}
        return cls(description, spaces, joints, goal, access_patterns(joints), rules)

    def without_views(self) -> RegisterLayoutProblem:
        return RegisterLayoutProblem.of(self.description, self.spaces, self.joints, replace(self.goal, views=False))

    def counts_views(self, name: str) -> bool:
        """Whether the model is exact about views: no two writes can share one, and none costs more than it saves."""
        rules, space = self.rules[name], self.spaces[name]
        if not rules.views:
            return True
        sets = {frozenset[str]().union(*legs) for legs, _ in rules.writes}
        is_clear = sum(map(len, sets)) == len(frozenset[str]().union(*sets)) and rules.bus.narrowest == rules.bus.width
        is_clear = is_clear and all(len(legs) == 1 for legs, _ in rules.writes)
        code, access, byte = self.goal.weights
        most = max((_padded(slot.counts) for slot in space.slots), default=1) * rules.bus.width // 8
        is_worth = byte * most * self.instances()[name] <= access + code * self.goal.sizes.rewrite
        return is_clear and is_worth and not (self.goal.power_of_two and self._is_indexed(name))

    def how(self) -> Assembly:
        arrange = by_gain(self.rules, self.patterns, self.goal.sizes)
        far = frozenset(name for name in self.spaces if self._is_far(name))
        return Assembly("optimal", arrange, registers_first=far, power_of_two=self.goal.power_of_two)

    def _is_far(self, name: str) -> bool:
        """Whether areas at the start of a space would put registers out of reach that are used more than the areas.

        Otherwise areas are first: at the start of a space their pointers need no addition.
        """
        space = self.spaces[name]
        areas = sum(self.most(self.spaces[area.space]) // 2 * prod(area.counts) for area in space.areas)
        if not space.areas or areas <= NEAR:
            return False
        inside = {area.space for area in space.areas}
        times = Counter[str]()
        for pattern in self.patterns:
            times[pattern.space] += pattern.times
        return times[name] > sum(times[inner] for inner in inside)

    def is_large(self, name: str) -> bool:
        return len(self.spaces[name].slots) > MANY

    def fixed(self, name: str) -> tuple[Cell, ...]:
        """Cells that nothing is to be decided about: pinned, wider than the bus, in large spaces also the unused."""
        space, rules = self.spaces[name], self.rules[name]
        pinned = pinned_cells(self.description, space)
        taken = {slot for cell in pinned for slot in cell.slots}
        wide = [s.name for s in space.slots if s.field.bits > rules.bus.width and s.name not in taken]
        cells = (*pinned, *(Cell((slot,)) for slot in wide))
        if not self.is_large(name):
            return cells
        touched = {slot for pattern in self.patterns if pattern.space == name for slot in pattern.slots}
        used = {slot for one in touched for slot in rules.bond(one)}
        settled = used | taken | set(wide)
        return (*cells, *packed(rules, [s.name for s in space.slots if s.name not in settled]))

    def part(self, name: str) -> LayoutPart:
        """A space with what is settled about it."""
        space, fixed, stride = self.spaces[name], self.fixed(name), self.description.stride_of(name) or 0
        placed = {slot for cell in fixed for slot in cell.slots}
        bare = {name: replace(space, areas=())}
        registers = assemble(self.description, bare, {name: fixed}, self.how()).spaces[name].registers
        pinned = {slot for cell in fixed if cell.offset is not None for slot in cell.slots}
        return LayoutPart(
            space,
            self.rules[name],
            tuple(pattern for pattern in self.patterns if pattern.space == name),
            tuple(slot.name for slot in space.slots if slot.name not in placed),
            sum(register.end - register.offset for register in registers),
            max([stride, *(register.end for register in registers if register.pieces[0].slot in pinned)]),
            self.goal.power_of_two and self._is_indexed(name) and not is_spaced(self.description, space),
        )

    def assembled(self, cells: Cells) -> Layout:
        """The layout of the cells, with all views that its writes want."""

        def viewed(rules: Rules, cell: Cell) -> Cell:
            is_plain = rules.views and cell.lanes == 1 and cell.offset is None and len(cell.slots) > 1
            return replace(cell, views=rules.partial(cell.slots)) if is_plain else cell

        whole = {name: tuple(viewed(self.rules[name], cell) for cell in of) for name, of in cells.items()}
        return assemble(self.description, self.spaces, whole, self.how())

    def paper(self) -> Cells:
        """The paper's cells of all that is not settled."""
        cells = paper_cells(self.description, self.spaces, self.joints)
        fixed = {name: {slot for cell in self.fixed(name) for slot in cell.slots} for name in self.spaces}
        return {name: tuple(c for c in of if c.slots[0] not in fixed[name]) for name, of in cells.items()}

    def instances(self) -> dict[str, int]:
        """How often every space is there, over all devices."""
        count = dict.fromkeys(self.spaces, 0)
        for device in self.description.devices:
            count[device.group] += 1
        for name, space in reversed(list(self.spaces.items())):
            for area in space.areas:
                count[area.space] += count[name] * prod(area.counts)
        return count

    def map_of(self, parts: Mapping[str, LayoutPart], content: Mapping[str, int]) -> int:
        """Bytes of the map, given those of the registers that are not settled."""
        sizes: dict[str, int] = {}
        for name, space in self.spaces.items():
            part = parts[name]
            end = max(part.settled + content[name], part.least_end)
            areas = sum(sizes[area.space] * prod(area.counts) for area in space.areas)
            words = space_size(end, part.rules.bus, False) if end or not areas else 0
            sizes[name] = space_size(words + areas, part.rules.bus, part.padded)
        return sum(sizes[device.group] for device in self.description.devices)

    def most(self, space: Space) -> int:
        """Bytes that a space never exceeds, padding included."""
        word = self.rules[space.name].bus.width // 8
        slots = sum(-(-slot.field.bits // (8 * word)) * word * _padded(slot.counts) for slot in space.slots)
        pins = max((slot.field.pinned[0] for slot in space.slots if slot.field.pinned), default=0)
        areas = sum(2 * self.most(self.spaces[area.space]) * prod(area.counts) for area in space.areas)
        written = [space.slot(slot) for w in self.patterns if w.writes and w.space == space.name for slot in w.slots]
        views = sum(word * _padded(slot.counts) for slot in written) if self.rules[space.name].views else 0
        stride = self.description.stride_of(space.name) or 0
        return 2 * (slots + views + pins + stride + 8 * word) + areas

    def simple_bound(self) -> float:
        """No layout costs less: each pattern takes one access, and the map at least the bits of all fields."""
        code, access, byte = self.goal.weights
        sizes = self.goal.sizes
        patterns = sum(
            code * w.times * (sizes.access + (sizes.join * (len(w.slots) - 1) if w.writes else 0)) + access * w.weight
            for w in self.patterns
        )
        instances = self.instances()
        bits = sum(
            instances[name] * slot.field.bits * prod(slot.counts)
            for name, space in self.spaces.items()
            for slot in space.slots
        )
        return patterns + byte * bits / 8

    def _is_indexed(self, name: str) -> bool:
        return any(area.space == name and area.counts for space in self.spaces.values() for area in space.areas)


def _padded(counts: tuple[int, ...]) -> int:
    return prod(1 << count.bit_length() for count in counts)
