"""Recognises model files of other tools, and says how to export an .onnx or .tflite file from them."""

from __future__ import annotations

import zipfile
from pathlib import Path

_HDF5 = b"\x89HDF\r\n\x1a\n"
_ONNX = b"\x08"  # the first byte of a model: field of the format version
_PAGE = "docs/export.md has more"
_SHAPE = "1, 3, 224, 224"
_TORCH = "pip install onnx onnxscript"


def export_advice(path: Path, head: bytes = b"") -> str | None:
    """Advice about a file of another tool; None if it is not recognised as one.

    `head` holds its first bytes; they overrule the file name if they show a supported format.
    """
    if path.is_dir():
        return _saved_model(path) if (path / "saved_model.pb").is_file() else None
    if head.startswith(_ONNX):
        return None
    suffix, parts = path.suffix.lower(), _zipped(path) if head.startswith(b"PK") else ()
    file, made = path.name, f"{path.stem}.onnx"
    if suffix == ".keras" or "metadata.json" in parts or head.startswith(_HDF5):
        called = (
            'model(numpy.zeros([n or 1 for n in model.input_shape], "float32"))'  # otherwise Keras refuses to export
        )
        call = f'model = keras.saving.load_model("{file}"); {called}; model.export("{made}", format="onnx")'
        return _advice(path, "a Keras model", f"import keras, numpy; {call}", "pip install tf2onnx")
    if suffix == ".pt2":
        call = f'import torch; torch.onnx.export(torch.export.load("{file}"), (), "{made}", dynamo=True)'
        return _advice(path, "a program exported by PyTorch", call, _TORCH)
    if any("/code/" in part for part in parts):
        call = f'torch.onnx.export(torch.jit.load("{file}"), (torch.zeros({_SHAPE}),), "{made}", dynamo=False)'
        return _advice(path, "a TorchScript model", f"import torch; {call}", _shaped("pip install onnx"))
    is_pickle = head[:1] == b"\x80" and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05")
    if suffix in (".pt", ".pth") or any(part.endswith("/data.pkl") for part in parts):
        call = f'torch.onnx.export(model.eval(), (torch.zeros({_SHAPE}),), "{made}", dynamo=True)'
        return _advice(
            path,
            "a PyTorch file, whose layers are Python code of yours",
            f"import torch; {call}",
            _shaped(f"`model` is yours with these weights; {_TORCH}"),
        )
    if suffix in (".joblib", ".pkl", ".pickle") or is_pickle:
        loaded = f'joblib.load("{file}"), X[:1].astype("float32")'
        model = f'to_onnx({loaded}, options={{"zipmap": False}}, black_op={{"Scaler"}})'
        call = (
            "from skl2onnx import to_onnx; "
            "from skl2onnx.helpers.onnx_helper import select_model_inputs_outputs as only; "
            f'open("{made}", "wb").write(only({model}, "probabilities").SerializeToString())'
        )
        return _advice(
            path,
            "a pickled Python object",
            f"import joblib; {call}",
            "for a classifier of scikit-learn, with samples X; pip install skl2onnx",
        )
    return None


def _saved_model(path: Path) -> str:
    call = f'open("{path.name}.tflite", "wb").write(tf.lite.TFLiteConverter.from_saved_model("{path.name}").convert())'
    return _advice(path, "a TensorFlow SavedModel", f"import tensorflow as tf; {call}", "pip install tensorflow")


def _shaped(note: str) -> str:
    return f"with your input's shape; {note}"


def _advice(path: Path, what: str, code: str, note: str) -> str:
    return f"'{path}' is {what}; edgewright reads .onnx and .tflite. In Python: {code} ({note}); {_PAGE}"


def _zipped(path: Path) -> tuple[str, ...]:
    """The names in an archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            return tuple(archive.namelist())
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError):
        return ()
