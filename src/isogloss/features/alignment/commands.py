"""The command that aligns bitext."""

from pathlib import Path

import typer

from isogloss.cli.options import DATA, OutputOptions, recipe_table, verb, with_groups
from isogloss.core.languages import canonical_language

verbs = typer.Typer()


@verb(verbs, DATA, "isogloss align bitext qaa-qab")
@with_groups
def align(
    bitext: str,
    pairs: list[str],
    aligner: str = "fast-align",
    encoder: str = "shipped",
    split: str = "train",
    examples: int = 0,
    out: Path = Path("runs/align"),
    data: str | None = None,
    change: list[str] | None = None,
    *,
    output: OutputOptions,
) -> None:
    """Align the words of a bitext, and print the number of links, the AER given gold links, and the file."""
    from isogloss.features.alignment.printing import print_alignments
    from isogloss.features.alignment.single_run import BitextToAlign

    request = BitextToAlign(
        bitext=bitext,
        pairs=tuple(canonical_language(pair) for pair in pairs),
        aligner=recipe_table(change or [], {"name": ("--aligner", aligner)}),
        encoder=encoder,
        split=split,
        examples=examples,
    )
    print_alignments(request, folder=out, data=data, output=output)
