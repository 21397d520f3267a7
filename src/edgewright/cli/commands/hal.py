"""The options of `edgewright hal`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ...errors import InputError
from ..options import BYTE_SIZE, IN_FILE, json_option
from ..outputs import OutFile, OutFolder, Verb

RDL_KINDS = ("html", "ipxact", "regblock", "cheader")


class OutLock(OutFile):
    """A lock file. It is written with -o and otherwise only read."""

    def check(self, path: Path, given: dict[str, Any]) -> None:
        if given["output"]:
            super().check(path, given)


def _show_include(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        click.echo(f"-I{Path(__file__).parent.parent.parent / 'hal' / 'include'}")
        ctx.exit()


def _rdl_kinds(_ctx: click.Context, _param: click.Parameter, value: str | None) -> tuple[str, ...]:
    kinds = tuple(dict.fromkeys(kind.strip() for kind in value.split(","))) if value else ()
    if wrong := [kind for kind in kinds if kind not in RDL_KINDS]:
        raise click.BadParameter(f"'{wrong[0]}' is none of {', '.join(RDL_KINDS)}")
    return kinds


def _excluded(_ctx: click.Context, _param: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    reasons = {name.strip(): why.strip() for name, _, why in (one.partition("=") for one in given)}
    if wrong := [name for name, why in reasons.items() if not (name and why)]:
        raise click.BadParameter(f"'{wrong[0]}' needs a reason: NAME='why it need not be compared'")
    return reasons


@click.command(cls=Verb)
@click.argument("files", type=IN_FILE, nargs=-1, metavar="FILES...")
@click.option(
    "-o",
    "--output",
    type=OutFolder(),
    help="Folder for the driver, its HAL and all descriptions of the registers.",
)
@click.option("--explain", is_flag=True, help="Regions, conflicts, what was merged and what not, and why.")
@click.option("--check", is_flag=True, help="Parse and check only.")
@click.option(
    "--verify/--no-verify",
    default=None,
    help="Run naive and generated code on a virtual prototype and compare.  [default: with -o]",
)
@click.option(
    "--target",
    type=click.Choice(["rv32imc", "cortex-m0plus", "cortex-m4"]),
    default="rv32imc",
    show_default=True,
    help="Processor of the prototype.",
)
@click.option(
    "--exclude",
    "excluded",
    multiple=True,
    metavar="NAME=WHY",
    callback=_excluded,
    help="A function that is written though it cannot be compared, and why. May be given again.",
)
@click.option("--model", type=IN_FILE, metavar="FILE.py", help="How the peripherals behave, for --verify and --twin.")
@click.option(
    "--twin",
    type=IN_FILE,
    metavar="FILE.c",
    help="A conventional driver with the same functions, to measure beside; FILE.toml says where it has the fields.",
)
@click.option("--max-map", type=BYTE_SIZE, metavar="BYTES", help="Limit for the register maps of all devices together.")
@click.option(
    "--minimise",
    type=click.Choice(["balanced", "code", "accesses", "map"]),
    default="balanced",
    show_default=True,
    help="What the layout is best at.",
)
@click.option(
    "--method",
    type=click.Choice(["optimal", "paper"]),
    default="optimal",
    show_default=True,
    help="How the layout is found.",
)
@click.option(
    "--bus",
    type=click.Choice(["8", "16", "32"]),
    help="Bits of the bus, for devices that declare none.  [default: 32]",
)
@click.option("--byte-lanes", is_flag=True, help="The bus can also access single bytes of a word.")
@click.option(
    "--views/--no-views",
    default=True,
    help="Whether registers may have further addresses, at which some fields are written alone.  [default: views]",
)
@click.option(
    "-I", "includes", type=IN_FILE, multiple=True, metavar="DIR", help="Where headers are. May be given again."
)
@click.option("-D", "defines", multiple=True, metavar="NAME=VALUE", help="Define a macro. May be given again.")
@click.option(
    "--addresses",
    type=IN_FILE,
    metavar="FILE",
    help="Base addresses of devices, from a TOML or devicetree source: UART0_ADDRESS for uart0.",
)
@click.option(
    "--isr",
    "interrupt_routines",
    multiple=True,
    metavar="NAME",
    help="A function that runs in interrupts, beside those that show it. May be given again.",
)
@click.option(
    "--not-isr",
    "no_interrupt_routines",
    multiple=True,
    metavar="NAME",
    help="A function that does not run in interrupts, though its name looks like it. May be given again.",
)
@click.option(
    "--lock",
    type=OutLock(makes_folders=True),
    help="Lock file: fields in it keep their places.  [default: the one in OUTPUT]",
)
@click.option(
    "--from-svd",
    type=IN_FILE,
    metavar="FILE.svd",
    help="Write groups and a full lock file for a peripheral of a CMSIS-SVD file, and end.",
)
@click.option(
    "--from-rdl",
    type=IN_FILE,
    metavar="FILE.rdl",
    help="The same for the address maps of a SystemRDL file, or of one in IP-XACT (.xml).",
)
@click.option(
    "--from-header",
    type=IN_FILE,
    metavar="FILE.h",
    help="The same for a C header: structs of volatile words, or macros with offsets.",
)
@click.option(
    "--peripheral",
    "peripherals",
    multiple=True,
    metavar="NAME",
    help="Which one, with --from-svd, --from-rdl and --from-header. May be given again.",
)
@click.option("--relock", is_flag=True, help="Lay out again, whatever the lock file says.")
@click.option("--pareto", is_flag=True, help="Size of the map against code and accesses: every layout worth having.")
@click.option(
    "--rdl",
    metavar="KIND,...",
    callback=_rdl_kinds,
    help=f"What PeakRDL is to make as well: {', '.join(RDL_KINDS)}.",
)
@click.option("--cmsis", is_flag=True, help="Write NAME_cmsis.h as well: structs of registers, _Pos and _Msk macros.")
@click.option(
    "--page",
    type=OutFile(makes_folders=True),
    help="Write a self-contained page that shows the registers and the savings.",
)
@click.option(
    "--include",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_include,
    help="Print the compiler flag for edgewright_hal.h and end.",
)
@json_option
def hal(**options: Any) -> None:
    """Derive the registers that the driver code in FILES needs, and generate a HAL and the driver for them.

    Ends with status 1 when the source is refused or verification finds a difference; then nothing is written.
    """
    origins = {kind: options.pop(f"from_{kind}") for kind in ("svd", "rdl", "header")}
    peripherals = options.pop("peripherals")
    if any(origins.values()):
        _import(origins, peripherals, options)
        return
    if peripherals:
        raise click.UsageError("--peripheral is for --from-svd, --from-rdl and --from-header")
    if not options["files"]:
        raise click.UsageError("Missing argument 'FILES...'.")
    if options["model"] and not (
        options["twin"] or options["verify"] or (options["verify"] is None and options["output"])
    ):
        raise click.UsageError("--model is for --verify and --twin")
    if options["lock"] and options["relock"] and not options["output"]:
        raise click.UsageError("--relock needs -o: without it no lock file is written")
    if options["rdl"] and not options["output"]:
        raise click.UsageError("--rdl needs -o: it writes folders of files")
    if options["cmsis"] and not options["output"]:
        raise click.UsageError("--cmsis needs -o: it writes a header there")
    try:
        from ..hal_steps import HalOptions, run
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "clang":
            raise
        raise InputError("drivers are read with libclang: pip install 'edgewright[hal]'") from error
    run(HalOptions(**options))


def _import(origins: dict[str, Path | None], peripherals: tuple[str, ...], options: dict[str, Any]) -> None:
    given = [(kind, path) for kind, path in origins.items() if path]
    if len(given) > 1 or options["files"]:
        raise click.UsageError("--from-svd, --from-rdl and --from-header read one file, and no driver")
    if not options["output"]:
        raise click.UsageError(f"--from-{given[0][0]} needs -o: it writes a header and a lock file")
    from ..hal_import import run_import

    run_import(given[0][1], given[0][0], peripherals, options["output"], options["as_json"])
