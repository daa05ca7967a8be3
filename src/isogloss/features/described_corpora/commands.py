"""The commands that check a described corpus, and that write a first recipe."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any

import typer

from isogloss.cli.display import Display
from isogloss.cli.options import DATA, SETUP, HelpfulGroup, OutputOptions, verb, with_groups
from isogloss.cli.recipe_verbs import refuse_existing, write_recipe
from isogloss.core.errors import ConfigError, InputError
from isogloss.core.languages import canonical_language

if TYPE_CHECKING:
    from isogloss.features.described_corpora.starting import Answers

verbs = typer.Typer()
corpus_app = typer.Typer(cls=HelpfulGroup, help="Your own corpora.", suggest_commands=False)
verbs.add_typer(corpus_app, name="corpus", rich_help_panel=DATA)


@verb(corpus_app, DATA, "isogloss corpus check reviews.toml")
@with_groups
def check(
    description: str,
    data: str | None = None,
    *,
    output: OutputOptions,
) -> None:
    """Read a described corpus completely, and print counts, labels, first examples and irregularities."""
    from isogloss.features.described_corpora.printing import print_corpus

    print_corpus(Path(description), data=data or "", output=output)


@verb(verbs, SETUP, "isogloss init mine.toml --from reviews.csv --target sw=swahili.txt")
@with_groups
def init(
    file: Path = Path("recipe.toml"),
    corpus: str = "",
    task: str = "",
    source: str = "",
    target: list[str] | None = None,
    labelled: Path | None = None,
    text: str = "",
    label: str = "",
    column: str = "",
    split: str = "80,10,10",
    seed: int = 0,
    encoder: str = "",
    method: list[str] | None = None,
    seeds: int = 3,
    data: str | None = None,
    force: bool = False,
    quiet: bool = False,
) -> None:
    """Write a first recipe that runs unchanged. On a terminal, missing options are asked for.

    Without options the recipe uses the built-in languages. With --from it uses your own file: equal texts
    stay in one split, columns (also of languages) are detected from the header if it is unambiguous, and
    targets without labels are measured label-free, for isogloss choose.
    """
    refuse_existing(file, force=force)
    usual = replace(_usual_answers(task), seeds=seeds)
    usual = replace(usual, methods=_split_names(",".join(method or ())) or usual.methods)
    asks = _is_terminal() and not quiet

    def answer(value: str, question: str, default: str) -> str:
        return value or (typer.prompt(question, default=default, err=True) if asks else default)

    if (corpus and labelled) or (not labelled and (text or label or column)):
        raise ConfigError("--corpus excludes --from, and --text, --label and --language-column need --from.")
    if labelled:
        columns = {"source": canonical_language(source), "text": text, "label": label, "column": column}
        settings = {**columns, "weights": _shares_of(split), "seed": seed}
        usual = replace(usual, encoder=encoder or usual.encoder)
        targets = _split_names(",".join(target or ()))
        recipe = _write_corpus_recipe(labelled, file, usual, targets=targets, settings=settings, quiet=quiet)
        write_recipe(file, recipe, force=True)
        return
    answers = replace(
        usual,
        corpus=answer(corpus, "Corpus with labels", usual.corpus),
        source=answer(source, "Language to train on", usual.source),
        targets=_split_names(
            answer(",".join(target or ()), "Languages to transfer to", ",".join(usual.targets))
        ),
        encoder=answer(encoder, "Encoder", usual.encoder),
    )
    write_recipe(file, _planned_text(answers, file, data), force=force)


def _planned_text(answers: "Answers", file: Path, data: str | None) -> str:
    """Return a recipe that can be planned at the path of its file.

    Raises ConfigError or DataError if it cannot be planned even with dev instead of test splits.
    """
    from isogloss.features.described_corpora.starting import first_recipe

    text = first_recipe(answers)
    try:
        _check_plan(text, file, data)
    except InputError as error:  # A test set may have no public labels.
        text = first_recipe(replace(answers, split="dev"))
        try:
            _check_plan(text, file, data)
        except InputError:
            raise error from None
    return text


def _check_plan(text: str, file: Path, data: str | None) -> None:
    from isogloss.core.atomic_files import write_text
    from isogloss.planning.plan import plan_recipe

    trial = file.with_name(f".{file.stem}-trial.toml")
    missing = [folder for folder in file.parents if not folder.exists()]
    try:
        write_text(trial.parent, trial.name, text)
        plan_recipe(str(trial), out=file.parent / "runs", data=data)
    except InputError as error:
        message = str(error).replace(trial.name, file.name)
        raise type(error)(
            f"init: nothing was written, because the recipe cannot be planned: {message}"
        ) from error
    finally:
        if trial.is_file():  # If a parent is a file, the trial file could not be written.
            trial.unlink()
        for folder in missing:
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()


def _write_corpus_recipe(
    labelled_path: Path,
    file: Path,
    usual: "Answers",
    *,
    targets: Sequence[str],
    settings: dict[str, Any],
    quiet: bool,
) -> str:
    """Write the splits of a labelled file and their description, print remarks, and return a recipe."""
    from isogloss.features.described_corpora.starting import LabelledFile, with_languages, write_corpus
    from isogloss.recipes.request import unique_keys

    texts = unique_keys("--target", (target.partition("=")[::2] for target in targets))
    labelled_file = with_languages(LabelledFile(path=labelled_path, texts={}, **settings), texts)
    result = write_corpus(labelled_file, file.parent)
    answers = replace(
        usual,
        corpus=result.description.relative_to(file.parent).as_posix(),
        source=labelled_file.source,
        targets=list(labelled_file.texts),
        unlabelled=result.unlabelled,
    )
    try:
        text = _planned_text(answers, file, None)
    except BaseException:
        if result.is_new:
            rmtree(result.description.parent)
        raise
    runs = file.parent / "runs"
    steps = [f"isogloss run {file} --out {runs}", f"isogloss choose {runs}"]
    target, text_file = next(iter(labelled_file.texts.items()))
    text_file = result.description.parent / f"{target}.dev.jsonl" if labelled_file.column else text_file
    steps += [f"isogloss predict {runs}/ID {text_file} --out LABELS"]
    display = Display(quiet=quiet)
    for line in (*result.remarks, "Next:", *(f"  {step}" for step in steps)):
        display.say(line)
    return text


def _shares_of(text: str) -> list[int]:
    shares = [int(part) for part in text.split(",") if part.strip().isdecimal()]
    if len(shares) != 3 or text.count(",") != 2 or 0 in shares:
        raise ConfigError(f"--split {text}: expected three whole numbers above 0, as in --split 80,10,10.")
    return shares


def _usual_answers(task: str) -> "Answers":
    from isogloss.data.corpora.catalogue import CORPORA
    from isogloss.data.generated import GENERATED
    from isogloss.features.described_corpora.starting import Answers

    names = [name for source in GENERATED.values() for name in source.labelled_corpora]
    corpora = [name for name in names if task in CORPORA[name].tasks]
    return Answers(task=task, corpus=corpora[0]) if corpora else Answers(task=task)


def _split_names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _is_terminal() -> bool:
    return sys.stdin.isatty()
