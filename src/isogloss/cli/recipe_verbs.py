"""The verbs about recipes: listing and copying packaged ones, their schema, and writing a first one."""

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any

import typer

from isogloss.cli.display import Display, show_line
from isogloss.cli.options import (
    SETUP,
    HelpfulGroup,
    show_list,
    verb,
    with_groups,
)
from isogloss.core.errors import ConfigError, InputError, check_named
from isogloss.core.languages import canonical_language

if TYPE_CHECKING:
    from isogloss.recipes.starting import Answers

recipe_verbs = typer.Typer()
recipes_app = typer.Typer(
    cls=HelpfulGroup, help="The packaged recipes.", invoke_without_command=True, suggest_commands=False
)

DIALECT = "https://json-schema.org/draft/2020-12/schema"


@recipes_app.callback()
@with_groups
def recipes(context: typer.Context, as_json: bool = False) -> None:
    """List the recipes that come with the package."""
    show_list(context, "recipes", as_json=as_json)


@verb(recipes_app, SETUP, "isogloss recipes copy quickstart --to mine.toml")
@with_groups
def copy(
    name: str,
    to: Path | None = None,
    force: bool = False,
) -> None:
    """Copy a packaged recipe, with its comments, as the start of your recipe.

    The published numbers of a paper are copied with it.
    """
    import tomllib

    from isogloss.recipes.recipe_text import PUBLISHED, packaged_recipes, published_file

    paths = packaged_recipes()
    check_named("recipes copy", "recipe", paths, name)
    file = to or Path(paths[name].name)
    text = paths[name].read_text(encoding="utf-8")
    numbers = tomllib.loads(text).get(PUBLISHED)
    if numbers:
        _refuse_existing(file, force=force)
        _write(file.with_name(numbers), published_file(name, numbers).read_text("utf-8"), force=force)
    _write(file, text, force=force)


@verb(recipe_verbs, SETUP, "isogloss schema recipe > recipe.schema.json")
@with_groups
def schema(
    what: str = "recipe",
) -> None:
    """Print the JSON schema of recipes, or of descriptions of corpora, for editors."""
    show_line(json.dumps(schema_of(what), indent=1, ensure_ascii=False))


def schema_of(subject: str) -> dict[str, object]:
    """Return pydantic's JSON schema of recipes or of corpora, with the help text of every field.

    No table of a recipe requires a field, because fields may come from the recipe it extends, or from
    [pretrain]. The fields of methods, diagnostics and other plug-in types are only checked by a plan.
    """
    from isogloss.recipes.checking import adapter
    from isogloss.recipes.descriptions import Description
    from isogloss.recipes.recipe import Recipe

    kinds: dict[str, type[object]] = {"recipe": Recipe, "corpus": Description}
    check_named("schema", "schema", kinds, subject)
    schema_: dict[str, Any] = {"$schema": DIALECT, **adapter(kinds[subject]).json_schema()}  # type: ignore[arg-type]
    if subject == "recipe":
        schema_["anyOf"] = [{"required": schema_.pop("required")}, {"required": ["extends"]}]
        for table in schema_["$defs"].values():
            table.pop("required", None)
    return schema_


@verb(recipe_verbs, SETUP, "isogloss init mine.toml --from reviews.csv --target sw=swahili.txt")
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
    _refuse_existing(file, force=force)
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
        _write(file, recipe, force=True)
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
    _write(file, _planned_text(answers, file, data), force=force)


def _planned_text(answers: "Answers", file: Path, data: str | None) -> str:
    """Return a recipe that can be planned at the path of its file.

    Raises ConfigError or DataError if it cannot be planned even with dev instead of test splits.
    """
    from isogloss.recipes.starting import first_recipe

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
    from isogloss.recipes.request import unique_keys
    from isogloss.recipes.starting import LabelledFile, with_languages, write_corpus

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
    from isogloss.recipes.starting import Answers

    names = [name for source in GENERATED.values() for name in source.labelled_corpora]
    corpora = [name for name in names if task in CORPORA[name].tasks]
    return Answers(task=task, corpus=corpora[0]) if corpora else Answers(task=task)


def _split_names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _write(file: Path, text: str, *, force: bool) -> None:
    from isogloss.core.atomic_files import write_text

    _refuse_existing(file, force=force)
    write_text(file.parent, file.name, text)
    show_line(file)


def _refuse_existing(file: Path, *, force: bool) -> None:
    if file.is_dir():
        raise ConfigError(
            f"{file}: this is a folder, but a recipe is a file. Give one, as in {file}/my.toml."
        )
    if file.exists() and not force:
        raise ConfigError(f"{file}: this file exists. Choose a new name, or replace it with --force.")


def _is_terminal() -> bool:
    return sys.stdin.isatty()
