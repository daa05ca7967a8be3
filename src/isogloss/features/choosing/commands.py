"""The command that chooses without labels."""

import typer

from isogloss.cli.options import STUDY, OutputOptions, verb, with_groups

verbs = typer.Typer()


@verb(verbs, STUDY, "isogloss choose --source en,ar,hi --language sw")
@with_groups
def choose(
    folder: str | None = None,
    languages: list[str] | None = None,
    source: list[str] | None = None,
    corpus: str = "",
    data: str | None = None,
    encoder: str = "",
    *,
    output: OutputOptions,
) -> None:
    """Rank the models for each language without labels, or decide that the best is not known.

    Where languages of four families have labels, it prints the score to expect with an 80 % interval.
    It also prints the score of the choice in other languages that have labels, and the command that
    predicts with all models together. Labels, where available, show what such choices lose.
    With --source the choice is among source languages, by family, script and what texts have in common, or
    with --encoder by the nearest neighbours of the target's words among those of all sources.
    """
    from isogloss.features.choosing.printing import print_choices
    from isogloss.features.choosing.source_printing import SourceChoice, print_sources

    if source or encoder:
        choice = SourceChoice(source or (), languages or (), corpus, data or "", encoder)
        print_sources(choice, folder, output=output)
    else:
        print_choices(folder, languages or (), output=output)
