"""What layouts of applications claim, against an exact model that shares no code with them.

    python benchmarks/application_proofs.py [--applications 200] [--first SEED] [--jobs 2] [--json FILE]

Random applications of up to six networks with all kinds of relations are planned as `edgewright app` plans them. Each
layout says how many bytes it takes and how many are needed at least, or that it is proven least. The exact model of
`tests/application/exact.py` finds the smallest arena for the same plans. A claim is false if that is smaller than the
bound; a bound is loose if it is smaller than that. The product's judge must accept every layout of the exact model.
"""

import json
import sys
import tempfile
from collections import Counter
from pathlib import Path

import click
from joblib import Parallel, delayed
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent.parent))

from edgewright.application.outcome import plan_application
from edgewright.errors import EdgewrightError
from tests.application.cases import random_application
from tests.application.exact import compared

MOST_LOOSE = 0.05  # of all bounds


def examine(seed: int, seconds: float) -> dict[str, object]:
    """What came of one application."""
    with tempfile.TemporaryDirectory() as name:
        try:
            found = plan_application(random_application(seed, Path(name)), steps=0).joint
        except EdgewrightError as error:
            return {"seed": seed, "verdict": "not planned", "why": str(error)}
        assert found is not None
        return {"seed": seed, **compared(found.layout, seconds)}


@click.command()
@click.option("--applications", default=200, show_default=True)
@click.option("--first", default=0, show_default=True, help="The first seed.")
@click.option("--seconds", default=60.0, show_default=True, help="For the exact model of one application.")
@click.option("--jobs", default=2, show_default=True)
@click.option("--json", "file", type=click.Path(path_type=Path))
def main(applications: int, first: int, seconds: float, jobs: int, file: Path | None) -> None:
    """Plans applications until as many were compared as are asked for."""
    console, rows, seed = Console(width=120), [], first
    while sum(row["verdict"] != "not planned" for row in rows) < applications:
        batch = range(seed, seed + max(jobs, applications - len(rows)))
        seed = batch.stop
        work = Parallel(n_jobs=jobs, return_as="generator_unordered")(delayed(examine)(one, seconds) for one in batch)
        for row in work:
            rows.append(row)
            if row["verdict"] not in ("true", "not planned"):
                console.print(row, markup=False)
    rows.sort(key=lambda row: row["seed"])
    counts = Counter(str(row["verdict"]) for row in rows)
    checked = [row for row in rows if row["verdict"] != "not planned"]
    table = Table("applications", "said to be least", "false", "bound loose", "undecided", "refused by the judge")
    claimed = sum(bool(row["is_proven"]) for row in checked)
    loose = counts["loose"] / max(1, len(checked))
    table.add_row(
        *map(str, (len(checked), claimed, counts["false"], f"{counts['loose']} ({loose:.1%})", counts["undecided"])),
        str(counts["refused"]),
    )
    console.print(table)
    if file is not None:
        file.write_text(json.dumps({"rows": rows, "counts": counts}, indent=1) + "\n")
    sys.exit(1 if counts["false"] or counts["refused"] or loose >= MOST_LOOSE else 0)


if __name__ == "__main__":
    main()
