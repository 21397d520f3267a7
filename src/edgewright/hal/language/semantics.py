"""The semantics of a field's attributes: what they allow when the field, or one beside it, is read or written (S
6.3.2)."""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field as dataclass_field

from .description import Description, EffectTarget, Field, Mode


@dataclass(frozen=True, slots=True)
class Nature:
    """The consequences of a field's attributes; `Natures` derives them for a whole description."""

    reading_acts: bool  # reading does something: read alone, once for each read in the source, never speculatively
    writing_acts: bool  # writing does something whatever the value: no write that the source does not have
    changes: bool  # the peripheral changes it: two reads may differ though nothing was written
    by_hardware: bool  # the peripheral writes it at times of its own: reading and writing it back could undo that
    neutral: bool  # writing 0 leaves it as it is (ro, w1c, w1s)
    readable: bool
    writable: bool
    unguarded: bool = False  # an interrupt may write it at any time, and nobody has allowed critical sections
    is_shared: bool = False  # with an interrupt routine

    @property
    def acts(self) -> bool:
        return self.reading_acts or self.writing_acts

    @property
    def may_differ(self) -> bool:
        """Whether two reads may return different values although the function wrote nothing in between; such reads are
        never merged."""
        return self.changes or self.is_shared

    @property
    def kept(self) -> bool:
        """Whether a write to its register that does not write this field must write its old value back."""
        return self.writable and not self.neutral

    @property
    def restorable(self) -> bool:
        """Whether a write to its register may write back the value that was read: true for plain stored values."""
        return self.kept and self.readable and not (self.acts or self.by_hardware)


@dataclass(frozen=True)
class Natures:
    """The nature of every field of a description."""

    description: Description
    _known: dict[tuple[str, str], Nature] = dataclass_field(default_factory=dict, compare=False, repr=False)

    def of(self, group: str, name: str) -> Nature:
        known = self._known.get((group, name))
        if known is None:
            known = self._known[group, name] = self._nature(group, name)
        return known

    def _nature(self, group: str, name: str) -> Nature:
        field = self.description.field(group, name)
        own = EffectTarget(group, name)
        return Nature(
            reading_acts=any(target != own for target in field.rse) or field.clear_on_read or field.fifo,
            writing_acts=bool(field.wse) or field.fifo,
            changes=_changes(field, own),
            by_hardware=_changes(field, own) or self._is_written_for(own),
            neutral=field.mode is Mode.RO or field.w1c or field.w1s,
            readable=field.mode is not Mode.WO,
            writable=field.mode is not Mode.RO,
            unguarded=field.unguarded,
            is_shared=field.shared_with_isr,
        )

    def touched(self, targets: tuple[EffectTarget, ...], group: str, name: str) -> bool:
        """Whether a field is among the targets of a side effect, by itself or with its group."""
        return any(
            name == target.member if target.member else group in self.description.inside(target.group)
            for target in targets
            if target.member is None or target.group == group
        )

    def _is_written_for(self, own: EffectTarget) -> bool:
        """Whether some write makes the peripheral change the field, at once or later.

        A read that touches it (rse) acts there and then, so that what is read and put back afterwards is its new value.
        """
        assert own.member is not None
        return any(
            self.touched(other.wse, own.group, own.member)
            for group in self.description.groups.values()
            for other in group.fields
            if other.wse and (group.name, other.name) != (own.group, own.member)
        )


def _changes(field: Field, own: EffectTarget) -> bool:
    marks = field.by_hardware or field.w1c or field.w1s or field.clear_on_read or field.fifo
    return marks or field.mode is Mode.RO or own in field.rse
