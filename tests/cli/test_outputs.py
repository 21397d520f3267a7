"""What is written where: every output is checked before work begins, and a refusal is one line that leaves nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from edgewright import samples, write_onnx
from edgewright.cli import main
from edgewright.errors import InputError
from edgewright.files import check_file, check_folder, output_folder, write_together
from edgewright.hal import examples
from edgewright.network import Builder
from edgewright.network.operators import Clamp, MaxPool2d

LONG = "n" * 300


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """An input for every verb."""
    folder = tmp_path_factory.mktemp("given")
    (folder / "buffers.csv").write_text("id,lower,upper,size\na,0,3,4\n")
    (folder / "driver.c").write_text((Path(examples.__file__).parent / "gpio.c").read_text())
    return {"model": samples.write("lenet5", folder), "csv": folder / "buffers.csv", "c": folder / "driver.c"}


def run(*arguments):
    return CliRunner().invoke(main, [str(a) for a in arguments])


# Every verb that writes, with an option that names a file or a folder.
FILES = [
    ("plan", "model", "-o"),
    ("plan", "model", "--page"),
    ("plan", "model", "--pareto", "-o"),
    ("run", "model", "-o"),
    ("csdf", "model", "--sdf3"),
    ("csdf", "model", "--dot"),
    ("csdf", "model", "--page"),
    ("csdf", "model", "--gantt"),
    ("csdf", "model", "--plot"),
    ("layout", "csv", "-o"),
    ("hal", "c", "--page"),
]
FOLDERS = [
    ("compile", "model", "--no-verify", "-o"),
    ("hal", "c", "--no-verify", "-o"),
    ("sample", "lenet5", "-o"),
]


def refused(given, command, path, words, monkeypatch):
    """One line and status 1, and nothing has been read or built: the check comes first."""

    def too_late(*_arguments, **_options):
        raise AssertionError("work has begun")

    monkeypatch.setattr("edgewright.network.read.read", too_late)
    monkeypatch.setattr("edgewright.samples.write", too_late)
    result = run(*(given.get(word, word) for word in command), path)
    assert result.exit_code == 1, result.output
    assert result.output.startswith("Error: ") and len(result.output.splitlines()) == 1
    assert words in result.output


@pytest.mark.parametrize("command", [*FILES, *FOLDERS], ids=" ".join)
def test_names_that_are_too_long(given, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused(given, command, f"{LONG}.json", "File name too long", monkeypatch)
    refused(given, command, f"new/{LONG}", "cannot write", monkeypatch)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", FILES, ids=" ".join)
def test_files_where_none_can_be(given, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("x")
    (tmp_path / "loop").symlink_to("loop")
    if "--pareto" not in command:  # whose files may go into a folder
        refused(given, command, tmp_path, "it is a directory", monkeypatch)
        refused(given, command, "loop", "links", monkeypatch)
    refused(given, command, "file/inside.json", "file' is a file", monkeypatch)
    refused(given, command, "/proc/plan.json", "cannot write", monkeypatch)  # nobody writes there, not even root
    if command[0] != "hal":  # which makes folders
        refused(given, command, "no/such/folder.json", "does not exist", monkeypatch)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "loop"]


@pytest.mark.parametrize("command", FOLDERS, ids=" ".join)
def test_folders_where_none_can_be(given, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("x")
    (tmp_path / "nowhere").symlink_to("missing")
    refused(given, command, "file", "is a file", monkeypatch)
    refused(given, command, "file/inside", "is a file", monkeypatch)
    refused(given, command, "nowhere", "leads nowhere", monkeypatch)
    refused(given, command, "/proc/folder", "cannot write", monkeypatch)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "nowhere"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_no_permission(tmp_path):
    tmp_path.chmod(0o555)
    for check in (check_file, check_folder):
        with pytest.raises(InputError, match="Permission denied"):
            check(tmp_path / "x")
    tmp_path.chmod(0o755)


def test_inputs_are_not_overwritten(given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for command in (("plan", "model", "-o"), ("run", "model", "-o"), ("csdf", "model", "--dot")):
        refused(given, command, given["model"], "would be overwritten", monkeypatch)
    refused(given, ("layout", "csv", "-o"), given["csv"], "would be overwritten", monkeypatch)
    refused(given, ("plan", "model", "-o", "p", "--page"), "p", "asked for twice", monkeypatch)
    assert given["model"].stat().st_size > 1000


def test_a_name_of_a_library_that_is_too_long(given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("compile", given["model"], "--name", LONG, "-o", "out")
    assert result.exit_code == 1 and result.output.startswith("Error: the name 'nnnnnnn…nnn")
    assert len(result.output.splitlines()) == 1 and list(tmp_path.iterdir()) == []


def test_the_longest_name_that_there_can_be(tmp_path):
    path = tmp_path / ("n" * 255)
    check_file(path)
    write_together({path: "all"})
    assert path.read_text() == "all" and list(tmp_path.iterdir()) == [path]


def test_links_are_followed_and_devices_are_no_files(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write_together({tmp_path / "link": "new", Path("/dev/null"): "gone"})
    assert (tmp_path / "real").read_text() == "new" and (tmp_path / "link").is_symlink()
    assert Path("/dev/null").is_char_device()


def test_a_plan_goes_to_the_standard_output(given):
    code = "from edgewright.cli import main; main()"
    command = [sys.executable, "-c", code, "plan", str(given["model"]), "--json", "-o", "/dev/stderr"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and json.loads(done.stderr)["peak_bytes"] == json.loads(done.stdout)["peak_bytes"]


def test_no_name_steers_a_terminal_or_a_page(tmp_path, monkeypatch):
    """Control characters and those that turn the direction of writing are replaced; --json says them in ASCII."""
    monkeypatch.chdir(tmp_path)
    wicked = "\u202e\u2066\u200b\u2028\x1b[31m\x07\x7f[/red]"
    b = Builder("net")
    x = b.input(f"in{wicked}", (1, 4, 4, 2))
    y = b.layer(Clamp(0.0, 6.0), [x], f"clamp{wicked}")
    model = write_onnx(b.build([b.layer(MaxPool2d((2, 2), (2, 2)), [y], f"pool{wicked}")]), tmp_path / "m.onnx")
    model = (tmp_path / "m.onnx").rename(tmp_path / f"m{wicked.replace('/', '')}.onnx")
    (tmp_path / "b.csv").write_text(f"id,lower,upper,size\na{wicked},0,3,4\n")
    for command in (
        ("inspect", model),
        ("plan", model, "--phases", "--page", "p.html", "-o", "p\u202e.json"),
        ("plan", model, "--pareto", "--page", "f.html"),
        ("plan", model, "--ram", "8"),
        ("plan", model, "--tile", f"pool{wicked}..clamp{wicked}:rows=2"),
        ("csdf", model, "--analyse", "--page", "c.html", "--gantt", "c.svg", "--dot", "c.dot"),
        ("layout", "b.csv"),
        ("inspect", tmp_path / f"missing{wicked.replace('/', '')}.onnx"),
        ("inspect", model, "--json"),
    ):
        result = run(*command)
        assert result.exit_code in (0, 1) and isinstance(result.exception, SystemExit | None), result.exception
        assert all(c.isprintable() or c == "\n" for c in result.output), command
    for page in ("p.html", "f.html", "c.html", "c.svg", "c.dot"):
        assert all(c.isprintable() or c in "\n\t" for c in (tmp_path / page).read_text()), page


@pytest.mark.parametrize("is_there", [False, True])
def test_a_folder_is_put_in_place_as_a_whole_or_not_at_all(tmp_path, is_there):
    folder = tmp_path / "out"
    if is_there:
        folder.mkdir()
        (folder / "mine").write_text("stays")
    before = sorted(tmp_path.rglob("*"))

    def fill_the_disk() -> None:
        with output_folder(folder) as fresh:
            (fresh / "part").mkdir()
            (fresh / "part" / "a").write_text("half")
            raise OSError(28, "No space left on device")

    with pytest.raises(InputError, match=r"cannot write '.*out': No space left"):
        fill_the_disk()
    assert sorted(tmp_path.rglob("*")) == before
    with output_folder(folder) as fresh:
        (fresh / "part").mkdir()
        (fresh / "part" / "a").write_text("whole")
    found = {str(path.relative_to(folder)) for path in folder.rglob("*")}
    assert found == {"part", "part/a", *(["mine"] if is_there else [])}
    assert (folder / "part" / "a").read_text() == "whole"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_full_disk_behind_the_standard_output_is_one_sentence():
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-c", "from edgewright.cli.main import main; main()", "boards"]
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == 1 and ended.stderr == "Error: cannot go on: No space left on device\n"
