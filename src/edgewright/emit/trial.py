"""One run of a library where it belongs: on the virtual board, or on this machine when it was made for it."""

from __future__ import annotations

from ..network import Array
from ..network.interface import stored_inputs
from ..platform import Board
from .figures import Figures
from .firmware import measure
from .inputs import Inputs
from .library import Library
from .verify import predicted, with_measured


def run_once(library: Library, inputs: Inputs, board: Board | None = None) -> tuple[dict[str, Array], Figures]:
    """The outputs in our layout, and what the run tells."""
    flag = library.options.optimise_flag(library.target)
    measured = measure(library, stored_inputs(library.network, inputs), optimise=flag, profile=True, board=board)
    return dict(measured.outputs), with_measured(predicted(library, board), measured)
