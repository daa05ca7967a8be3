"""Tables of what the package, the machine or a folder of runs contains."""

import os
import platform
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

from isogloss.core import VERSION
from isogloss.core.errors import ConfigError, StorageError
from isogloss.core.plug_ins import Group, check_any, described, find_plug_in, package_named, plugged_names
from isogloss.core.progress import OnProgress, no_progress, one_by_one
from isogloss.recipes.recipe_text import QUICKSTART

NAME, EXTRA = re.compile(r"[\w.-]+"), re.compile(r"extra == ['\"](.+?)['\"]")
"""In a requirement of a package: the name of the required package, and the extra that needs it."""

DEFAULT_FOLDER = Path(QUICKSTART)
"""Where runs are looked for that no --in names; those of papers in their own folders."""

Rows = Sequence[Sequence[str]]
Listing = tuple[Sequence[str], Rows]


def _corpora(_: Path) -> Listing:
    from isogloss.data import CORPORA
    from isogloss.data.corpora.described import shipped
    from isogloss.data.corpus import Corpus

    def facts(corpus: Corpus) -> Sequence[str]:
        return " ".join(corpus.tasks), corpus.about.licence, corpus.about.url

    rows: list[Sequence[str]] = [(name, *facts(corpus)) for name, corpus in CORPORA.items()]
    for name, path in shipped().items():
        description = tomllib.loads(path.read_text(encoding="utf-8"))
        rows.append((name, f"{description['kind']} (described)", description["licence"], description["url"]))
    rows += _plugged("corpora", CORPORA, (Corpus,), facts, 4)
    return ("corpus", "tasks", "licence", "url"), sorted(rows, key=tuple)


def _languages(_: Path) -> Listing:
    from isogloss.data.languages import LANGUAGES, card

    cards = {code: card(code) for code in LANGUAGES}
    heads = list(next(iter(cards.values())))
    return ["code", *heads], [[code, *(card.get(head, "") for head in heads)] for code, card in cards.items()]


def _language_facts(_: Path) -> Listing:
    from isogloss.core.languages import LanguageFacts, all_language_facts, canonical_language

    rows = [(canonical_language(code), *facts) for code, facts in all_language_facts().items()]
    return ("language", *LanguageFacts._fields), rows


def _tasks(_: Path) -> Listing:
    from isogloss.tasks import ALL_TASKS, Task

    def about(task: Task) -> Sequence[str]:
        return task.metric, " ".join(task.labels) or "(those of the corpus)"

    rows = [(name, *about(task)) for name, task in sorted(ALL_TASKS.items())]
    return ("task", "metric", "labels"), [*rows, *_plugged("tasks", ALL_TASKS, (Task,), about, 3)]


def _encoders(_: Path) -> Listing:
    from isogloss.encoders import FAMILIES

    rows = [("shipped", "the small encoder of the built-in languages")]
    families = [(name, family.about) for name, family in FAMILIES.items()]
    return ("encoder", "what; models of these families are given by folder or hub name"), [*rows, *families]


def _methods(_: Path) -> Listing:
    from isogloss.methods import (
        ADJUSTMENTS,
        AUXILIARY_LOSSES,
        METHODS,
        PEFT,
        PRETRAINING,
        TRANSLATION_TRAINING,
        Adjustment,
        AuxiliaryLoss,
        Method,
        Peft,
        Pretraining,
    )

    kinds = {**METHODS, **AUXILIARY_LOSSES, **PEFT, **PRETRAINING, **ADJUSTMENTS, **TRANSLATION_TRAINING}
    protocols = (Method, AuxiliaryLoss, Peft, Pretraining, Adjustment)
    plugged = _plugged("methods", kinds, protocols, lambda method: (described(method),), 2)
    return ("method", "what"), [*_described(kinds), *plugged]


def _aligners(_: Path) -> Listing:
    from isogloss.aligners import ALIGNERS

    return ("aligner", "what"), _described(ALIGNERS)


def _translators(_: Path) -> Listing:
    from isogloss.translators import TRANSLATORS

    return ("translator", "what"), _described(TRANSLATORS)


def _diagnostics(_: Path) -> Listing:
    from isogloss.diagnostics import DIAGNOSTICS, Diagnostic

    rows = [(name, DIAGNOSTICS[name].subject, summary) for name, summary in _described(DIAGNOSTICS)]
    plugged = _plugged(
        "diagnostics",
        DIAGNOSTICS,
        (Diagnostic,),
        lambda diagnostic: (diagnostic.subject, described(diagnostic)),
        3,
    )
    return ("diagnostic", "measures", "what"), [*rows, *plugged]


def _claims(_: Path) -> Listing:
    from isogloss.reports.report import all_claims

    claims, errors = all_claims()
    rows = [(o.id, o.where, o.says, o.rule) for o in claims] + [("", "", error, "") for error in errors]
    return ("claim", "in the paper", "what", "rule"), rows


def _recipes(_: Path) -> Listing:
    from isogloss.recipes.checking import read_recipe
    from isogloss.recipes.recipe_text import packaged_recipes, recipe_text

    rows = [(name, read_recipe(recipe_text(name)[0]).title) for name in packaged_recipes()]
    return ("recipe", "what it asks"), rows


def _papers(folder: Path) -> Listing:
    from isogloss.recipes.checking import read_recipe
    from isogloss.recipes.recipe_text import (
        PAPERS,
        folder_for,
        packaged_recipes,
        published_file,
        read_published,
        recipe_text,
    )
    from isogloss.store.store import check_there

    if folder != DEFAULT_FOLDER:
        check_there(folder)
    rows: list[Sequence[str]] = []
    for name in packaged_recipes():
        if name.startswith(PAPERS):
            recipe = read_recipe(recipe_text(name)[0])
            numbers = read_published(published_file(name, recipe.published)) if recipe.published else []
            paper, item = name.removeprefix(PAPERS).split("/")
            folder_of_paper = folder_for(name)
            here = _run_here(folder / folder_of_paper.name if folder != DEFAULT_FOLDER else folder_of_paper)
            described = (recipe.title, " ".join(recipe.scale), str(len(numbers) or ""))
            rows.append((paper, item, *described, *here))
    catalogue = packaged_recipes()["quickstart"].parents[2] / PAPERS / "papers.toml"
    for paper, folder_of_paper in tomllib.loads(catalogue.read_text(encoding="utf-8")).items():
        rows.append((paper, "", f"{folder_of_paper['title']} ({folder_of_paper['authors']})", *[""] * 5))
        reasons = folder_of_paper.get("without-recipe", {})
        rows += [(paper, item, f"(no recipe) {reason}", *[""] * 5) for item, reason in reasons.items()]
    heads = ("paper", "item", "title", "scales", "published", "run here at", "finished", "claims")
    return heads, sorted(rows, key=lambda row: (row[0], [_number(part) for part in NUMBERED.split(row[1])]))


NUMBERED = re.compile(r"(\d+)")


def _number(part: str) -> tuple[int, str]:
    return (int(part), "") if part.isdecimal() else (0, part)


def _run_here(folder: Path) -> tuple[str, str, str]:
    """Return the scale of the last run of a recipe in a folder, its finished runs, and its verdicts."""
    from isogloss.core.records import RECORD
    from isogloss.reports import last_verdicts
    from isogloss.store.store import FolderStore

    plan = FolderStore(folder).plan()
    if not plan.runs:
        return "", "", ""
    done = sum((folder / run / RECORD).is_file() for run in plan.runs)
    verdicts = Counter(last_verdicts(folder))
    counts = ", ".join(f"{number} {verdict}" for verdict, number in verdicts.items())
    return plan.scale or "(none)", f"{done} of {len(plan.runs)}", counts


def list_runs(folder: Path, on_progress: OnProgress = no_progress) -> Listing:
    """List the finished runs of a folder; the row of a damaged record has its error."""
    from isogloss.core.records import RECORD, read_record
    from isogloss.store.store import check_there

    check_there(folder)
    rows: list[Sequence[str]] = []
    for path in one_by_one(sorted(folder.glob(f"*/{RECORD}")), "records", on_progress):
        try:
            record = read_record(path.parent)
            rows.append((record.id, record.kind, record.title))
        except StorageError as error:
            rows.append((path.parent.name, "damaged", str(error)))
    return ("run", "kind", "what"), rows


LISTS: dict[str, Callable[[Path], Listing]] = {
    "aligners": _aligners,
    "claims": _claims,
    "corpora": _corpora,
    "diagnostics": _diagnostics,
    "encoders": _encoders,
    "language-facts": _language_facts,
    "languages": _languages,
    "methods": _methods,
    "papers": _papers,
    "recipes": _recipes,
    "runs": list_runs,
    "tasks": _tasks,
    "translators": _translators,
}

OF_A_FOLDER = ("papers", "runs")
"""Lists of what lies in a folder."""


def machine(data: str | None) -> Rows:
    """Return a table of devices, versions, precision and corpora of this machine."""
    import torch

    from isogloss.data import CORPORA
    from isogloss.data.hub import data_source
    from isogloss.engine.devices import described, gpus
    from isogloss.training.precision import faster, matrix_speeds

    device = "cuda" if torch.cuda.is_available() else "cpu"
    speeds = matrix_speeds(device)
    rows = [
        ("isogloss", VERSION),
        ("python", platform.python_version()),
        *((name, _version(name)) for name in ("torch", "transformers", "accelerate")),
        *_extras(),
        *([(str(gpu), described(gpu)) for gpu in gpus()] or [("device", f"CPU, {os.cpu_count()} cores")]),
        ("GFLOP/s, one layer", ", ".join(f"{name} {speed / 1e9:.0f}" for name, speed in speeds.items())),
        ("precision chosen", faster(speeds)),
        ("corpora known", ", ".join(sorted(CORPORA))),
    ]
    if data:
        folder = data_source(data)
        rows.append((f"in {data}", ", ".join(folder.inside() if folder else [])))
    return rows


def _extras() -> Iterator[tuple[str, str]]:
    """Yield each optional extra, except that of developers, with the versions of its packages."""
    extras: dict[str, list[str]] = {}
    with suppress(PackageNotFoundError):
        for required in requires("isogloss") or ():
            name, extra = NAME.match(required), EXTRA.search(required)
            if name and extra and extra[1] != "dev":
                extras.setdefault(extra[1], []).append(f"{name[0]} {_version(name[0])}")
    return ((f"pip install isogloss[{extra}]", ", ".join(packages)) for extra, packages in extras.items())


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _plugged(
    group: Group,
    built_in: Collection[str],
    protocols: Sequence[type[object]],
    columns: Callable[[Any], Sequence[str]],
    width: int,
) -> Iterator[Sequence[str]]:
    """Yield a row for each plug-in, with its package last; of one that cannot be used, why."""
    for name in plugged_names(group):
        try:
            plug_in = find_plug_in(group, name, built_in)
            check_any(plug_in, protocols, name)
            *cells, last = columns(plug_in)
            yield name, *cells, f"{last} [{package_named(group, name)}]"
        except ConfigError as error:
            yield name, *[""] * (width - 2), f"cannot be used: {error}"


def _described(kinds: Mapping[str, type[object]]) -> list[tuple[str, str]]:
    """Return each class's name and the first line of its docstring."""
    return [(name, (kind.__doc__ or "").strip().splitlines()[0]) for name, kind in sorted(kinds.items())]
