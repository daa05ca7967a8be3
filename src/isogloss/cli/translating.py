"""Translating from the command line: a split of a corpus, or text line by line."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory

from isogloss.cli.display import Display, show_line
from isogloss.cli.using import opened
from isogloss.core.errors import ConfigError
from isogloss.core.records import writing
from isogloss.core.whole_files import whole_file
from isogloss.experiments.asking import parse_change
from isogloss.experiments.translating import Direction, SplitWanted, line_translator, translate_split

FOLDER = Path("runs/translate")
"""Where translated corpora go unless --out says otherwise."""

COLUMNS = ("corpus", "languages", "split", "translator", "examples", "translated", "lost", "cuts")
SCORED = ("metric", "score", "bleu")
"""Columns of bitext, which has translations of its own."""


def print_split(
    direction: Direction, wanted: SplitWanted, *, out: Path, data: str | None, quiet: bool, as_json: bool
) -> None:
    """Print what a translation came to, and where its examples are."""
    with Display(quiet=quiet or as_json) as display:
        found = translate_split(direction, wanted, out=out, data=data or "", tell=display.tell)
        for warning in found.warnings:
            display.say(f"isogloss: {warning}")
    if as_json:
        Display(as_json=True).emit({**found.row, "warnings": found.warnings, "file": str(found.file)})
        return
    if not quiet:
        known = [name for name in (*COLUMNS, *SCORED) if name in found.row]
        Display().table(known, [[_cell(found.row[name]) for name in known]])
    show_line(found.file)


def print_lines(direction: Direction, name: str, *, out: Path | None, quiet: bool, as_json: bool) -> None:
    """Print the translation of each line, or write them to a file, which is there whole or not at all."""
    file = opened(name)
    with _work(out) as folder, Display(quiet=quiet or out is None) as display:
        translate = line_translator(direction, folder, tell=display.tell)
        lines = (line.rstrip("\r\n") for line in file.read())
        if out is None:
            for line in translate(lines):
                Display(as_json=True).emit({"text": line}) if as_json else show_line(line)
            return
        with whole_file(out) as written:
            for line in translate(lines):
                with writing(out):
                    written.write(f"{line}\n")
    if as_json:
        Display(as_json=True).emit({"file": str(out)})
    elif not quiet:
        show_line(out)


def translator_table(name: str, model: str, changes: Sequence[str]) -> dict[str, object]:
    """Return a translator as a recipe's [translate] says it."""
    table: dict[str, object] = dict(map(parse_change, changes))
    for key, option in (("name", "--translator"), ("model", "--model")):
        if key in table:
            raise ConfigError(f"--set {key}=…: this is said by {option}. Leave it out.")
    return {"name": name, **({"model": model} if model else {}), **table}


@contextmanager
def _work(out: Path | None) -> Iterator[Path]:
    """Give a folder for what is translated already; beside a file it outlives an interruption."""
    if out is None:
        with TemporaryDirectory() as temporary:
            yield Path(temporary)
        return
    folder = out.with_name(f".{out.name}.translating")
    yield folder
    rmtree(folder, ignore_errors=True)


def _cell(value: object) -> object:
    return f"{value:.3f}" if isinstance(value, float) else value
