"""What a field's attributes mean for accesses to it, and to others in its register (S 6.3.2)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Nature:
    """The consequences of a field's attributes; `Description.nature` derives them."""

    reading_acts: bool  # reading does something: read alone, once for each read in the source, never speculatively
    writing_acts: bool  # writing does something whatever the value: no write that the source does not have
    changes: bool  # the peripheral changes it: two reads may differ though nothing was written
    by_hardware: bool  # the peripheral writes it, or locks it, at times of its own: it is never read and written back
    neutral: bool  # writing 0 leaves it as it is (ro, w1c, w1s)
    readable: bool
    writable: bool
    unguarded: bool = False  # an interrupt may write it at any time, and nobody has allowed critical sections
    is_shared: bool = False  # with an interrupt routine
    is_locked: bool = False  # while another field is not 0: then not even its own value may be written

    @property
    def acts(self) -> bool:
        return self.reading_acts or self.writing_acts

    @property
    def may_differ(self) -> bool:
        """Whether two reads may differ though the function wrote nothing in between: they are never merged."""
        return self.changes or self.is_shared

    @property
    def kept(self) -> bool:
        """Whether a write to its register that does not write this field must write its old value back."""
        return self.writable and not self.neutral

    @property
    def restorable(self) -> bool:
        """Whether a write to its register may write back the value that was read: true for plain stored values."""
        return self.kept and self.readable and not (self.acts or self.by_hardware)
