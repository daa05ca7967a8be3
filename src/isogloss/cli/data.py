"""Aligning bitext, and translating corpora or text, for the command line."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from isogloss.cli.display import Display, emit, show_line
from isogloss.cli.options import OutputOptions
from isogloss.core.atomic_files import atomic_file, writing
from isogloss.core.errors import ConfigError
from isogloss.recipes.request import parse_change, unique_keys

if TYPE_CHECKING:
    from isogloss.engine.single import BitextToAlign, SplitToTranslate, TranslationDirection


ALIGNMENT_COLUMNS = ("languages", "split", "aligner", "pairs", "links")
GOLD_COLUMNS = ("gold_pairs", "precision", "recall", "f1", "aer")
"""Columns for bitext with gold links."""

TRANSLATE_FOLDER = Path("runs/translate")
"""Default folder of translated corpora."""

COUNT_COLUMNS = ("examples", "translated", "lost", "cuts", "tagged")
TRANSLATION_COLUMNS = ("corpus", "languages", "split", "translator", *COUNT_COLUMNS)
REFERENCE_COLUMNS = ("metric", "score", "bleu")
"""Columns for bitext, which has reference translations."""


def print_alignments(
    request: "BitextToAlign", *, folder: Path, data: str | None, output: OutputOptions
) -> None:
    """Align bitext, and print the measures and the file of each alignment."""
    from isogloss.engine.single import align_bitext

    with output.progress as display:
        alignments = align_bitext(request, folder=folder, data=data or "", on_progress=display.on_progress)
    if output.as_json:
        for alignment in alignments:
            emit({**alignment.row, "file": str(alignment.file)})
        return
    if not output.quiet:
        columns = [
            name
            for name in (*ALIGNMENT_COLUMNS, *GOLD_COLUMNS)
            if any(name in alignment.row for alignment in alignments)
        ]
        Display().table(
            columns, [[_cell(alignment.row.get(name)) for name in columns] for alignment in alignments]
        )
    for alignment in alignments:
        for warning in alignment.warnings:
            output.warn(warning)
        show_line(alignment.file)


def recipe_table(changes: Sequence[str], fields: Mapping[str, tuple[str, str]]) -> dict[str, object]:
    """Return a recipe's table from ``--set`` changes and from fields with own options: (option, value).

    Raises ConfigError if both set one field.
    """
    table: dict[str, object] = unique_keys("--set", (parse_change(change) for change in changes))
    for field, (option, _) in fields.items():
        if field in table:
            raise ConfigError(f"--set {field}=… and {option} both set this field. Remove one of them.")
    return {field: value for field, (_, value) in fields.items() if value or field == "name"} | table


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
        Display().table(columns, [[_cell(translation.row[name]) for name in columns]])
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


def _cell(value: object) -> object:
    return f"{value:.3f}" if isinstance(value, float) else value
