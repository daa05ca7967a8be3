"""The command that advises what to do for a language without labels."""

from pathlib import Path

import typer

from isogloss.cli.options import STUDY, OutputOptions, verb, with_groups

verbs = typer.Typer()


@verb(verbs, STUDY, "isogloss advise --task upos --language sw --hours 2")
@with_groups
def advise(
    runs: str | None = None,
    task: str = "",
    language: str = "",
    hours: float = 1.0,
    minutes: float | None = None,
    encoder: str = "",
    corpus: str = "",
    data: str | None = None,
    evidence: Path | None = None,
    against: str = "source-only",
    *,
    output: OutputOptions,
) -> None:
    """Advise what to do for a language without labels in some hours, or say that it is not known.

    Options are annotation, an adjusted encoder, another source language, averages of seeds, translations
    and others. They are ranked by what they gained in other languages, with the interval of the next
    language and their hours. It prints what would change the advice, and what such advice lost in
    languages that were held out, next to always the same option.
    """
    from isogloss.features.advising.printing import AdviceRequest, print_advice

    request = AdviceRequest(
        runs=runs,
        task=task,
        language=language,
        hours=hours,
        minutes=minutes,
        encoder=encoder,
        corpus=corpus,
        data=data or "",
        evidence=evidence,
        against=against,
    )
    print_advice(request, output=output)
