"""Whether a plan that was made before is one for this model and this board."""

from __future__ import annotations

from typing import Any

from ..errors import InputError
from ..memory import with_copies
from ..network import Network
from ..platform import Board
from ..program import Plan
from ..program.codec import network_to_dict


def check_plan(plan: Plan, network: Network, board: Board | None) -> None:
    """Refuses a plan of another model, or for another board; one made without a board may go to any."""
    if board is not None and plan.board not in (None, board.name):
        raise InputError(f"the plan was made for the board '{plan.board}', not for '{board.name}'; make it anew")
    added = {layer.name for layer in plan.network.layers} - {layer.name for layer in network.layers}
    copied = [
        name.removesuffix(":copy") for name in sorted(added) if name.removesuffix(":copy") in network.tensors
    ]
    _check_ends(plan.network, network)
    mine, theirs = _comparable(with_copies(network, copied)), _comparable(plan.network)
    for key, value in mine.items():
        if value != theirs[key]:
            raise InputError(
                f"the plan was made for another model: '{plan.network.name}' and '{network.name}' "
                f"differ in their {key}; make the plan anew"
            )


def _check_ends(planned: Network, network: Network) -> None:
    """Refuses a plan whose inputs or outputs are quantised where the model's are not, or the other way round."""
    for name in dict.fromkeys((*network.inputs, *network.outputs)):
        if (name in planned.file_tensors) != (name in network.file_tensors):
            way = "input" if name in network.inputs else "output"
            how = "with" if name in planned.file_tensors else "without"
            raise InputError(
                f"the plan was made {how} --quantised-{way}, for '{name}'; say the same here, or make the plan anew"
            )


def _comparable(network: Network) -> dict[str, Any]:
    """What a plan depends on: all but names of the whole and remarks."""
    data = network_to_dict(network)
    return {key: value for key, value in data.items() if key not in ("name", "notes")}
