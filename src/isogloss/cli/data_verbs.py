"""The verbs about data: checking and fetching corpora."""

from pathlib import Path

import typer

from isogloss.cli.options import (
    DATA,
    HelpfulGroup,
    OutputOptions,
    verb,
    with_groups,
)
from isogloss.core.errors import ConfigError

data_app = typer.Typer()
corpus_app = typer.Typer(cls=HelpfulGroup, help="Your own corpora.", suggest_commands=False)


@verb(corpus_app, DATA, "isogloss corpus check reviews.toml")
@with_groups
def check(
    description: str,
    data: str | None = None,
    *,
    output: OutputOptions,
) -> None:
    """Read a described corpus completely, and print counts, labels, first examples and irregularities."""
    from isogloss.cli.data import print_corpus

    print_corpus(Path(description), data=data or "", output=output)


@verb(data_app, DATA, "isogloss fetch ud --language en,fr,vi --to data")
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
    from isogloss.cli.data import fetch_corpora

    if not corpora and not language:
        raise ConfigError(
            "missing argument 'CORPUS': give corpora (isogloss fetch sib200), or a language (--language yo) "
            "for all corpora that have it."
        )
    fetch_corpora(corpora or [], folder, language or [], dry_run=dry_run, output=output)
