"""Everything this package raises on purpose.

EdgewrightError
├── ModelError        the model breaks a rule we can name
│   ├── Unsupported   the model is fine; we do not handle it (yet)
│   └── OpenSizes     the file leaves sizes of inputs open; options that would set them
├── BoardError        a board file breaks a rule, or names a board we do not know
├── InputError        a file or value given by the user that is neither model nor board
│   └── Damaged       a file of ours that is not as it was written
├── Infeasible        no plan fits the target; the message carries what to relax
└── RunError          a run ended early; the message names the frame and the layer

Each message says what is wrong, where, and what to try. Our own bugs are assertions and keep their trace.
"""


class EdgewrightError(Exception):
    """Base class, so that a caller can catch all of ours and nothing else."""


class ModelError(EdgewrightError):
    """The model breaks a rule we can name."""


class Unsupported(ModelError):
    """The model is valid, but uses something we do not handle."""


class OpenSizes(ModelError):
    """Inputs whose sizes a file leaves open; `options` of the command line would set them all."""

    def __init__(self, message: str, options: str = "") -> None:
        super().__init__(message)
        self.options = options


class BoardError(EdgewrightError):
    """A board description breaks a rule, or names an unknown board."""


class InputError(EdgewrightError):
    """A file or a value given by the user cannot be used."""


class Damaged(InputError):
    """A plan or a deployment is not as it was made: `what` is wrong with it, in words that fit into a sentence."""

    def __init__(self, what: str, thing: str = "plan") -> None:
        super().__init__(f"the {thing} is damaged: {what}; make it anew")
        self.what, self.thing = what, thing


class Infeasible(EdgewrightError):
    """No plan fits the target."""


class RunError(EdgewrightError):
    """A part of a running pipeline failed."""
