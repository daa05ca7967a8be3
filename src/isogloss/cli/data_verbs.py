"""The command that translates corpora and text."""

from pathlib import Path

import typer

from isogloss.cli.options import (
    DATA,
    STANDARD_OUTPUT,
    OutputOptions,
    recipe_table,
    verb,
    with_groups,
)
from isogloss.core.errors import ConfigError
from isogloss.core.languages import canonical_language

data_app = typer.Typer()


@verb(data_app, DATA, "isogloss translate --text english.txt --from en --into sw --model opus-mt-en-sw")
@with_groups
def translate(
    corpus: str = "",
    source: str = "",
    target: str = "",
    text: str = "",
    translator: str = "seq2seq",
    model: str = "",
    split: str = "train",
    examples: int = 0,
    out: Path | None = None,
    data: str | None = None,
    change: list[str] | None = None,
    *,
    output: OutputOptions,
) -> None:
    """Translate a split of a corpus with its labels, or a text line by line.

    Classes are copied, answers and tags are projected, and bitext is scored against its own translations.
    After an interruption the same command continues.
    """
    from isogloss.cli.data import TRANSLATE_FOLDER, print_lines, print_split
    from isogloss.engine.single import SplitToTranslate, TranslationDirection

    for option, language in (("--from", source), ("--into", target)):
        if not language:
            raise ConfigError(f"{option} is missing: give both languages, as in --from en --into sw.")
    if bool(corpus) == bool(text):
        raise ConfigError(
            f"corpus {corpus!r} and --text {text!r}: give either a corpus (xnli) or a text (--text FILE)."
        )
    fields = {"name": ("--translator", translator), "model": ("--model", model)}
    table = recipe_table(change or [], fields)
    direction = TranslationDirection(
        source=canonical_language(source), target=canonical_language(target), table=table
    )
    if text:
        if examples or split != "train" or data:
            raise ConfigError(
                "--split, --examples and --data apply to a corpus, and --text translates the whole file. "
                "Remove them."
            )
        file = None if out == STANDARD_OUTPUT else out
        print_lines(direction, text, target=file, output=output)
        return
    if out == STANDARD_OUTPUT:
        raise ConfigError(
            "--out - needs --text: a translated corpus is written into a folder of runs. "
            "Give a folder, or remove --out."
        )
    request = SplitToTranslate(corpus=corpus, split=split, examples=examples)
    print_split(direction, request, folder=out or TRANSLATE_FOLDER, data=data, output=output)
