"""The command that fetches corpora."""

from pathlib import Path

import typer

from isogloss.cli.options import DATA, OutputOptions, verb, with_groups
from isogloss.core.errors import ConfigError

verbs = typer.Typer()


@verb(verbs, DATA, "isogloss fetch ud --language en,fr,vi --to data")
@with_groups
def fetch(
    corpora: list[str] | None = None,
    folder: Path = Path("data"),
    language: list[str] | None = None,
    dry_run: bool = False,
    *,
    output: OutputOptions,
) -> None:
    """Download the official files of corpora into a data folder and verify them."""
    from isogloss.features.fetching.printing import fetch_corpora

    if not corpora and not language:
        raise ConfigError(
            "missing argument 'CORPUS': give corpora (isogloss fetch sib200), or a language (--language yo) "
            "for all corpora that have it."
        )
    fetch_corpora(corpora or [], folder, language or [], dry_run=dry_run, output=output)
