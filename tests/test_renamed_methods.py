"""A plug-in's method has the page, tables and baselines that the same method of isogloss has.

Each method is copied under a new name. A study is planned with the copy and with the original, and records
with equal artificial scores are written. The reports are equal once the name is replaced. Claims are
excluded, because they judge only a paper's method.
"""

import re
import shutil
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

import isogloss
from each import each
from isogloss.core.identity import content, identity
from isogloss.core.records import Record, write_record
from isogloss.methods import AUXILIARY_LOSSES, METHODS
from isogloss.planning.plan import Planned, plan_recipe
from isogloss.reports.measurements import Measurements, read_measurements
from isogloss.reports.opening import write_opening
from isogloss.reports.page import Page, render
from isogloss.reports.report import run_table
from isogloss.reports.run_facts import derive_data_read
from isogloss.reports.scores import key_of, scored_sets
from isogloss.reports.sections import SECTIONS, show_section
from isogloss.runs.fine_tune import FineTune
from isogloss.runs.measure import Measure
from isogloss.runs.run import needs
from renamed import SUFFIX, write_copies
from tiny import select_kind

Table = dict[str, object]

ENTRIES: Mapping[str, Table] = {
    "source-only": {},
    "oracle-stopping": {},
    "target-only": {},
    "bilingual": {},
    "few-shot": {"start": "source-only", "epochs": 2},
    "translate-train": {},
    "consistency": {},
    "x-mixup": {},
    "average": {"of": ["source-only"], "size": 0},
    "given": {"model": "given-{seed}"},
    "source-only + alignment-loss": {"auxiliary": {"name": "alignment-loss", "bitext": "bitext"}},
    "translate-train + model-consistency": {"auxiliary": {"name": "model-consistency"}},
    "source-only + multi-task": {"auxiliary": {"name": "multi-task", "tasks": ["ner:wikiann"]}},
}
"""The methods of a study, by their labels: the first word of a label is the name of the method."""

NAMES = (*METHODS, *AUXILIARY_LOSSES)

PEFTS = ("", "lora")
ADJUSTED = ("", "cross-lingual-adjustment")
TRANSLATORS = ("", "built-in")


def recipe(
    copies: Mapping[str, str], renamed: Collection[str], *, peft: str, adjusted: str, translator: str
) -> Table:
    """Return a study of all methods, with copies instead of the renamed ones."""

    def class_of(name: str) -> str:
        return copies[name] if name in renamed else name

    def table(label: str, fields: Table) -> Table:
        auxiliary = dict(fields.get("auxiliary", {}))  # type: ignore[call-overload]
        if auxiliary:
            auxiliary["name"] = class_of(auxiliary["name"])
        return {
            **fields,
            "name": class_of(label.partition(" ")[0]),
            "label": label,
            **({"auxiliary": auxiliary} if auxiliary else {}),
        }

    # Files of translations do not say which words are linked.
    entries = ENTRIES if translator else {**ENTRIES, "consistency": {"weight": 0.0}}
    methods = [table(label, fields) for label, fields in entries.items()]
    if peft:
        trained_labels = ("source-only", "bilingual", "x-mixup")
        kind = {"kind": class_of(peft)}
        methods += [
            {**table(label, ENTRIES[label]), "label": f"{label} + {peft}", "peft": kind}
            for label in trained_labels
        ]
    study: Table = {
        "title": "Names",
        "encoder": "shipped",
        "grid": {
            **{
                "corpus": "ud",
                "task": "upos",
                "source": "qaa",
                "targets": ["qab"],
                "seeds": [0, 1],
            },
            **{"examples": 16, "dev_examples": 8, "optimization": {"epochs": 1}, "method": methods},
        },
        "measure": [
            {"name": "scores", "split": "test", "examples": 8},
            {"name": "interpolation", "between": ["source-only", "bilingual"], "alphas": [0.0, 0.5, 1.0]},
        ],
    }
    if adjusted:
        adjustment = {
            "name": class_of(adjusted),
            "label": "adjusted",
            "bitext": "bitext",
            "pairs": ["qaa-qab"],
        }
        study["adjust"] = [adjustment]
    if translator:
        study["translate"] = {"name": translator}
    return study


def original(text: str) -> str:
    """Return a text with the names of the originals, and without ids and the beginnings of ids."""
    return re.sub(r"\b[0-9a-f]{12}\b|(?<=\()[0-9a-f]{6}(?=\))", "ID", text.replace(SUFFIX, ""))


def rows_of(run: Measure, plan: Planned) -> Iterator[Table]:
    """Yield made-up rows of a measurement: the same for a method and for its copy."""
    labels = {model: label for label, models in plan.methods.items() for model in models}
    models = select_kind(FineTune, run.subjects)
    for language in run.languages:
        facts = [
            (
                labels[identity(model)],
                model.source,
                model.target,
                model.seed,
                plan.encoders.get(model.encoder),
            )
            for model in models
        ]
        draw = Random(f"{run.inputs} {language} {facts}")
        score = {"split": run.split, "metric": "accuracy", "language": language, "examples": 8}
        if run.diagnostic.name == "scores":
            yield {
                **{"model": identity(models[0]), "main": True, "baseline": 0.2, "score": draw.random()},
                **score,
            }
        else:
            ends = {"start": identity(models[0]), "end": identity(models[1]), "part": "all"}
            role = "source" if language == "qaa" else "target"
            del score["examples"]
            for alpha in (0.0, 0.5, 1.0):
                yield {**ends, "role": role, "alpha": alpha, "score": draw.random(), **score}


def write_records(plan: Planned) -> Measurements:
    """Write the records of a plan and read them."""
    plan.write("")
    for run in plan.runs:
        record = Record(
            id=identity(run),
            kind=run.name,
            title=run.title,
            run=content(run),
            needs=tuple(map(identity, needs(run))),
            rows=list(rows_of(run, plan)) if isinstance(run, Measure) else [],
            read=run.data_read,
        )
        (plan.store.root / record.id).mkdir(parents=True, exist_ok=True)
        write_record(plan.store.root / record.id, record)
    return read_measurements(plan.store.root)


def page_of(m: Measurements) -> str:
    """Return everything that a page shows but for claims, and the numbers of its tables."""
    sections = [show_section(section, m) for section in SECTIONS]
    # The recipe has the names of classes, and the teacher of all methods stays the source-only of isogloss.
    runs, m = run_table(replace(m, runs=[])), replace(m, recipe="")
    page = Page(m=m, opening=write_opening(m), outcomes=[], sections=sections, runs=runs, raw={})
    data = [table.data.to_csv() for section in sections for table in section.tables]
    return original("\n".join([render(page), *data]))


def baselines_of(m: Measurements) -> dict[str, str]:
    """Return the baseline of each system of each test set, by name."""
    names = [
        {
            key_of(system): f"{original(system['name'])} {system['encoder.label']}"
            for system in test_set.systems
        }
        for test_set in scored_sets(m)
    ]
    return {
        of_set[key]: of_set[key_of(baseline)]
        for of_set, test_set in zip(names, scored_sets(m), strict=True)
        for key, baseline in test_set.references.items()
    }


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Give a function that measures a study with copies of some methods, once for each choice."""
    folder = tmp_path_factory.mktemp("renamed")
    measurements_by_name = dict[str, Measurements]()
    copies = write_copies(folder)
    for seed in (0, 1):
        shutil.copytree(Path(isogloss.__file__).with_name("shipped"), folder / f"given-{seed}")

    def measurements(
        renamed: Collection[str] = (), *, peft: str = "", adjusted: str = "", translator: str = ""
    ) -> Measurements:
        name = f"runs {' '.join(renamed)} {peft} {adjusted} {translator}"
        if name not in measurements_by_name:
            text = recipe(copies, renamed, peft=peft, adjusted=adjusted, translator=translator)
            measurements_by_name[name] = write_records(plan_recipe(text, out=folder / name))
        return measurements_by_name[name]

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.syspath_prepend(folder)
        yield measurements
    for name in [name for name in sys.modules if name.startswith("own_")]:
        del sys.modules[name]


def assert_equal(measurements: Measurements, expected: Measurements) -> None:
    assert baselines_of(measurements) == baselines_of(expected)
    assert page_of(measurements) == page_of(expected)


@pytest.mark.nightly
@pytest.mark.slow
def test_copies_of_all_methods_have_the_report_of_the_originals(study):
    combination = {"peft": "lora", "adjusted": "cross-lingual-adjustment", "translator": "built-in"}
    expected = study(**combination)
    assert_equal(study((*NAMES, "lora", "cross-lingual-adjustment"), **combination), expected)


@pytest.mark.slow
def test_records_of_earlier_versions_are_read_as_those_of_today(study):
    m = study(peft="lora", adjusted="cross-lingual-adjustment", translator="built-in")
    for run in each(m.finished("fine-tune")):
        read = run.record.read
        earlier = derive_data_read(run.record.run)
        # Back-translations are not known; whether any translations were read decides.
        pairs = tuple(pair for pair in read.translations if pair.count("-") == 1)
        assert replace(read, translations=pairs) == earlier, run.record.title


@pytest.mark.nightly
@pytest.mark.parametrize("translator", TRANSLATORS)
@pytest.mark.parametrize("adjusted", ADJUSTED)
@pytest.mark.parametrize("peft", PEFTS)
def test_copies_in_each_combination_have_the_report_of_the_originals(study, peft, adjusted, translator):
    combination = {"peft": peft, "adjusted": adjusted, "translator": translator}
    names = (*NAMES, *filter(None, (peft, adjusted)))
    assert_equal(study(names, **combination), study(**combination))


@pytest.mark.nightly
@pytest.mark.parametrize("translator", TRANSLATORS)
@pytest.mark.parametrize("name", NAMES)
def test_a_copy_of_one_method_has_the_report_of_the_original(study, name, translator):
    assert_equal(study([name], translator=translator), study(translator=translator))
