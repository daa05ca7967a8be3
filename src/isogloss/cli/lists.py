"""Tables of what the package, the machine or a folder of runs contains."""

import os
import platform
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isogloss.aligners import ALIGNERS
from isogloss.core import VERSION
from isogloss.core.errors import ConfigError, StorageError, missing_feature
from isogloss.core.plug_ins import (
    Group,
    check_any,
    describe_plug_in,
    find_plug_in,
    package_named,
    plugged_names,
)
from isogloss.core.progress import OnProgress, no_progress, one_by_one
from isogloss.core.registry import Registry
from isogloss.diagnostics import DIAGNOSTICS
from isogloss.encoders import FAMILIES
from isogloss.methods import ADJUSTMENTS, AUXILIARY_LOSSES, METHODS, PEFT, PRETRAINING, TRANSLATION_TRAINING
from isogloss.recipes.recipe_text import QUICKSTART
from isogloss.tasks import ALL_TASKS
from isogloss.translators import TRANSLATORS

if TYPE_CHECKING:
    from isogloss.core.records import Record
    from isogloss.data.corpus import Corpus

NAME = re.compile(r"[\w.-]+")
"""The name of the required package, in a requirement."""

EXTRA = re.compile(r"extra == ['\"](.+?)['\"]")
"""The extra that needs a requirement."""

DEFAULT_FOLDER = Path(QUICKSTART)
"""Default folder of runs without --in. The runs of papers are in separate folders."""

METHOD_TABLES: Mapping[str, Registry[type[object]]] = {
    "[[grid.method]]": METHODS,
    "auxiliary": AUXILIARY_LOSSES,
    "peft": PEFT,
    "[encoder.pretrain]": PRETRAINING,
    "[[adjust]]": ADJUSTMENTS,
    "[translate.train]": TRANSLATION_TRAINING,
}
"""Methods, by the part of a recipe that names them."""

OPEN_TABLES: Sequence[Registry[object]] = (ALIGNERS, FAMILIES, TRANSLATORS)
"""Tables to which packages add entries that need no separate columns."""

Rows = Sequence[Sequence[str]]
Listing = tuple[Sequence[str], Rows]


def _corpora(_: Path) -> Listing:
    from isogloss.data.corpora.catalogue import CORPORA
    from isogloss.data.corpora.own import list_shipped

    rows: list[Sequence[str]] = [(name, *corpus_columns(corpus)) for name, corpus in CORPORA.items()]
    rows += [(name, *shipped_columns(name)) for name in list_shipped()]
    rows += _plug_in_rows("corpora", CORPORA, 4)
    return ("corpus", "tasks", "licence", "url"), sorted(rows, key=tuple)


def shipped_columns(name: str) -> Sequence[str]:
    """Return kind, licence and home page of a described corpus of the package."""
    from isogloss.data.corpora.own import find_describer

    facts = find_describer().read_facts(name)
    return f"{facts.kind} (described)", facts.about.licence, facts.about.url


def corpora_in(texts: Sequence[str]) -> Listing:
    """List the corpora in some languages, with their licences and how to get them.

    Raises ConfigError if no corpus can be fetched, or if the feature that fetches corpora is missing.
    """
    from isogloss.core.languages import languages_named
    from isogloss.data.data_sources import CORPUS_PROVIDERS

    for provider in CORPUS_PROVIDERS.values():
        return provider.list_corpora(languages_named(texts))
    raise missing_feature("--language: this", "Remove it.")


def corpus_columns(corpus: "Corpus") -> Sequence[str]:
    """Return tasks, licence and home page of a corpus."""
    return " ".join(corpus.tasks), corpus.about.licence, corpus.about.url


def _languages(_: Path) -> Listing:
    from isogloss.data.generated import generated_languages

    cards = generated_languages().cards()
    heads = list(next(iter(cards.values())))
    return ["code", *heads], [
        [language, *(card.get(head, "") for head in heads)] for language, card in cards.items()
    ]


def _language_facts(_: Path) -> Listing:
    from isogloss.core.languages import LanguageFacts, all_language_facts, canonical_language

    rows = [(canonical_language(language), *facts) for language, facts in all_language_facts().items()]
    return ("language", *LanguageFacts._fields), rows


def _summaries(table: Registry[object]) -> list[Sequence[str]]:
    return [(name, table.read_summary(name)) for name in sorted(table.places)]


def _list_table(
    heads: tuple[str, str], table: Registry[object], *rows: Sequence[str], group: Group | None = None
) -> Callable[[Path], Listing]:
    """Return the function that lists rows, the entries of a table, and the plug-ins of a group.

    Default ``group``: the table's.
    """
    plug_in_group = group or table.group

    def list_entries(_: Path) -> Listing:
        plug_ins = _plug_in_rows(plug_in_group, table.places, 2) if plug_in_group else ()
        return heads, [*rows, *_summaries(table), *plug_ins]

    return list_entries


def _methods(_: Path) -> Listing:
    rows = [
        (name, part, summary) for part, table in METHOD_TABLES.items() for name, summary in _summaries(table)
    ]
    names = [row[0] for row in rows]
    return ("method", "used in", "what"), [*rows, *_plug_in_rows("methods", names, 3)]


def _diagnostics(_: Path) -> Listing:
    rows = [
        (name, DIAGNOSTICS.read_constant(name, "subject"), summary)
        for name, summary in _summaries(DIAGNOSTICS)
    ]
    return ("diagnostic", "measures", "what"), [*rows, *_plug_in_rows("diagnostics", DIAGNOSTICS, 3)]


def _claims(_: Path) -> Listing:
    from isogloss.reports.report import all_claims

    claims, errors = all_claims()
    rows = [(o.id, o.where, o.says, o.rule) for o in claims] + [("", "", error, "") for error in errors]
    return ("claim", "in the paper", "what", "rule"), rows


def _recipes(_: Path) -> Listing:
    from isogloss.recipes.recipe_text import packaged_recipes

    return ("recipe", "question"), [(name, _tables(name)["title"]) for name in packaged_recipes()]


def _tables(name: str) -> Mapping[str, Any]:
    """Return the unchecked tables of a packaged recipe, merged with the tables of the recipe it extends."""
    from isogloss.recipes.recipe_text import EXTENDS, merge_tables, packaged_recipes

    tables = _parse(packaged_recipes()[name])
    return merge_tables(_tables(tables[EXTENDS]), tables) if EXTENDS in tables else tables


@cache
def _parse(path: Path) -> Mapping[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def _papers(folder: Path) -> Listing:
    from isogloss.recipes.recipe_text import (
        PAPERS,
        folder_for,
        packaged_recipes,
        published_file,
        read_published,
    )
    from isogloss.store.store import check_there

    if folder != DEFAULT_FOLDER:
        check_there(folder)
    rows: list[Sequence[str]] = []
    for name in packaged_recipes():
        if name.startswith(PAPERS):
            recipe = _tables(name)
            numbers = read_published(published_file(name, file)) if (file := recipe.get("published")) else []
            paper, item = name.removeprefix(PAPERS).split("/")
            folder_of_paper = folder_for(name)
            local_run = _run_here(
                folder / folder_of_paper.name if folder != DEFAULT_FOLDER else folder_of_paper
            )
            facts = (recipe["title"], " ".join(recipe.get("scale", {})), str(len(numbers) or ""))
            rows.append((paper, item, *facts, *local_run))
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
    from isogloss.store.store import Store

    plan = Store(folder).plan()
    if not plan.runs:
        return "", "", ""
    from isogloss.reports.report import last_verdicts

    finished_count = sum((folder / run / RECORD).is_file() for run in plan.runs)
    verdicts = Counter(last_verdicts(folder))
    counts = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
    return plan.scale or "(none)", f"{finished_count} of {len(plan.runs)}", counts


def list_runs(folder: Path, on_progress: OnProgress = no_progress) -> Listing:
    """List the finished runs of a folder. The row of a damaged record contains its error."""
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


def scores_of(folder: Path, record: "Record", on_progress: OnProgress = no_progress) -> Rows:
    """Return the scores of a model, from the finished measurements of its folder."""
    from isogloss.core.records import RECORD, read_record

    if record.kind != "fine-tune":
        return []
    rows: list[Sequence[str]] = []
    for path in one_by_one(sorted(folder.glob(f"*/{RECORD}")), "records", on_progress):
        with suppress(StorageError):
            measurement = read_record(path.parent)
            if record.id in measurement.needs:
                rows += [
                    [
                        *(str(row.get(name, "")) for name in SCORE_COLUMNS),
                        f"{100 * float(str(row['score'])):.1f}",
                    ]
                    for row in measurement.rows
                    if row.get("model") == record.id and row.get("main") and row.get("score") is not None
                ]
    return rows


SCORE_COLUMNS = ("language", "split", "metric")
"""Columns of a score that `isogloss show` prints before it."""

LISTS: dict[str, Callable[[Path], Listing]] = {
    "aligners": _list_table(("aligner", "what"), ALIGNERS),
    "claims": _claims,
    "corpora": _corpora,
    "diagnostics": _diagnostics,
    "encoders": _list_table(
        ("encoder", "what; models of these families are given by folder or hub name"),
        FAMILIES,
        ("shipped", "The small encoder of the built-in languages."),
    ),
    "language-facts": _language_facts,
    "languages": _languages,
    "methods": _methods,
    "papers": _papers,
    "recipes": _recipes,
    "runs": list_runs,
    "tasks": _list_table(("task", "what"), ALL_TASKS, group="tasks"),
    "translators": _list_table(("translator", "what"), TRANSLATORS),
}

OF_A_FOLDER = ("papers", "runs")
"""Lists of a folder's contents."""

FOR_PROGRAMS = {"claims": ("in the paper", "rule")}
"""Columns of lists that only --json has: with them a list does not fit a screen."""


def machine(data: str | None) -> Rows:
    """Return a table of devices, versions, precision and corpora of this machine."""
    import torch

    from isogloss.data.corpora.catalogue import CORPORA
    from isogloss.data.corpora.own import list_shipped
    from isogloss.data.data_sources import data_source
    from isogloss.engine.devices import describe_device, gpus
    from isogloss.training.precision import faster, matrix_speeds

    device = "cuda" if torch.cuda.is_available() else "cpu"
    speeds = matrix_speeds(device)
    rows = [
        ("isogloss", VERSION),
        ("python", platform.python_version()),
        *((name, _version(name)) for name in ("torch", "transformers", "accelerate")),
        *_extras(),
        *(
            [(str(gpu), describe_device(gpu)) for gpu in gpus()]
            or [("device", f"CPU, {os.cpu_count()} cores")]
        ),
        ("GFLOP/s, one layer", ", ".join(f"{name} {speed / 1e9:.0f}" for name, speed in speeds.items())),
        ("precision chosen", faster(speeds)),
        ("corpora known", ", ".join(sorted({*CORPORA, *list_shipped()}))),
    ]
    if data:
        folder = data_source(data)
        rows.append((f"in {data}", ", ".join(folder.inside() if folder else [])))
    return rows


def _extras() -> Iterator[tuple[str, str]]:
    """Yield each optional extra except the developers', with the versions of its packages."""
    extras: dict[str, list[str]] = {}
    with suppress(PackageNotFoundError):
        for requirement in requires("isogloss") or ():
            name = NAME.match(requirement)
            extra = EXTRA.search(requirement)
            if name and extra and extra[1] != "dev":
                extras.setdefault(extra[1], []).append(f"{name[0]} {_version(name[0])}")
    return ((f"pip install isogloss[{extra}]", ", ".join(packages)) for extra, packages in extras.items())


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _describe(part: Any) -> str:
    return describe_plug_in(part) if isinstance(part, type) else f"Added under the name {part.name}."


def _task_cells(task: Any) -> tuple[str, ...]:
    return (f"{' '.join(task.labels) or 'The labels of a corpus'}; {task.metric}",)


def _diagnostic_cells(diagnostic: Any) -> tuple[str, ...]:
    return (diagnostic.subject, describe_plug_in(diagnostic))


def _method_cells(method: Any) -> tuple[str, ...]:
    return ("a plug-in", describe_plug_in(method))


def _part_cells(part: Any) -> tuple[str, ...]:
    return (_describe(part),)


def _columns(group: Group) -> tuple[Sequence[type[object]], Callable[[Any], Sequence[str]]]:
    """Return the protocols of a group's plug-ins, and the function for their columns after the name."""
    if group == "corpora":
        from isogloss.data.corpus import Corpus

        return (Corpus,), corpus_columns
    if group == "tasks":
        from isogloss.tasks.task import Task

        return (Task,), _task_cells
    if group == "diagnostics":
        from isogloss.diagnostics.setting import Diagnostic

        return (Diagnostic,), _diagnostic_cells
    for table in OPEN_TABLES:
        if table.group == group:
            return (table.import_interface(),), _part_cells
    from isogloss.training.setting import Adjustment, AuxiliaryLoss, Method, Peft, Pretraining

    protocols = (Method, AuxiliaryLoss, Peft, Pretraining, Adjustment)
    return protocols, _method_cells


def _plug_in_rows(group: Group, built_in: Collection[str], width: int) -> Iterator[Sequence[str]]:
    """Yield a row for each plug-in, with its package last, or the reason why it cannot be used."""
    names = plugged_names(group)
    if not names:
        return
    protocols, columns = _columns(group)
    for name in names:
        try:
            plug_in = find_plug_in(group, name, built_in)
            check_any(plug_in, protocols, name)
            *cells, last_cell = columns(plug_in)
            yield name, *cells, f"{last_cell} [{package_named(group, name)}]"
        except ConfigError as error:
            yield name, *[""] * (width - 2), f"cannot be used: {error}"
