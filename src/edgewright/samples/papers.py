"""Networks that the papers work through by hand, so that their figures can be computed again.

They are the dissertations of Stahl and of Minakova. A layer carries the name that the paper gives it.
"""

import numpy as np
import onnx

from edgewright.samples.builder import LINEAR, ModelBuilder


def stahl_running_example() -> onnx.ModelProto:
    """Running example of Stahl fig. 4.4: a small keyword spotter that only depthwise tiling shrinks."""
    net = ModelBuilder("stahl_running_example")
    x = net.input(1, 1, 32, 8)
    # Two rows of padding on either side make 16 rows of the 32; the 8 columns divide evenly.
    x = net.relu(net.conv(x, 32, (6, 2), 2, (2, 0, 2, 0), name="Conv1"))
    x = net.relu(net.depthwise(x, 3, name="Conv2"))
    x = net.relu(net.conv(x, 64, name="Conv3"))
    return net.model(net.classifier(x, 6, name="Dense"))


def stahl_two_paths() -> onnx.ModelProto:
    """Scheduling example of Stahl fig. 4.5: two paths whose best order, peak 110, is not depth-first, 120.

    One unit is 40 floats, 160 bytes: 20 rows of 2. The text gives A1 50, B1 30, C1 40, B2 40, C2 40. The others are
    ours: input 20, A2 20, D 10; any with input <= 30, A2 <= 40 and D <= 30 keep both peaks. D has to be smaller
    than what it reads, so it is a product: rows of the first path times rows of the second.
    """
    net = ModelBuilder("stahl_two_paths")
    x = net.input(20, 40)
    first, second = x, x
    for layer, width in (("A1", 100), ("B1", 60), ("C1", 80)):
        first = net.dense(first, width, gain=LINEAR, name=layer)
    for layer, width in (("A2", 40), ("B2", 80), ("C2", 80)):
        second = net.dense(second, width, gain=LINEAR, name=layer)
    return net.model(net.node("Gemm", first, second, name="D", transB=1))


def minakova_example() -> onnx.ModelProto:
    """Low-memory example of Minakova table 4.1: four layers whose buffers shrink when run row by row."""
    net = ModelBuilder("minakova_example")
    x = net.input(1, 1, 32, 32)
    x = net.conv(x, 4, 17, 1, 0, gain=LINEAR, name="l2")
    # The pads of l3 are -1 on all sides. Conv knows no negative pads, Pad does.
    crop = net.constant("crop", (0, 0, -1, -1, 0, 0, -1, -1), np.int64)
    x = net.conv(net.node("Pad", x, crop, name="l3.crop"), 3, 5, 3, 0, gain=LINEAR, name="l3")
    return net.model(net.dense(net.node("Flatten", x, axis=1), 2, name="l4"))


def minakova_cnn1() -> onnx.ModelProto:
    """First network of the application in Minakova fig. 6.1: two convolutions and their sum."""
    net = ModelBuilder("minakova_cnn1")
    x = net.conv(net.input(1, 3, 32, 32), 8, 5, 1, 2, gain=LINEAR, name="l2")
    y = net.conv(x, 8, 5, 1, 2, gain=LINEAR, name="l3")
    return net.model(net.node("Add", x, y, name="l4"))


def minakova_cnn2() -> onnx.ModelProto:
    """Second network of the application in Minakova fig. 6.1: a convolution and a fully connected layer."""
    net = ModelBuilder("minakova_cnn2")
    x = net.conv(net.input(1, 3, 32, 32), 8, 5, 1, 0, gain=LINEAR, name="l2")
    return net.model(net.dense(net.node("Flatten", x, axis=1), 10, name="l3"))
