"""The verbs about data: aligning, translating and fetching corpora, and the built-in languages."""

from pathlib import Path
from typing import Annotated

import typer

from isogloss.cli import completion
from isogloss.cli.display import Display, show_line
from isogloss.cli.options import (
    DATA,
    STANDARD_OUTPUT,
    Data,
    Json,
    Output,
    Quiet,
    show_list,
    verb,
    with_groups,
)
from isogloss.core.errors import ConfigError
from isogloss.core.languages import canonical_language

data_app = typer.Typer()
languages_app = typer.Typer(
    help="The built-in languages.", invoke_without_command=True, suggest_commands=False
)


corpus_app = typer.Typer(help="Corpora of your own.", suggest_commands=False)


@verb(corpus_app, DATA, "isogloss corpus check reviews.toml")
@with_groups
def check(
    description: Annotated[str, typer.Argument(help="A TOML file that describes a corpus.")],
    data: Data = None,
    *,
    output: Output,
) -> None:
    """Read a described corpus completely; print counts, labels, first examples and irregularities."""
    from isogloss.cli.data import print_corpus

    print_corpus(Path(description), data=data or "", output=output)


@verb(data_app, DATA, "isogloss align bitext:built-in qaa-qab")
@with_groups
def align(
    bitext: Annotated[str, typer.Argument(help="A corpus of translations, as bitext:bible.")],
    pairs: Annotated[list[str], typer.Argument(help="Pairs of languages, as en-es.")],
    aligner: Annotated[
        str,
        typer.Option("--aligner", help="How; isogloss list aligners.", autocompletion=completion.aligners),
    ] = "fast-align",
    encoder: Annotated[
        str, typer.Option("--encoder", help="The encoder of an aligner that needs one.")
    ] = "shipped",
    split: Annotated[str, typer.Option("--split", help="train, dev or test.")] = "train",
    examples: Annotated[
        int, typer.Option("--examples", min=0, help="Number of examples, drawn at random; 0 for all.")
    ] = 0,
    out: Annotated[Path, typer.Option("--out", help="Folder for the alignments.")] = Path("runs/align"),
    data: Data = None,
    change: Annotated[
        list[str] | None, typer.Option("--set", help="A field of the aligner: --set symmetrization=union.")
    ] = None,
    *,
    output: Output,
) -> None:
    """Align the words of a bitext; print the number of links (and AER, given gold links) and the file."""
    from isogloss.cli.data import print_alignments, recipe_table
    from isogloss.engine.single import BitextToAlign

    request = BitextToAlign(
        bitext=bitext,
        pairs=tuple(map(canonical_language, pairs)),
        aligner=recipe_table(change or [], {"name": ("--aligner", aligner)}),
        encoder=encoder,
        split=split,
        examples=examples,
    )
    print_alignments(request, out=out, data=data, output=output)


@verb(data_app, DATA, "isogloss translate --text english.txt --from en --into sw --model opus-mt-en-sw")
@with_groups
def translate(
    corpus: Annotated[
        str, typer.Argument(help="A corpus, or a TOML file that describes one; none with --text.")
    ] = "",
    source: Annotated[str, typer.Option("--from", help="Language to translate from, as in en.")] = "",
    target: Annotated[str, typer.Option("--into", help="Language to translate into, as in sw.")] = "",
    text: Annotated[
        str,
        typer.Option(
            "--text", metavar="FILE", help="A text file instead of a corpus; - reads standard input."
        ),
    ] = "",
    translator: Annotated[
        str,
        typer.Option(
            "--translator", help="How; isogloss list translators.", autocompletion=completion.translators
        ),
    ] = "seq2seq",
    model: Annotated[
        str, typer.Option("--model", help="Its model: a folder, a run that trained one, or a hub name.")
    ] = "",
    split: Annotated[str, typer.Option("--split", help="train, dev or test.")] = "train",
    examples: Annotated[
        int, typer.Option("--examples", min=0, help="Number of examples, drawn at random; 0 for all.")
    ] = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="Folder of runs, else runs/translate; of --text a file, else (or by -) standard output.",
        ),
    ] = None,
    data: Data = None,
    change: Annotated[
        list[str] | None, typer.Option("--set", help="A field of the translator: --set beams=4.")
    ] = None,
    *,
    output: Output,
) -> None:
    """Translate a split of a corpus with its labels, or a text line by line.

    Classes are copied, answers and tags are projected; bitext is scored against its own translations.
    After an interruption the same command continues.
    """
    from isogloss.cli.data import TRANSLATE_FOLDER, print_lines, print_split, recipe_table
    from isogloss.engine.single import Direction, SplitToTranslate

    for option, language in (("--from", source), ("--into", target)):
        if not language:
            raise ConfigError(f"{option} is missing: give both languages, as in --from en --into sw.")
    if bool(corpus) == bool(text):
        raise ConfigError(
            f"corpus {corpus!r} and --text {text!r}: give one of them, a corpus (xnli) or a text (--text F)."
        )
    named = {"name": ("--translator", translator), "model": ("--model", model)}
    table = recipe_table(change or [], named)
    direction = Direction(source=canonical_language(source), target=canonical_language(target), table=table)
    if text:
        if examples or split != "train" or data:
            raise ConfigError(
                "--split, --examples and --data are for a corpus; --text translates the whole file. "
                "Leave them out."
            )
        file = None if out == STANDARD_OUTPUT else out
        print_lines(direction, text, out=file, output=output)
        return
    if out == STANDARD_OUTPUT:
        raise ConfigError(
            "--out - needs --text: a translated corpus is written into a folder of runs. "
            "Name it, or leave --out out."
        )
    request = SplitToTranslate(corpus=corpus, split=split, examples=examples)
    print_split(direction, request, out=out or TRANSLATE_FOLDER, data=data, output=output)


@verb(data_app, DATA, "isogloss fetch ud --language en,fr,vi --to data")
@with_groups
def fetch(
    corpora: Annotated[
        list[str] | None,
        typer.Argument(
            help="Corpora, or parts of them: xnli, xnli:test, bitext:tatoeba; without any, --language "
            "fetches all corpora in a language.",
            autocompletion=completion.corpora,
        ),
    ] = None,
    folder: Annotated[Path, typer.Option("--to", help="The data folder.")] = Path("data"),
    language: Annotated[
        list[str] | None, typer.Option("--language", help="Only files of these languages: --language de,fr.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the files and their sizes, and stop.")
    ] = False,
    *,
    output: Output,
) -> None:
    """Download the official files of corpora into a data folder and verify them."""
    from isogloss.cli.data import fetch_corpora

    if not corpora and not language:
        raise ConfigError(
            "missing argument 'corpora': name corpora (isogloss fetch sib200), or a language (--language yo) "
            "for all corpora that have it."
        )
    fetch_corpora(corpora or [], folder, language or [], dry_run=dry_run, output=output)


@languages_app.callback()
@with_groups
def languages(context: typer.Context, as_json: Json = False) -> None:
    """List the built-in languages."""
    show_list(context, "languages", as_json=as_json)


@verb(languages_app, DATA, "isogloss languages export built-in")
@with_groups
def export(folder: Annotated[Path, typer.Argument(help="Where the files go.")], quiet: Quiet = False) -> None:
    """Write the corpora of the built-in languages as files in their native formats."""
    from isogloss.data.languages import BuiltInLanguages

    with Display(quiet=quiet) as display:
        BuiltInLanguages().export(folder, display.on_progress)
    show_line(folder)
