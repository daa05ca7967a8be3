"""Render the reports of finished studies from their kept rows, by today's code, into a folder of the site.

    python docs/finished.py build/site/reports

Rows (rows-*.csv) are as they were recorded. Models are those of facts.csv, or in older studies, whose rows
name method, languages and seed, those of the rows. What models read is derived as for old records.
Predictions are not kept, so tests are over seeds alone. docs/studies.md has the answers.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pandas as pd

from isogloss.core.identity import identity
from isogloss.reports.measurements import TESTED, Measurements
from isogloss.reports.next_steps import NextStep
from isogloss.reports.opening import write_opening
from isogloss.reports.page import Page, render
from isogloss.reports.report import all_claims, page_files
from isogloss.reports.run_facts import FACTS, NUMBERS, add_data_read, derive_data_read
from isogloss.reports.sections import SECTIONS, show_section
from isogloss.reports.tables import plain_table
from isogloss.reports.verdicts import judge

RESULTS = Path(__file__).parent / "results"

FRAMES = ("plane", "interpolation", "scores", "deltas")
"""Kinds of rows that reports read. The others are summaries."""

Row = dict[str, object]


@dataclass(frozen=True, kw_only=True)
class Study:
    """A finished study: where its rows are, and what its recipe says that rows do not."""

    folder: str
    title: str
    command: str
    corpora: Mapping[str, str]
    """The corpus of each task."""
    ending: str = ""
    """Suffix of the names of tables in folders with several studies."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """The recipe's names of encoders, by the ids of their runs."""
    methods: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The recipe's names of methods, each with the id of a model."""
    encoders: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Facts of encoders that rows only name, by that name."""


STUDIES = {
    "quickstart": Study(
        folder="quickstart",
        title="Does a tagger trained on one language work in others, how reliably, and why?",
        command="isogloss quickstart",
        corpora={"upos": "ud"},
    ),
    "lottery": Study(
        folder="real_weights/lottery",
        title="What ends the seed lottery of a decoder: an adjustment, or a head of zeros?",
        command="isogloss run docs/results/real_weights/lottery/recipe.toml --data DIR --threads 1 --jobs 1",
        corpora={"upos": "ud"},
        labels={"f5317f25d8b7": "causal", "ed02c78110ea": "zero head"}
        | dict.fromkeys(
            (
                *("b27d6f3a6ef9", "4dd00725709a", "9b43037a96ac", "bf3d9bcbb945"),
                *("0fda3e8d11bc", "f6512987db78", "54f0ea7319e1", "581c28213ef7"),
            ),
            "adjusted",
        )
        | dict.fromkeys(
            (
                *("3dd03cafd908", "c5e8804c13b9", "1c1486e51b44", "738e02f9f6dd"),
                *("c1ef214160c4", "b8ed07c6427d", "4df662006a87", "398ce17d6ad8"),
            ),
            "shuffled",
        ),
        methods={
            "source-only": ["d4f8ac5586c2", "98dfeb1343d2", "601908f0a277"],
            "source-only, 3 epochs": ["a9113870d2ba"],
        },
    ),
    "seeds": Study(
        folder="real_weights/pos",
        title="How reliably does a decoder transfer POS tagging from English?",
        command="isogloss run examples/gemma_pos.toml --data DIR --threads 1 --jobs 1",
        corpora={"upos": "ud"},
        labels={"f5317f25d8b7": "causal", "125307a2ee83": "lifted", "043b485fb22c": "adapted"},
        methods={"source-only": ["cfbce93f6434"], "source-only, LoRA": ["5370ea7a8044"]},
    ),
    "topics": Study(
        folder="real_weights/topics",
        title="Topics in 27 languages: where do they transfer?",
        command="isogloss run examples/gemma_topics.toml --data DIR --threads 1 --jobs 1",
        corpora={"text-classification": "sib200"},
    ),
    "names": Study(
        folder="real_weights/tasks",
        title="Names, inference and trees: what does a decoder carry over from 600 English examples?",
        command="isogloss run examples/gemma_tasks.toml --data DIR --threads 1 --jobs 1",
        corpora={"ner": "wikiann", "nli": "xnli", "parsing": "ud"},
    ),
    "swahili": Study(
        folder="real_weights/mad_x",
        title="Names in Swahili from English labels: do language adapters help?",
        command="isogloss run examples/mad_x_real.toml --data DIR --threads 1 --jobs 1",
        corpora={"ner": "wikiann"},
        labels={"125307a2ee83": "lifted", "52018ad82a8f": "adapters", "f995a1397ad8": "invertible"},
        methods={"task adapter": ["89c5b807f37f"]},
    ),
    "french": Study(
        folder="real_weights/translated",
        ending="-opus",
        title="What do translations bring to POS tagging and NER in French?",
        command="isogloss run examples/translated_real.toml --data DIR --threads 1 --jobs 1",
        corpora={"ner": "wikiann", "upos": "ud"},
        methods={
            "translate-train, projected": ["ce2a789fac6d"],
            "translate-train, teacher": ["abdee51a2c41"],
        },
    ),
    "paths": Study(
        folder="ud_pos",
        title="What lies between a tagger of English and taggers of two languages?",
        command="isogloss run examples/ud_pos.toml --data DIR",
        corpora={"upos": "ud"},
        encoders={"bert 4x256 on en+de+es+fr+ru+vi (5908f8)": {"encoder.languages": "en+de+es+fr+ru+vi"}},
    ),
    "arabic": Study(
        folder="interference/real",
        title="What do English and Arabic lose by sharing an encoder?",
        command="isogloss run examples/interference_real.toml --data DIR",
        corpora={"upos": "udpos", "ner": "wikiann"},
        encoders={
            "joint": {"encoder.languages": "en+ar"},
            "mono-en": {"encoder.languages": "en"},
            "mono-ar": {"encoder.languages": "ar"},
            "adapter": {"encoder.languages": "en+ar", "encoder.modules": "adapter"},
            "meta-adapter": {
                **{"encoder.languages": "en+ar", "encoder.modules": "adapter"},
                "encoder.method": "meta-learning",
            },
        },
    ),
}
"""Studies by the names of their pages."""


@dataclass(frozen=True)
class KeptMeasurements(Measurements):
    """Measurements whose models and rows are kept as tables, without records."""

    facts: pd.DataFrame = field(default_factory=pd.DataFrame)
    rows: dict[str, list[Row]] = field(default_factory=dict)

    @cached_property
    def models(self) -> pd.DataFrame:
        """The facts of every model and encoder, by id."""
        frame = self.facts.reindex(columns=list(dict.fromkeys((*FACTS, *self.facts.columns))))
        texts = [name for name in FACTS if name not in NUMBERS]
        frame = frame.astype(dict.fromkeys(texts, object)).fillna(dict.fromkeys(texts, ""))
        return frame.astype(dict.fromkeys(NUMBERS, "Int64"))

    @property
    def _rows(self) -> dict[str, list[Row]]:
        return self.rows


def kept_study(study: Study) -> KeptMeasurements:
    """Read the kept tables of a study."""
    folder = RESULTS / study.folder
    tables = {
        name: _read(path) for name in FRAMES if (path := folder / f"rows-{name}{study.ending}.csv").is_file()
    }
    facts_file = folder / f"facts{study.ending}.csv"
    labels = dict(study.labels)
    if facts_file.is_file():
        facts = pd.read_csv(facts_file, index_col="id", keep_default_na=False, na_values=[""])
    else:
        facts = _models_of_rows(tables["scores"], study)
        labels |= {_encoder_id(name): name for name in study.encoders}
        tables = {name: _with_ids(name, table) for name, table in tables.items()}
    if "read.labels" not in facts:
        facts = _with_data_read(facts)
    tasks = facts["task"]
    rows = {name: list(_rows_of(table, study, tasks)) for name, table in tables.items()}
    named = {name for of_kind in rows.values() for row in of_kind for name in row}
    return KeptMeasurements(
        runs=[],
        title=study.title,
        command=study.command,
        labels=labels,
        methods=study.methods,
        facts=facts.drop(columns=named, errors="ignore"),
        rows=rows,
    )


def _read(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, keep_default_na=False, na_values=[""])


def _rows_of(table: pd.DataFrame, study: Study, tasks: "pd.Series[str]") -> Iterator[Row]:
    """Yield the rows of a table with the test sets that they are of."""
    about = next(name for name in ("model", "end", "origin") if name in table)
    for row in table.to_dict("records"):
        tested = {**dict.fromkeys(TESTED, ""), "corpus": study.corpora[str(tasks[row[about]])]}
        given = {str(name): value for name, value in row.items() if value == value}  # noqa: PLR0124  (not nan)
        yield {**tested, **{str(name): None for name in row if name not in TESTED}, **given}


def _with_data_read(facts: pd.DataFrame) -> pd.DataFrame:
    """Return the facts of models with what they read, derived from their methods."""
    texts = facts.astype(object).where(facts.notna(), "")
    rows = {
        key: add_data_read(row, derive_data_read(_as_run(row))) if row["kind"] == "model" else row
        for key, row in texts.to_dict("index").items()
    }
    frame = pd.DataFrame.from_dict(rows, orient="index")
    return frame.mask(frame.eq("")).infer_objects()


def _as_run(facts: Mapping[str, object]) -> dict[str, object]:
    """Return what decides about the data that a model read, as a run has it."""
    source = [language for language in str(facts["source"]).split("+") if language]
    target = [language for language in str(facts.get("target", "")).split("+") if language]
    run: dict[str, object] = {"source": source, "target": target, "optimization": {}}
    labels = facts.get("method.labels", "")
    if labels == "teacher" or facts["method"] == "x-mixup":
        run["teacher"] = {**run, "target": [], "method": {"kind": "source-only"}}
    return {**run, "method": {"kind": facts["method"], "labels": labels}}


ID = ("task", "encoder", "method", "source", "target", "seed")


def _models_of_rows(scores: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Return the facts of the models whose scores name method, languages and seed."""
    facts = {}
    for row in scores.astype(object).where(scores.notna(), "").to_dict("records"):
        encoder = _encoder_id(row["encoder"])
        facts[_model_id(row)] = {
            **{name: row[name] for name in ("task", "method", "source", "target", "seed")},
            **{"kind": "model", "way": identity({"method": row["method"]})},
            **{"encoder": encoder, "encoder.run": encoder, "encoder.original": encoder},
            **{"encoder.kind": "pretrain", "encoder.name": row["encoder"], "encoder.seed": 0},
            **study.encoders[row["encoder"]],
        }
    frame = pd.DataFrame.from_dict(facts, orient="index")
    return frame.mask(frame.eq(""))


def _model_id(row: Mapping[str, object], **changes: str) -> str:
    named = {**row, **changes}
    return identity({name: str(named[name]) for name in ID})


def _encoder_id(name: str) -> str:
    return identity({"encoder": name})


def _with_ids(kind: str, table: pd.DataFrame) -> pd.DataFrame:
    """Return rows that name methods, languages and seeds with the ids of their models instead."""
    rows = table.astype(object).where(table.notna(), "").to_dict("records")
    if kind == "scores":
        ids = {"model": [_model_id(row) for row in rows]}
        table = table.assign(**ids, main=True)
    elif kind == "interpolation":
        table = table.assign(**{end: [_end(row, row[end]) for row in rows] for end in ("start", "end")})
    else:  # Both start at the bilingual model.
        methods = {"origin": "bilingual", "first": "source-only", "second": "target-only"}
        ids = {corner: [_end(row, method) for row in rows] for corner, method in methods.items()}
        sides = {"source": "first", "target": "second"}
        sided = {
            f"{name}_{side}": f"{name}_{end}" for name in ("alpha", "norm") for side, end in sides.items()
        }
        table = table.assign(**ids).rename(columns=sided)
    return table.drop(columns=[*ID, "corpus", "seqeval_f1", "word_f1"], errors="ignore")


def _end(row: Mapping[str, object], method: str) -> str:
    """Return the id of the model of a method at the end of a path or in the corner of a plane."""
    sides = {"source-only": {"target": ""}, "target-only": {"source": ""}, "bilingual": {}}
    return _model_id(row, method=method, **sides[method])


def main(folder: str, *names: str) -> None:
    """Write a page for each study, with its figures and tables."""
    for name in names or STUDIES:
        study = STUDIES[name]
        m = kept_study(study)
        page = Page(
            m=m,
            opening=write_opening(m),
            outcomes=judge(all_claims()[0], m),
            sections=[show_section(section, m) for section in SECTIONS],
            runs=plain_table("runs", "Models and encoders", m.facts.reset_index()),
            steps=[
                NextStep(
                    f"Repeat this study. Data, scope and hours are in docs/results/{study.folder}.",
                    study.command,
                )
            ],
            raw={},
        )
        contents = {**dict(page_files(page)), "index.html": render(page).encode()}
        for path, content in contents.items():
            file = Path(folder) / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)


if __name__ == "__main__":
    main(*sys.argv[1:])
