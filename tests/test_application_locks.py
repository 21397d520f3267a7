"""The locks of an application's library under Zephyr and FreeRTOS: compiled against stubs that count, and run."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from edgewright import samples
from edgewright.application.library import emit_application
from edgewright.application.members import load_application
from edgewright.application.search import JointSearch
from tools import needs

SYSTEMS = {
    "zephyr": (
        "-D__ZEPHYR__",
        {
            "zephyr/kernel.h": "extern int taken, given;\n"
            "static inline unsigned int irq_lock(void) { taken++; return 42u; }\n"
            "static inline void irq_unlock(unsigned int key) { given += key == 42u; }\n"
        },
    ),
    "freertos": (
        "-DAPP_FREERTOS",
        {
            "FreeRTOS.h": "#define FREERTOS 1\n",
            "task.h": "#ifndef FREERTOS\n#error FreeRTOS.h comes first\n#endif\nextern int taken, given;\n"
            "#define taskENTER_CRITICAL() ((void)taken++)\n#define taskEXIT_CRITICAL() ((void)given++)\n",
        },
    ),
    "own": ("-DAPP_LOCK()=taken++", {"own.h": "extern int taken, given;\n"}),
}
MAIN = """#include "app.h"
int taken, given;
int main(void)
{
    static float sound[96], words[3];
    const int32_t status = app_run_wake(sound, words);
    return status != APP_OK || app_busy() || taken < 2 || taken != given;
}
"""


STRICT = ("gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off", "-I.")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a library, everything compiled but what locks."""
    needs("gcc")
    folder = tmp_path_factory.mktemp("locks")
    samples.write_application("tiny_application", folder)
    entry = '[[network]]\nname = "wake"\nfile = "wake.onnx"\nplain = true\n'
    (folder / "few.toml").write_text(f'target = "host"\n{entry}')
    library = emit_application(JointSearch(load_application(folder / "few.toml")).fastest.layout)
    for name, content in {**library.files, "main.c": MAIN}.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    others = [name for name in library.sources if name.endswith(".c") and name != "app.c"]
    subprocess.run([*STRICT, "-c", *others, "main.c"], cwd=folder, check=True)
    return folder


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_locks_of_a_system_are_taken_and_given_back(system: str, built: Path) -> None:
    flag, stubs = SYSTEMS[system]
    for name, content in stubs.items():
        (built / name).parent.mkdir(exist_ok=True)
        (built / name).write_text(content)
    given = [flag, "-DAPP_UNLOCK()=given++", "-include", "own.h"] if system == "own" else [flag]
    subprocess.run([*STRICT, *given, "-c", "app.c"], cwd=built, check=True)
    objects = [str(path) for path in built.glob("*.o")]
    subprocess.run(["gcc", *objects, "-o", "few", "-lm", "-lpthread"], cwd=built, check=True)
    assert subprocess.run([built / "few"], check=False).returncode == 0
