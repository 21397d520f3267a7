"""Random applications: up to six small networks, any relations between them, and buffers of the firmware."""

from __future__ import annotations

import random
from pathlib import Path

from edgewright.application.draft import Application, load_application
from edgewright.samples.builder import ModelBuilder

SIDE = 6  # px
CHANNELS = 2  # of inputs and of maps, so that any network may read what another makes


def random_application(seed: int, folder: Path) -> Application:
    """The application of this seed; its files are written into the folder."""
    rng = random.Random(seed)
    names = "abcdef"[: rng.randint(1, 4) if rng.random() < 0.7 else rng.randint(5, 6)]
    entries, layers, is_map, pipelined = [], {}, {}, set()
    joined = set()  # whose first layer is added to another
    for name in names:
        net = ModelBuilder(f"{name}{seed}")
        x, layers[name] = net.input(1, CHANNELS, SIDE, SIDE), rng.randint(2, 4)
        is_map[name] = rng.random() < 0.6
        for n in range(layers[name]):
            is_last = n == layers[name] - 1
            width = CHANNELS if is_last and is_map[name] else rng.choice((2, 3, 4))
            x = net.conv(x, width, rng.choice((1, 3)), name=f"l{n}")
            if not is_last and rng.random() < 0.3:
                x = net.add(x, net.conv(x, width, 3, name=f"l{n}x"))
                joined |= {name} if n == 0 else set()
        if not is_map[name]:
            x = net.dense(net.node("Flatten", x, axis=1), 3, name="end")
        (folder / f"{name}.onnx").write_bytes(net.model(x).SerializeToString())
        how = rng.choice(("plain = true", "phases = true", "plain = true", ""))
        entries.append(f'[[network]]\nname = "{name}"\nfile = "{name}.onnx"\n{how}\n')
    relations = []
    for index, first in enumerate(names):
        for second in names[index + 1 :]:
            kind = rng.choice(("exclusive", "parallel", "preempts", "after", "same input", ""))
            if kind == "after" and not is_map[first]:
                kind = "parallel"
            points = '\npoints = "anywhere"' if kind == "preempts" and rng.random() < 0.4 else ""
            if kind:
                relations.append((kind, first, second, points))
    handed = {n for kind, a, b, _ in relations if kind in ("after", "same input") for n in (a, b)}
    origin = {name: name for name in names}  # of the input of each: the network that makes or brings it
    kept = []
    for kind, first, second, points in relations:
        if kind in ("after", "same input"):
            source = f"{first}'s output" if kind == "after" else origin[first]
            if origin[second] not in (second, source):
                continue  # one input has one source
            origin[second] = source
            if kind == "same input" and rng.random() < 0.4:  # two cores on one frame, or one that interrupts
                beside = rng.choice(("parallel", "preempts"))
                kept.append(f'[[relation]]\nkind = "{beside}"\nnetworks = ["{first}", "{second}"]\n')
        kept.append(f'[[relation]]\nkind = "{kind}"\nnetworks = ["{first}", "{second}"]{points}\n')
    for index, name in enumerate(names):
        if name not in handed | joined and layers[name] > 2 and rng.random() < 0.5:
            pipelined.add(name)
            last = "end" if not is_map[name] else f"l{layers[name] - 1}"
            entries[index] += f'partitions = ["l0", "l1..{last}"]\n'
            kept.append(f'[[relation]]\nkind = "pipelined"\nnetworks = ["{name}.1", "{name}.2"]\n')
    free = [name for name in names if name not in handed and name not in pipelined]
    keep = f'keep = ["{rng.choice(free)}.{rng.choice(("input", "output"))}"]\n' if free and rng.random() < 0.5 else ""
    own = '[[buffer]]\nname = "log"\nsize = 40\nstate = true\n' if rng.random() < 0.3 else ""
    own += f'[[buffer]]\nname = "work"\nsize = 64\nalive = ["{names[0]}"]\n' if rng.random() < 0.3 else ""
    (folder / "app.toml").write_text(keep + "".join(entries) + "".join(kept) + own)
    return load_application(folder / "app.toml")
