"""The four networks of the MLPerf Tiny benchmark (Banbury et al. 2021), batch normalisation folded.

Shapes, parameters and MACs are those of the reference models; the weights are random.
"""

import onnx

from edgewright.samples.builder import LINEAR, ModelBuilder


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
