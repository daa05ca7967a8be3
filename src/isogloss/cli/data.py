"""Translating corpora or text for the command line."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from isogloss.cli.display import Display, emit, round_fraction, show_line
from isogloss.cli.options import OutputOptions
from isogloss.core.atomic_files import atomic_file, writing

if TYPE_CHECKING:
    from isogloss.engine.single import SplitToTranslate, TranslationDirection


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
