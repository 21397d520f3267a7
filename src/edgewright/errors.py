"""All exceptions that this package raises on purpose.

EdgewrightError
├── ModelError        the model breaks a rule
│   ├── Unsupported   the model is valid, but not handled
│   └── OpenSizes     the file leaves sizes of inputs open; the error lists options that set them
├── BoardError        a board file breaks a rule, or the board is unknown
├── InputError        another file or value given by the user cannot be used
│   └── Damaged       one of our own files was changed or truncated
├── Infeasible        no plan fits the target; the message says what to relax
└── RunError          a run ended early; the message names the frame and the layer

Each message says what is wrong, where, and what to try. Our own bugs are assertions and keep their trace.
"""

from __future__ import annotations

from collections.abc import Mapping


class EdgewrightError(Exception):
    """The base class of all exceptions that this package raises on purpose."""


class ModelError(EdgewrightError):
    """The model breaks a rule."""


class Unsupported(ModelError):
    """The model is valid, but uses something that is not handled."""


class OpenSizes(ModelError):
    """The file leaves sizes of inputs open; `options` are command-line options that would set them, to `shapes`.

    `others` are errors with other suggestions, for models that do not take these sizes.
    """

    def __init__(
        self,
        message: str,
        options: str = "",
        shapes: Mapping[str, tuple[int, ...]] | None = None,
        others: tuple[OpenSizes, ...] = (),
    ) -> None:
        super().__init__(message)
        self.options = options
        self.shapes = dict(shapes or {})
        self.others = others


class BoardError(EdgewrightError):
    """A board description breaks a rule, or names an unknown board."""


class InputError(EdgewrightError):
    """A file or a value given by the user cannot be used."""


class Damaged(InputError):
    """A plan or deployment file was changed after it was written; `what` is wrong with it, as part of a sentence."""

    def __init__(self, what: str, thing: str = "plan") -> None:
        super().__init__(f"the {thing} is damaged: {what}; make it again")
        self.what, self.thing = what, thing


class Infeasible(EdgewrightError):
    """No plan fits the target."""


class RunError(EdgewrightError):
    """A part of a running pipeline failed."""
