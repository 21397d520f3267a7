"""Parts executed: each on the regions that it names, and held against the whole network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from edgewright.errors import Unsupported
from edgewright.network import Array, DType, Network, Region
from edgewright.network.kernels import execute
from edgewright.network.parts import NetworkPart, TensorRegion, cut
from edgewright.network.restrict import restrictable_hull

Values = dict[str, Array]


def whole_values(network: Network, inputs: Mapping[str, Array]) -> Values:
    """Every tensor of the network, layer by layer."""
    with np.errstate(all="ignore"):
        return {**network.constants, **execute(network, inputs, keep=network.tensors)}


def run_part(part: NetworkPart, whole: Mapping[str, Array], sums: Mapping[TensorRegion, Array] | None = None) -> Values:
    """The outputs of the part, from the regions of the whole that it says it reads, and from sums of other parts."""
    assert list(part.inputs) == list(part.network.inputs)
    assert list(part.outputs) == list(part.network.outputs)
    given = {
        own: np.array(whole[at.tensor][at.region.slices]) if at.share is None else (sums or {})[at]
        for own, at in part.inputs.items()
    }
    with np.errstate(all="ignore"):
        return execute(part.network, given)


def assert_same(found: Array, wanted: Array, tolerance: float = 1e-5) -> None:
    """Integers bit for bit; BLAS may add real numbers in another order for another shape."""
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    if np.issubdtype(wanted.dtype, np.floating):
        if wanted.dtype == np.float16:
            tolerance = max(tolerance, 2e-3)
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)
    else:
        np.testing.assert_array_equal(found, wanted)


def assert_part(part: NetworkPart, whole: Mapping[str, Array]) -> None:
    """The part gives its regions of the whole, and what it computes costs what is predicted for them."""
    for own, value in run_part(part, whole).items():
        at = part.outputs[own]
        assert_same(value, whole[at.tensor][at.region.slices])


def predicted_macs(network: Network, part: NetworkPart) -> int:
    return sum(
        network.by_name[name].op.macs(region, network.shapes(network.by_name[name]))
        for name, region in part.computed.items()
    )


def cut_or_widened(network: Network, layers: Sequence[str], tensor: str, region: Region) -> NetworkPart:
    """The part for a region, or for the one that the refusal names."""
    try:
        return cut(network, layers, {tensor: region})
    except Unsupported as error:
        layer = network.producers[tensor]
        dtype = network.tensors[layer.inputs[0]].dtype
        wider = restrictable_hull(layer.op, region, network.shapes(layer), dtype)
        text = str(error)
        if "single one would be left" in text:
            raise
        assert f"layer '{layer.name}' ({type(layer.op).__name__})" in text and "along axis" in text
        assert wider != region and region in wider and text.endswith(f"Ask for {wider}")
        return cut(network, layers, {tensor: wider})


def poisoned(network: Network) -> Values:
    """Every computed tensor, filled with what no layer gives."""
    made = {}
    for name in network.producers:
        tensor = network.tensors[name]
        fill = np.nan if tensor.dtype.is_float else 77 if tensor.dtype is not DType.BOOL else False
        made[name] = np.full(tensor.shape, fill, tensor.dtype.numpy)
    return made
