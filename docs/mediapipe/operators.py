"""MediaPipe's custom operators of float32: a transposed convolution with a bias, and an image that a matrix moves."""

from __future__ import annotations

import struct

import numpy as np

from edgewright import CustomOperator


class TransposedConvolution(CustomOperator):
    """Inputs: image (1, H, W, C), weights (outputs, KH, KW, C), bias. Options: padding, stride along W and along H."""

    name = "Convolution2DTransposeBias"
    code = "transpose_bias.c"
    function = "ew_transpose_bias"

    def __init__(self, attributes):
        super().__init__(attributes)
        padding, *strides = struct.unpack_from("<3i", attributes["options"])
        self.is_same, self.strides = padding == 1, strides[::-1]

    def _axis(self, axis, shapes):
        """Along rows (0) or columns (1): the size of the output, and what is left out before it."""
        size, kernel, stride = shapes[0][1 + axis], shapes[1][1 + axis], self.strides[axis]
        pad = max(0, kernel - (size - 1) % stride - 1) if self.is_same else 0
        return stride * (size - 1) + kernel - pad, pad // 2

    def shape(self, shapes):
        return (1, self._axis(0, shapes)[0], self._axis(1, shapes)[0], shapes[1][0])

    def needs(self, first, last, shapes):
        """Input row y adds to the output rows from stride * y - pad on, as many as the kernel has."""
        _, pad = self._axis(0, shapes)
        kernel, stride = shapes[1][1], self.strides[0]
        return [((first + pad - kernel) // stride + 1, (last - 1 + pad) // stride + 1), None, None]

    def compute(self, inputs):
        image, weights, bias = inputs
        shapes = [each.shape for each in inputs]
        _, height, width, depth = self.shape(shapes)
        (_, top), (_, left) = self._axis(0, shapes), self._axis(1, shapes)
        rows, columns, kernel_rows, kernel_columns = *image.shape[1:3], *weights.shape[1:3]
        spread = np.zeros(
            (rows * self.strides[0] + kernel_rows, columns * self.strides[1] + kernel_columns, depth), np.float32
        )
        for i in range(kernel_rows):
            for j in range(kernel_columns):
                stop = i + rows * self.strides[0], j + columns * self.strides[1]
                spread[i : stop[0] : self.strides[0], j : stop[1] : self.strides[1]] += image[0] @ weights[:, i, j].T
        return (spread[top : top + height, left : left + width] + bias)[None]

    def numbers(self, shapes):
        (_, top), (_, left) = self._axis(0, shapes), self._axis(1, shapes)
        return [*shapes[0][1:], shapes[1][0], *shapes[1][1:3], *self.strides, top, left]


class TransformedImage(CustomOperator):
    """Inputs: image (1, H, W, C), matrix (1, 4, 4). Output pixel (x, y) is what lies at the matrix times (x, y, 0, 1).

    Options: height and width of the output. Places are those of pixel centres; outside the image it is 0.
    """

    name = "TransformTensorBilinear"
    code = "transform_bilinear.c"
    function = "ew_transform_bilinear"

    def __init__(self, attributes):
        super().__init__(attributes)
        self.size = struct.unpack_from("<2i", attributes["options"])

    def shape(self, shapes):
        return (1, *self.size, shapes[0][3])

    def compute(self, inputs):
        image, matrix = inputs[0][0], inputs[1].reshape(4, 4)
        height, width = image.shape[:2]
        y, x = np.meshgrid(*(np.arange(size, dtype=np.float32) for size in self.size), indexing="ij")
        half = np.float32(0.5)
        at_x, at_y = (row[0] * x + row[1] * y + (row[3] + (row[0] * half + row[1] * half - half)) for row in matrix[:2])
        is_inside = (at_x >= 0) & (at_x <= width - 1) & (at_y >= 0) & (at_y <= height - 1)
        low_x, low_y = (np.where(is_inside, np.floor(at), 0).astype(int) for at in (at_x, at_y))
        high_x, high_y = np.minimum(low_x + 1, width - 1), np.minimum(low_y + 1, height - 1)
        right, lower = (at_x - low_x)[..., None], (at_y - low_y)[..., None]
        upper = (1 - right) * image[low_y, low_x] + right * image[low_y, high_x]
        under = (1 - right) * image[high_y, low_x] + right * image[high_y, high_x]
        return np.where(is_inside[..., None], (1 - lower) * upper + lower * under, np.float32(0))[None]

    def numbers(self, shapes):
        return shapes[0][1:]
