"""Files of other tools: each is told by its name or its content, with what to type."""

import io
import zipfile

import pytest

from edgewright import Infeasible, plan, read_model, samples
from edgewright.errors import EdgewrightError, InputError


def archive(*names):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        for name in names:
            file.writestr(name, "")
    return made.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "what", "typed"),
    [
        (
            "net.keras",
            archive("metadata.json", "config.json"),
            "a Keras model",
            'load_model("net.keras"); model(',
        ),
        ("net.zip", archive("metadata.json", "config.json"), "a Keras model", 'load_model("net.zip")'),
        ("net.h5", b"\x89HDF\r\n\x1a\n", "a Keras model", 'load_model("net.h5")'),
        (
            "net.pt2",
            archive("net/archive_format"),
            "exported by PyTorch",
            'torch.export.load("net.pt2"), (), "net.onnx"',
        ),
        ("net.pt", archive("net/data.pkl", "net/code/a.py"), "a TorchScript model", 'torch.jit.load("net.pt")'),
        ("net.pt", archive("net/data.pkl"), "a PyTorch file", "torch.onnx.export(model.eval()"),
        ("net.pth", b"\x80\x02", "a PyTorch file", "torch.onnx.export(model.eval()"),
        ("net.joblib", b"\x80\x04", "a pickled Python object", 'joblib.load("net.joblib")'),
        ("net.pkl", b"", "a pickled Python object", 'joblib.load("net.pkl")'),
    ],
)
def test_files_of_other_tools_are_told_what_to_type(name, content, what, typed, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_model(tmp_path / name)
    assert what in str(caught.value) and typed in str(caught.value) and "docs/export.md" in str(caught.value)
    code, _, _ = str(caught.value).partition("In Python: ")[2].rpartition(" (")
    compile(code, name, "exec")


def test_a_saved_model_folder_is_told_what_to_type(tmp_path):
    with pytest.raises(InputError, match="is a directory"):
        read_model(tmp_path)
    (tmp_path / "saved_model.pb").touch()
    with pytest.raises(InputError, match=r"a TensorFlow SavedModel.*from_saved_model\("):
        read_model(tmp_path)


def test_what_is_in_a_file_counts_and_not_its_name(tmp_path):
    path = samples.write("lenet5", tmp_path).rename(tmp_path / "net.pt")
    assert read_model(path).layers
    path.write_bytes(b"\x08")
    with pytest.raises(EdgewrightError, match="ONNX"):
        read_model(path)


def test_a_quantised_input_is_advised_where_it_makes_a_network_fit():
    model = samples.build("minakova_example_int8")  # 4,096 bytes, or 1,264 where the input comes quantised
    for ram, notes in ((2048, 1), (1024, 0)):
        with pytest.raises(Infeasible) as caught:
            plan(model, ram=ram, max_overhead=0.0)
        found = getattr(caught.value, "__notes__", [])
        assert len(found) == notes and all("with --quantised-input" in note for note in found)
    assert plan(read_model(model, quantised_input=True), ram=2048, max_overhead=0.0).peak_bytes <= 2048
