"""The command that writes scores in formats of public result collections."""

from pathlib import Path

import typer

from isogloss.cli.display import show_line
from isogloss.cli.options import STUDY, verb, with_groups

verbs = typer.Typer()


@verb(verbs, STUDY, "isogloss results runs/quickstart")
@with_groups
def results(
    folder: str,
    form: str = "every-eval-ever",
    to: Path = Path("results"),
    organization: str = "unknown",
    *,
    quiet: bool = False,
) -> None:
    """Write the scores of a folder of runs in formats of public result collections."""
    from isogloss.features.result_formats.exchange import write_results
    from isogloss.study import read

    for path in write_results(read(folder).measurements, form, to, organization=organization):
        if not quiet:
            show_line(path)
