"""A first recipe: planned before it is written, and the corpus that a labelled file becomes for it."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shutil import rmtree
from typing import Any

from isogloss.cli.display import Display
from isogloss.core.atomic_files import write_text
from isogloss.core.errors import ConfigError, InputError
from isogloss.core.languages import canonical_language, check_language
from isogloss.planning.plan import plan_recipe
from isogloss.recipes.request import unique_keys
from isogloss.recipes.starting import Answers, LabelledFile, first_recipe, write_corpus


def planned_text(answers: Answers, file: Path, data: str | None) -> str:
    """Return a recipe that can be planned at the path of its file; ConfigError or DataError if none can."""
    text = first_recipe(answers)
    try:
        _check_plan(text, file, data)
    except InputError as error:  # A test set may have no labels that are public.
        text = first_recipe(replace(answers, split="dev"))
        try:
            _check_plan(text, file, data)
        except InputError:
            raise error from None
    return text


def _check_plan(text: str, file: Path, data: str | None) -> None:
    """Raise ConfigError or DataError unless a recipe can be planned at the path of its file."""
    trial = file.with_name(f".{file.stem}-trial.toml")
    missing = [folder for folder in file.parents if not folder.exists()]
    try:
        write_text(trial, text)
        plan_recipe(str(trial), out=file.parent / "runs", data=data)
    except InputError as error:
        message = str(error).replace(trial.name, file.name)
        raise type(error)(f"init: nothing is written, for it could not be planned: {message}") from error
    finally:
        if trial.is_file():  # Nothing is, below a file.
            trial.unlink()
        for folder in missing:
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()


def recipe_from(
    labelled: Path,
    file: Path,
    usual: Answers,
    *,
    targets: Sequence[str],
    settings: dict[str, Any],
    quiet: bool,
) -> str:
    """Write the splits of a labelled file and their description; print remarks and return a recipe."""
    texts = unique_keys("--target", (target.partition("=")[::2] for target in targets))
    if not texts or not all(texts.values()):
        raise ConfigError("--from: give a file of text for each target, as in --target sw=swahili.txt.")
    paths = {canonical_language(code): Path(path) for code, path in texts.items()}
    for code in (settings["source"], *paths):
        check_language(code, "--source" if code == settings["source"] else "--target")
    if len(paths) < len(texts) or settings["source"] in paths:
        raise ConfigError(
            f"--target {', '.join(texts)}: expected languages other than the source, once each."
        )
    written = write_corpus(LabelledFile(path=labelled, texts=paths, **settings), file.parent)
    answers = replace(
        usual,
        corpus=written.description.relative_to(file.parent).as_posix(),
        source=settings["source"],
        targets=[*paths],
        unlabelled=written.unlabelled,
    )
    try:
        text = planned_text(answers, file, None)
    except BaseException:
        rmtree(written.description.parent)
        raise
    runs = file.parent / "runs"
    steps = [f"isogloss run {file} --out {runs}", f"isogloss choose {runs}"]
    steps += [f"isogloss predict {runs}/ID {path} --out LABELS" for path in [*paths.values()][:1]]
    display = Display(quiet=quiet)
    for line in (*written.remarks, "Next:", *(f"  {step}" for step in steps)):
        display.say(line)
    return text


def shares_of(text: str) -> list[int]:
    """Return the three numbers of --split."""
    shares = [int(part) for part in text.split(",") if part.strip().isdecimal()]
    if len(shares) != 3 or text.count(",") != 2 or 0 in shares:
        raise ConfigError(f"--split {text}: expected three whole numbers above 0, as in --split 80,10,10.")
    return shares
