"""Networks that the papers work through by hand, so that their figures can be computed again.

They are the dissertations of Stahl and of Minakova. A layer carries the name that the paper gives it.
"""

import numpy as np
import onnx

from edgewright.samples.builder import LINEAR, Builder


def stahl_running_example() -> onnx.ModelProto:
    """Running example of Stahl fig. 4.4: a small keyword spotter that only depthwise tiling shrinks."""
    net = Builder("stahl_running_example")
    x = net.input(1, 1, 32, 8)
    # Two rows of padding on either side make 16 rows of the 32; the 8 columns divide evenly.
    x = net.relu(net.conv(x, 32, (6, 2), 2, (2, 0, 2, 0), name="Conv1"))
    x = net.relu(net.depthwise(x, 3, name="Conv2"))
    x = net.relu(net.conv(x, 64, name="Conv3"))
    return net.model(net.classifier(x, 6, name="Dense"))


def stahl_two_paths() -> onnx.ModelProto:
    """Scheduling example of Stahl fig. 4.5: two paths whose best order, peak 110, is not depth-first, 120.

    One unit is 64 floats, 256 bytes. The text gives A1 50, B1 30, C1 40, B2 40, C2 40. The others are
    ours: input 20, A2 20, D 10; any with input <= 30, A2 <= 40 and D <= 30 keep both peaks. D has to be smaller
    than what it reads, so it is a product: rows of the first path times columns of the second.
    """
    net = Builder("stahl_two_paths")
    x = net.input(1, 5, 16, 16)
    first, second = x, x
    for layer, channels, stride in (("A1", 50, (4, 1)), ("B1", 30, 1), ("C1", 40, 1)):
        first = net.conv(first, channels, 3, stride, gain=LINEAR, name=layer)  # 4 rows of 16
    for layer, channels, stride in (("A2", 20, (1, 4)), ("B2", 40, 1), ("C2", 40, 1)):
        second = net.conv(second, channels, 3, stride, gain=LINEAR, name=layer)  # 16 rows of 4
    return net.model(net.node("MatMul", first, second, name="D"))


def minakova_example() -> onnx.ModelProto:
    """Low-memory example of Minakova table 4.1: four layers whose buffers shrink when run row by row."""
    net = Builder("minakova_example")
    x = net.input(1, 1, 32, 32)
    x = net.conv(x, 4, 17, 1, 0, gain=LINEAR, name="l2")
    # The pads of l3 are -1 on all sides. Conv knows no negative pads, Pad does.
    crop = net.constant("crop", (0, 0, -1, -1, 0, 0, -1, -1), np.int64)
    x = net.conv(net.node("Pad", x, crop, name="l3.crop"), 3, 5, 3, 0, gain=LINEAR, name="l3")
    return net.model(net.dense(net.node("Flatten", x, axis=1), 2, name="l4"))
