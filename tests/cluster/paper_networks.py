"""The networks of S 5 as lists of layers: darknet's cfg files that fit the printed figures, and the running example."""

from __future__ import annotations

from dataclasses import replace

from edgewright.cluster.paper.layers import LayerKind, PaperLayer


def running_example() -> tuple[PaperLayer, ...]:
    """S fig. 5.2: four dense layers, 4 to 8 to 16 to 4 to 4."""
    net = Darknet((1, 1, 4))
    for outputs in (8, 16, 4, 4):
        net.dense(outputs)
    return net.layers


class Darknet:
    """Builds a list layer by layer; `shape` is rows, columns, channels of the last output."""

    def __init__(self, shape: tuple[int, int, int]) -> None:
        self.shape = shape
        self.layers: tuple[PaperLayer, ...] = ()
        self.shapes: list[tuple[int, int, int]] = []
        self.source: int | None = None  # the layer that is read next, if it computes what is read

    def conv(self, channels: int, kernel: int = 3, stride: int = 1, padding: int | None = None) -> None:
        rows, columns, depth = self.shape
        padding = kernel // 2 if padding is None else padding
        rows, columns = ((n + 2 * padding - kernel) // stride + 1 for n in (rows, columns))
        weights = kernel * kernel * depth * channels
        self._add("conv", LayerKind.CONVOLUTION, (rows, columns, channels), weights, rows * columns * weights)

    def pool(self, kernel: int = 2, stride: int = 2) -> None:
        rows, columns, channels = self.shape
        self._add("max", LayerKind.OTHER, ((rows - kernel) // stride + 1, (columns - kernel) // stride + 1, channels))

    def dense(self, outputs: int) -> None:
        rows, columns, channels = self.shape
        weights = rows * columns * channels * outputs
        self._add("connected", LayerKind.DENSE, (1, 1, outputs), weights, weights)

    def other(self, name: str, shape: tuple[int, int, int] | None = None) -> None:
        self._add(name, LayerKind.OTHER, shape or self.shape)

    def dropout(self) -> None:
        """Computes nothing when a network runs: the next layer reads what this one reads."""
        source = self.source
        self._add("dropout", LayerKind.OTHER, self.shape)
        self.layers = (*self.layers[:-1], replace(self.layers[-1], inputs=0, outputs=0))
        self.source = source

    def route(self, *numbers: int) -> None:
        """Joins the channels of earlier layers, counted from 1."""
        shapes = [self.shapes[number - 1] for number in numbers]
        rows, columns, _ = shapes[0]
        self.shape = rows, columns, sum(channels for _, _, channels in shapes)
        self.source = None
        self._add("route", LayerKind.OTHER, self.shape)

    def _add(self, name: str, kind: LayerKind, shape: tuple[int, int, int], weights: int = 0, macs: int = 0) -> None:
        number = len(self.layers) + 1
        inputs, outputs = (a * b * c for a, b, c in (self.shape, shape))
        layer = PaperLayer(number, f"{number} {name}", kind, inputs, outputs, weights, macs, self.source)
        self.layers = (*self.layers, layer)
        self.shape, self.source = shape, number
        self.shapes.append(shape)


def yolov2() -> tuple[PaperLayer, ...]:
    """YOLOv2 on 608×608 pixels, 80 classes: 32 layers."""
    net = Darknet((608, 608, 3))
    for first, *rest in ((32,), (64,), (128, 64, 128), (256, 128, 256), (512, 256, 512, 256, 512)):
        _alternating(net, (first, *rest))
        net.pool()
    _alternating(net, (1024, 512, 1024, 512, 1024))
    net.conv(1024)
    net.conv(1024)
    net.route(17)
    net.conv(64, 1)
    net.other("reorg", (19, 19, 256))
    net.route(28, 25)
    net.conv(1024)
    net.conv(425, 1)
    net.other("region")
    return net.layers


def alexnet() -> tuple[PaperLayer, ...]:
    """AlexNet on 227×227 pixels without groups: 14 layers."""
    net = Darknet((227, 227, 3))
    net.conv(96, 11, 4, 0)
    net.pool(3)
    net.conv(256, 5)
    net.pool(3)
    for channels in (384, 384, 256):
        net.conv(channels)
    net.pool(3)
    _classifier(net)
    return net.layers


def vgg16() -> tuple[PaperLayer, ...]:
    """VGG-16: 25 layers, of which the first crops 256×256 pixels to 224×224."""
    net = Darknet((256, 256, 3))
    net.other("crop", (224, 224, 3))
    for channels, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(count):
            net.conv(channels)
        net.pool()
    _classifier(net)
    return net.layers


def extraction() -> tuple[PaperLayer, ...]:
    """Extraction on 224×224 pixels, which S calls a GoogLeNet derivative: 27 layers."""
    net = Darknet((224, 224, 3))
    net.conv(64, 7, 2)
    net.pool()
    net.conv(192)
    net.pool()
    _alternating(net, (128, 256, 256, 512), narrow=0)
    net.pool()
    _alternating(net, (256, 512) * 4 + (512, 1024), narrow=0)
    net.pool()
    _alternating(net, (512, 1024) * 2, narrow=0)
    net.conv(1000, 1)
    net.other("avgpool", (1, 1, 1000))
    net.other("softmax")
    return net.layers


def _alternating(net: Darknet, channels: tuple[int, ...], narrow: int = 1) -> None:
    """Convolutions of 3×3, every other one of 1×1."""
    for at, count in enumerate(channels):
        net.conv(count, 1 if at % 2 == narrow else 3)


def _classifier(net: Darknet) -> None:
    for _ in range(2):
        net.dense(4096)
        net.dropout()
    net.dense(1000)
    net.other("softmax")


DARKNETS = {"YOLOv2": yolov2, "AlexNet": alexnet, "VGG-16": vgg16, "Extraction": extraction}
