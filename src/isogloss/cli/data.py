"""Checking described corpora and translating for the command line."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from isogloss.cli.display import Display, emit, round_fraction, show_line
from isogloss.cli.options import OutputOptions
from isogloss.core.atomic_files import atomic_file, writing
from isogloss.core.errors import DataError, plain
from isogloss.core.progress import Progress

if TYPE_CHECKING:
    from isogloss.data.corpora.described import DescribedCorpus
    from isogloss.engine.single import SplitToTranslate, TranslationDirection
    from isogloss.recipes.described_contents import SplitContents

MAX_ERRORS_SHOWN = 20
"""Maximum number of row errors printed on the terminal. --json prints all."""

MAX_LISTED_LABELS = 6
"""Maximum number of labels that are listed instead of counted."""


TRANSLATE_FOLDER = Path("runs/translate")
"""Default folder of translated corpora."""

COUNT_COLUMNS = ("examples", "translated", "lost", "cuts", "tagged")
TRANSLATION_COLUMNS = ("corpus", "languages", "split", "translator", *COUNT_COLUMNS)
REFERENCE_COLUMNS = ("metric", "score", "bleu")
"""Columns for bitext, which has reference translations."""


def print_split(
    direction: "TranslationDirection",
    request: "SplitToTranslate",
    *,
    folder: Path,
    data: str | None,
    output: OutputOptions,
) -> None:
    """Translate a split, and print its measures and the file of examples."""
    from isogloss.engine.single import translate_split

    with output.progress as display:
        translation = translate_split(
            direction, request, folder=folder, data=data or "", on_progress=display.on_progress
        )
        for warning in translation.warnings:
            display.say(f"isogloss: {warning}")
    if output.as_json:
        emit({**translation.row, "warnings": translation.warnings, "file": str(translation.file)})
        return
    if not output.quiet:
        columns = [name for name in (*TRANSLATION_COLUMNS, *REFERENCE_COLUMNS) if name in translation.row]
        Display().table(columns, [[round_fraction(translation.row[name]) for name in columns]])
    show_line(translation.file)


def print_lines(
    direction: "TranslationDirection", name: str, *, target: Path | None, output: OutputOptions
) -> None:
    """Translate a text line by line, and print the lines or write all of them to a file, or none."""
    from isogloss.cli.using import check_out, open_file
    from isogloss.engine.single import line_translator

    check_out(target, name)
    file = open_file(name)
    with _work_folder(target) as folder, Display(quiet=output.quiet or target is None) as display:
        translate = line_translator(direction, folder, on_progress=display.on_progress)
        lines = (line.rstrip("\r\n") for line in file.read())
        if target is None:
            for line in translate(lines):
                emit({"text": line}) if output.as_json else show_line(line)
            return
        with atomic_file(target.parent, target.name) as stream:
            for line in translate(lines):
                with writing(target):
                    stream.write(f"{line}\n")
    if output.as_json:
        emit({"file": str(target)})
    elif not output.quiet:
        show_line(target)


@contextmanager
def _work_folder(target: Path | None) -> Iterator[Path]:
    """Yield a work folder for translations. Next to an output file, it survives an interruption."""
    if target is None:
        with TemporaryDirectory() as temporary:
            yield Path(temporary)
        return
    folder = target.with_name(f".{target.name}.translating")
    yield folder
    rmtree(folder, ignore_errors=True)


def print_corpus(path: Path, *, data: str, output: OutputOptions) -> None:
    """Print the contents of a described corpus.

    Raises DataError, with the first broken row, if a row does not fit.
    """
    from isogloss.data.corpora.described import list_shipped
    from isogloss.recipes.described_contents import inspect_splits
    from isogloss.recipes.descriptions import describe_corpus

    path = list_shipped().get(str(path), path)
    corpus = describe_corpus(path, data)
    splits: list[SplitContents] = []
    with output.progress as display:
        for split in inspect_splits(corpus, data):
            splits.append(split)
            remark = f"{split.language} {split.split}"
            display.on_progress(Progress(f"reading {corpus.name}", len(splits), len(splits), remark))
            if output.as_json:
                emit(split._asdict())
    errors = [error for split in splits for error in split.errors]
    if not output.as_json and not output.quiet:
        _print_contents(corpus, splits)
    for error in errors[:MAX_ERRORS_SHOWN]:
        output.progress.say(f"isogloss: {error}")
    broken_splits = sum(bool(split.errors) for split in splits)
    if count := sum(not split.is_readable for split in splits):
        raise DataError(f"{path}: {count} of {len(splits)} splits cannot be read. Correct their files.")
    if errors and corpus.bad_rows == "refuse":
        more = (
            f" (--json prints all, the terminal {MAX_ERRORS_SHOWN})" if len(errors) > MAX_ERRORS_SHOWN else ""
        )
        raise DataError(
            f"{path}: {len(errors):,} row{'s do' if len(errors) > 1 else ' does'} not fit, in "
            f"{broken_splits} of {len(splits)} splits{more}. Correct them, or skip such rows "
            f'(bad_rows = "skip").'
        )
    if not splits:
        raise DataError(
            f"{path}: none of its files was found: {', '.join(corpus.paths.values())}. Check the paths, or "
            f"--data."
        )


def _print_contents(corpus: "DescribedCorpus", splits: Sequence["SplitContents"]) -> None:
    kind = f"{corpus.kind}, {corpus.tasks[0]}, read as {corpus.format}"
    rules = f"{len(corpus.labels):,} rules from word to lemma"
    labels = [rules] if corpus.predicts == "lemma" else corpus.labels
    none = "options, counted from 0" if corpus.kind == "choice" else "none"
    show_line(plain(f"{corpus.name}: {kind}. Labels: {', '.join(labels) or none}."))
    rows = [
        (*split[:3], _counts(split.labels), split.repeated, split.trained, split.first[:40])
        for split in splits
    ]
    Display().table(("language", "split", "examples", "labels", "repeated", "trained", "first"), rows)
    for remark in dict.fromkeys(remark for split in splits for remark in split.remarks):
        show_line(plain(remark))


def _counts(labels: Mapping[str, int]) -> str:
    texts = [f"{label} {count}" for label, count in list(labels.items())[:MAX_LISTED_LABELS]]
    return ", ".join(texts) + (
        f" and {len(labels) - MAX_LISTED_LABELS} more" if len(labels) > MAX_LISTED_LABELS else ""
    )
