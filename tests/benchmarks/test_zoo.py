"""The table of models on boards: made again for some models, it keeps the lines of the others."""

from __future__ import annotations

from zoo import table


def test_the_lines_of_other_models_stay_in_their_places():
    few = {"input": [[1, 4]], "weights": 4, "macs": 10, "whole_times": {"esp32-c3": 0.001}}
    first = table(
        [few | {"name": "a", "whole": 96}, few | {"name": "b", "whole": 32}, {"name": "c", "refused": "x: y"}]
    )
    again = table([few | {"name": "a", "whole": 64, "least": 16}, {"name": "d", "stopped": "after 8 s"}], first)
    models = [line.split(" | ")[0] for line in again.splitlines() if line.startswith("| `")]
    assert models == ["| `a`", "| `b`"] and "| 96 B |" not in again
    assert "2 models; 0 fit a raspberry-pi-pico" in again and "2 fit a esp32-c3" in again
    assert again.splitlines()[-2:] == ["- `c`: x: y", "- `d`: no plan after 8 s"]
