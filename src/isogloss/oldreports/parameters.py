"""How large pretrained encoders are: what all their languages share, and what each has for itself."""

from collections.abc import Sequence
from dataclasses import asdict

from isogloss.oldreports.gather import Run, run_rows
from isogloss.oldreports.paths import grouped
from isogloss.oldreports.rows import Parameters
from isogloss.oldreports.tables import Table, cells
from isogloss.oldreports.words import language

_TITLE = "encoder "
"""What stands before the encoder's name in the title of a run that made it."""


def parameter_table(runs: Sequence[Run]) -> list[Table]:
    """Return how many parameters each encoder has, seeds as one; none where no record says it."""
    counted = dict.fromkeys(
        (run.title.removeprefix(_TITLE), tuple(rows))
        for run in runs
        if (rows := run_rows(run, Parameters)[0])
    )
    table = Table(
        name="parameters",
        title="Parameters of the encoders",
        caption=(
            "With their masked-LM heads. A text runs through what is shared and what its own language has, "
            "so that encoders with modules are larger than what reads any one text."
        ),
        header=cells("encoder", "shared", "of each language alone", "that reads a text", "in all"),
        align="lrlrr",
        rows=tuple(cells(name, *_shown(rows)) for name, rows in counted),
        data=[{"encoder": name, **asdict(row)} for name, rows in counted for row in rows],
    )
    return [table] if counted else []


def _shown(rows: Sequence[Parameters]) -> tuple[str, str, str, str]:
    """Return what is shared, what each language has, the most that reads one text, and the sum."""
    shared = sum(row.parameters for row in rows if not row.language)
    own = grouped([row for row in rows if row.language], lambda row: row.parameters)
    each = [
        f"{count:,} ({', '.join(language(row.language) for row in group)})" for count, group in own.items()
    ]
    total = sum(row.parameters for row in rows)
    return f"{shared:,}", "; ".join(each) or "none", f"{shared + max(own, default=0):,}", f"{total:,}"
