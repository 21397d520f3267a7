"""Networks everyone knows, batch normalisation folded: four of MLPerf Tiny (Banbury et al. 2021), four of torchvision.

Shapes, parameters and MACs are those of the reference models; the weights are random.
"""

import onnx

from .builder import LINEAR, RELU_CENTRED, ModelBuilder


def ds_cnn(classes: int = 12) -> onnx.ModelProto:
    """Keyword spotting: depthwise separable CNN on a 49×10 spectrogram."""
    net = ModelBuilder("ds_cnn")
    x = net.input(1, 1, 49, 10)
    x = net.relu(net.conv(x, 64, (10, 4), 2))
    for _ in range(4):
        x = net.relu(net.depthwise(x))
        x = net.relu(net.conv(x, 64))
    x = net.classifier(x, classes)
    return net.model(net.softmax(x))


def mobilenet_v1(alpha: float = 0.25, size: int = 96, classes: int = 2) -> onnx.ModelProto:
    """Visual wake words: MobileNetV1, a plain chain of depthwise separable layers (Howard et al. 2017)."""
    net = ModelBuilder("mobilenet_v1")
    x = net.input(1, 3, size, size)
    x = net.relu(net.conv(x, int(32 * alpha), 3, 2))
    blocks = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1)]
    for channels, stride in blocks:
        x = net.relu(net.depthwise(x, 3, stride))
        x = net.relu(net.conv(x, int(channels * alpha)))
    x = net.classifier(x, classes)
    return net.model(net.softmax(x))


def resnet8(classes: int = 10) -> onnx.ModelProto:
    """Image classification: ResNet of three blocks on 32×32 pixels."""
    net = ModelBuilder("resnet8")
    x = net.input(1, 3, 32, 32)
    x = net.relu(net.conv(x, 16, 3))
    for channels, stride in ((16, 1), (32, 2), (64, 2)):
        y = net.relu(net.conv(x, channels, 3, stride))
        y = net.conv(y, channels, 3, gain=LINEAR)
        if stride > 1:
            x = net.conv(x, channels, 1, stride, gain=LINEAR)
        x = net.relu(net.add(x, y))
    x = net.classifier(x, classes)
    return net.model(net.softmax(x))


def autoencoder() -> onnx.ModelProto:
    """Anomaly detection: ten dense layers from 640 features through 8 and back."""
    net = ModelBuilder("autoencoder")
    x = net.input(1, 640)
    for units in (128, 128, 128, 128, 8, 128, 128, 128, 128):
        x = net.relu(net.dense(x, units))
    return net.model(net.dense(x, 640))


def lenet5(classes: int = 10) -> onnx.ModelProto:
    """LeNet-5 on 28×28 digits, tanh and average pooling (LeCun et al. 1998)."""
    net = ModelBuilder("lenet5")
    x = net.input(1, 1, 28, 28)
    x = net.average_pool(net.node("Tanh", net.conv(x, 6, 5)), 2, 2)
    x = net.average_pool(net.node("Tanh", net.conv(x, 16, 5, 1, 0)), 2, 2)
    x = net.node("Flatten", x, axis=1)
    for units in (120, 84):
        x = net.node("Tanh", net.dense(x, units))
    return net.model(net.dense(x, classes))


def mobilenet_v2(alpha: float = 0.35, size: int = 96, classes: int = 1000) -> onnx.ModelProto:
    """MobileNetV2: inverted residuals, wide inside and narrow between (Sandler et al. 2018, table 2)."""
    net = ModelBuilder("mobilenet_v2")
    x = net.input(1, 3, size, size)
    x = net.relu6(net.conv(x, _divisible(32 * alpha), 3, 2, 1))
    for expansion, width, repeats, first in (
        (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
    ):  # fmt: skip
        for stride in (first, *[1] * (repeats - 1)):
            x = _inverted_residual(net, x, expansion, _divisible(width * alpha), stride)
    x = net.relu6(net.conv(x, _divisible(1280 * max(alpha, 1.0))))
    return net.model(net.classifier(x, classes))


def _inverted_residual(net: ModelBuilder, x: str, expansion: int, channels: int, stride: int) -> str:
    depth = net.shape(x)[1]
    y = net.relu6(net.conv(x, depth * expansion, gain=LINEAR)) if expansion > 1 else x
    y = net.relu6(net.depthwise(y, 3, stride, 1))
    has_skip = stride == 1 and channels == depth
    y = net.conv(y, channels, gain=LINEAR if has_skip else RELU_CENTRED)
    return net.add(x, y) if has_skip else y


def _divisible(channels: float, divisor: int = 8) -> int:
    """The nearest multiple of the divisor that loses at most a tenth, as all MobileNets count."""
    rounded = max(divisor, int(channels + divisor / 2) // divisor * divisor)
    return rounded if rounded >= 0.9 * channels else rounded + divisor


def resnet18(size: int = 224, classes: int = 1000) -> onnx.ModelProto:
    """ResNet-18: eight residual blocks of two convolutions (He et al. 2016, table 1)."""
    net = ModelBuilder("resnet18")
    x = net.input(1, 3, size, size)
    x = net.max_pool(net.relu(net.conv(x, 64, 7, 2, 3)), 3, 2, 1)
    for channels in (64, 128, 256, 512):
        for block in range(2):
            stride = 2 if channels > 64 and block == 0 else 1
            y = net.relu(net.conv(x, channels, 3, stride, 1))
            y = net.conv(y, channels, 3, gain=LINEAR)
            if stride > 1:
                x = net.conv(x, channels, 1, stride, gain=LINEAR)
            x = net.relu(net.add(y, x))
    return net.model(net.classifier(x, classes))


def squeezenet(size: int = 224, classes: int = 1000) -> onnx.ModelProto:
    """SqueezeNet 1.1: fire modules that squeeze, expand twice and concatenate (Iandola et al. 2016)."""
    net = ModelBuilder("squeezenet")
    x = net.input(1, 3, size, size)
    x = net.max_pool(net.relu(net.conv(x, 64, 3, 2, 0)), 3, 2)
    for squeeze, fires, pooled in ((16, 2, True), (32, 2, True), (48, 2, False), (64, 2, False)):
        for _ in range(fires):
            y = net.relu(net.conv(x, squeeze))
            x = net.concat(net.relu(net.conv(y, 4 * squeeze)), net.relu(net.conv(y, 4 * squeeze, 3)))
        x = net.max_pool(x, 3, 2) if pooled else x
    x = net.relu(net.conv(x, classes))
    return net.model(net.global_average(x))
