"""The locks of an application's library on each system: against stubs that count, by a compiler, by threads."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from edgewright import samples
from edgewright.application.draft import load_application
from edgewright.application.library import AppLibrary, emit_application
from edgewright.application.search import JointSearch
from edgewright.emit.deployment.trial import LibraryTrial, TrialScript
from tests.helpers.tools import needs

COUNTS = "extern int taken, given;\n"
TASKS = (
    "#ifndef FREERTOS\n#error FreeRTOS.h comes first\n#endif\n#define taskENTER_CRITICAL() ((void)taken++)\n"
    "#define taskEXIT_CRITICAL() ((void)given++)\n"
    "static inline UBaseType_t masked_before(void) { taken++; return 7; }\n"
    "#define taskENTER_CRITICAL_FROM_ISR() masked_before()\n"
    "#define taskEXIT_CRITICAL_FROM_ISR(key) ((void)(given += (key) == 7))\n"
)
FREERTOS = {"FreeRTOS.h": f"#define FREERTOS 1\ntypedef unsigned long UBaseType_t;\n{COUNTS}", "task.h": TASKS}
IDF = (
    "typedef struct { int owner; } portMUX_TYPE;\n#define portMUX_INITIALIZER_UNLOCKED {42}\n"
    "#define portENTER_CRITICAL_SAFE(mux) ((void)(taken += (mux)->owner == 42))\n"
    "#define portEXIT_CRITICAL_SAFE(mux) ((void)(given += (mux)->owner == 42))\n"
)
IRQ = (
    "static inline unsigned int irq_lock(void) { taken++; return 42u; }\n"
    "static inline void irq_unlock(unsigned int key) { given += key == 42u; }\n"
)
SPIN = (
    "struct k_spinlock { int held; };\ntypedef struct { int key; } k_spinlock_key_t;\n"
    "static inline k_spinlock_key_t k_spin_lock(struct k_spinlock *l)\n"
    "{ k_spinlock_key_t k = {42}; taken += !l->held++; return k; }\n"
    "static inline void k_spin_unlock(struct k_spinlock *l, k_spinlock_key_t k)\n"
    "{ given += k.key == 42 && l->held--; }\n"
)
SYSTEMS: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "zephyr": (("-D__ZEPHYR__",), {"zephyr/kernel.h": COUNTS + IRQ}),
    "zephyr smp": (("-D__ZEPHYR__", "-DCONFIG_SMP"), {"zephyr/kernel.h": COUNTS + SPIN}),
    "esp-idf": (
        ("-DESP_PLATFORM",),
        {"freertos/FreeRTOS.h": COUNTS + IDF, "freertos/task.h": "#define taskENTER_CRITICAL() no spinlock\n"},
    ),
    "freertos": (("-DAPP_FREERTOS",), FREERTOS),
    "freertos isr": (("-DAPP_FREERTOS", "-DAPP_IN_ISR()=1"), FREERTOS),
    "own": (("-DAPP_LOCK()=taken++", "-DAPP_UNLOCK()=given++", "-include", "own.h"), {"own.h": COUNTS}),
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
WAKE, DETECT = (f'[[network]]\nname = "{name}"\nfile = "{name}.onnx"\nplain = true\n' for name in ("wake", "detect"))
PARALLEL = '[[relation]]\nkind = "parallel"\nnetworks = ["wake", "detect"]\n'
ANYWHERE = '[[relation]]\nkind = "preempts"\npoints = "anywhere"\nnetworks = ["wake", "detect"]\n'


def written(folder: Path, *entries: str, target: str = "host") -> AppLibrary:
    """The library of an application, its sources in the folder."""
    samples.write_application("tiny_application", folder)
    (folder / "few.toml").write_text("\n".join([f'target = "{target}"', *entries]))
    library = emit_application(app := load_application(folder / "few.toml"), JointSearch(app).fastest.layout)
    for name, content in library.files.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return library


def compile_others(library: AppLibrary, folder: Path) -> None:
    others = [name for name in library.sources if name.endswith(".c") and name != "app.c"]
    subprocess.run([*STRICT, "-O1", "-c", *others, "main.c"], cwd=folder, check=True)


def link(folder: Path, *flags: str) -> None:
    objects = [str(path) for path in folder.glob("*.o")]
    subprocess.run(["gcc", *flags, *objects, "-o", "few", "-lm", "-lpthread"], cwd=folder, check=True)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a library with parallel networks, everything compiled but what locks."""
    needs("gcc")
    folder = tmp_path_factory.mktemp("locks")
    library = written(folder, WAKE, DETECT, PARALLEL)
    (folder / "main.c").write_text(MAIN)
    compile_others(library, folder)
    return folder


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_locks_of_a_system_are_taken_and_given_back(system: str, built: Path) -> None:
    flags, stubs = SYSTEMS[system]
    for name, content in stubs.items():
        (built / name).parent.mkdir(exist_ok=True)
        (built / name).write_text(content)
    subprocess.run([*STRICT, *flags, "-c", "app.c"], cwd=built, check=True)
    link(built)
    assert subprocess.run([built / "few"], check=False).returncode == 0


def compiled(folder: Path, *command: str) -> str:
    """What the compiler says of app.c; its assembler where it is right."""
    done = subprocess.run(
        [*command, "-S", "-O1", "app.c", "-I.", "-o", "-"], cwd=folder, capture_output=True, text=True
    )
    return done.stdout if done.returncode == 0 else done.stderr


NOWHERE = ("gcc", "-U__linux__", "-U__unix__", "-U__APPLE__", "-Uunix", "-Ulinux")  # a system that nobody knows


@pytest.mark.parametrize("relation", [PARALLEL, ANYWHERE])
def test_an_unknown_system_is_refused_where_a_lock_is_needed(relation: str, tmp_path: Path) -> None:
    needs("gcc")
    written(tmp_path, WAKE, DETECT, relation)
    said = compiled(tmp_path, *NOWHERE)
    assert "no lock is known for this system: define APP_LOCK() and APP_UNLOCK()" in said and "APP_ONE_THREAD" in said
    assert "app_run_wake:" in compiled(tmp_path, *NOWHERE, "-DAPP_ONE_THREAD")
    assert "pthread_mutex_lock" in compiled(tmp_path, "gcc", "-std=c99")
    assert "pthread_sigmask" in compiled(tmp_path, "gcc", "-std=c99")


def test_networks_that_exclude_each_other_need_no_lock(tmp_path: Path) -> None:
    needs("gcc")
    written(tmp_path, WAKE, DETECT)
    assert "app_run_wake:" in compiled(tmp_path, *NOWHERE)
    assert "pthread" not in compiled(tmp_path, "gcc", "-std=c99")


ARM = ("arm-none-eabi-gcc", "-mthumb", "-ffreestanding")
RISCV = ("riscv64-unknown-elf-gcc", "-mabi=ilp32", "-ffreestanding")


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from edgewright.emit import firmware as virtual_board

    folder = tmp_path_factory.mktemp("bare")
    written(folder, WAKE, DETECT, PARALLEL, target="rv32imc")
    for header in (Path(virtual_board.__file__).parent / "c" / "include").iterdir():
        (folder / header.name).write_bytes(header.read_bytes())
    return folder


def test_a_bare_core_turns_its_interrupts_off(bare: Path) -> None:
    needs("arm-none-eabi-gcc", "riscv64-unknown-elf-gcc")
    for cpu in ("cortex-m0plus", "cortex-m4", "cortex-m55"):
        said = compiled(bare, *ARM, f"-mcpu={cpu}")
        assert "primask" in said and "cpsid i" in said and "guard" not in said
    said = compiled(bare, *RISCV, "-march=rv32imc")
    assert "csrrci" in said and "csrs mstatus" in said and "guard" not in said
    for march in ("rv32imc", "rv32imc_zicsr"):
        subprocess.run([*RISCV, f"-march={march}", "-O1", "-I.", "-c", "app.c"], cwd=bare, check=True)
    listing = subprocess.run(["riscv64-unknown-elf-objdump", "-d", "app.o"], cwd=bare, capture_output=True, text=True)
    assert re.search(r"csrrci?\t\w+,mstatus,8", listing.stdout) and "csrs\tmstatus," in listing.stdout


@pytest.mark.parametrize("target", ["cortex-m0plus", "rv32imc"])
def test_locks_of_bare_cores_run_on_the_virtual_board(target: str, tmp_path: Path) -> None:
    library = written(tmp_path, WAKE, DETECT, PARALLEL, target=target)
    found = LibraryTrial(library).run_on_board(TrialScript(1, 3))
    assert found.result.runs and not found.result.wrong
    assert found.ram_linked == library.layout.peak_bytes + library.state_bytes


def test_two_cores_spin_too(bare: Path) -> None:
    needs("arm-none-eabi-gcc", "riscv64-unknown-elf-gcc")
    two = "-DAPP_TWO_CORES"
    assert "ldrex" in (said := compiled(bare, *ARM, "-mcpu=cortex-m4", two)) and "cpsid i" in said
    assert "amoswap" in (said := compiled(bare, *RISCV, "-march=rv32imac", two)) and "csrrci" in said
    for command in ((*ARM, "-mcpu=cortex-m0plus", two), (*RISCV, "-march=rv32imc", two)):
        assert "define APP_SPINLOCK as the address of a hardware spinlock" in compiled(bare, *command)
        said = compiled(bare, *command, "-DAPP_SPINLOCK=0xd000017c")
        assert "error" not in said and "__atomic" not in said and ("primask" in said or "mstatus" in said)


THREADED = """#include <pthread.h>
#include <string.h>
#include "app.h"
static float sound[96], words[3], expected[3], frame[768];
static volatile int wrong;
static void *waking(void *given)
{
    for (int n = 0; n < 3000; n++) {
        if (app_run_wake(sound, words) != APP_OK || memcmp(words, expected, sizeof words))
            wrong = 1;
    }
    return given;
}
static void *detecting(void *given)
{
    for (int n = 0; n < 300; n++)
        if (app_run_detect(frame, given) != APP_OK)
            wrong = 1;
    return given;
}
int main(void)
{
    static float detected[APP_OUTPUT];
    pthread_t one, two;
    for (int n = 0; n < 96; n++)
        sound[n] = (float)(n % 7);
    app_run_wake(sound, expected);
    pthread_create(&one, 0, waking, 0);
    pthread_create(&two, 0, detecting, detected);
    pthread_join(one, 0);
    pthread_join(two, 0);
    return wrong || app_busy();
}
"""


def test_threads_on_linux_take_turns_at_the_gate(tmp_path: Path) -> None:
    """Checked by the thread sanitizer, too: without the mutex it finds a race in `running`."""
    needs("gcc")
    library = written(tmp_path, WAKE, DETECT, PARALLEL)
    size = library.parts["detect"].network.tensors[library.parts["detect"].network.outputs[0]].size
    (tmp_path / "main.c").write_text(THREADED.replace("APP_OUTPUT", str(size)))
    compile_others(library, tmp_path)
    for flags, is_right in (
        (("-fsanitize=thread",), True),
        ((), True),
        (("-fsanitize=thread", "-DAPP_ONE_THREAD"), False),
    ):
        subprocess.run([*STRICT, "-O1", *flags, "-c", "app.c"], cwd=tmp_path, check=True)
        link(tmp_path, *flags[:1])
        done = subprocess.run([tmp_path / "few"], capture_output=True, text=True, check=False)
        assert (done.returncode == 0) == is_right, done.stderr[:2000]
