"""Render the reports of finished studies from their kept rows, by today's code, into a folder of the site.

    python docs/finished.py build/site/reports

A folder of docs/results with facts.csv (models and encoders) and rows-*.csv (measurements, as recorded) is
a study. Predictions are not kept, so tests are over seeds alone. Facts of studies with several methods have
to say what models read (columns read.*); older tables that do not are no page.
"""

import sys
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pandas as pd

from isogloss.reports.measurements import Measurements
from isogloss.reports.next_steps import NextStep
from isogloss.reports.opening import opening_of
from isogloss.reports.page import Page, render
from isogloss.reports.report import all_claims, page_files
from isogloss.reports.run_facts import FACTS, NUMBERS, ZERO_SHOT
from isogloss.reports.sections import SECTIONS, show_section
from isogloss.reports.tables import plain_table
from isogloss.reports.verdicts import judge

RESULTS = Path(__file__).parent / "results"

STUDIES = {
    "quickstart": (
        "quickstart",
        "ud",
        "Does a tagger trained on one language work in others, how reliably, and why?",
    ),
    "real_weights/topics": ("topics", "sib200", "Topics in 27 languages: where do they transfer?"),
}
"""Folders of results, each with the name of its page, its corpus and its title."""

FRAMES = {"plane": "plane", "interpolation": "interpolation", "scores": "scores", "deltas": "deltas"}
"""Kinds of rows that reports are made of, by the end of the file's name."""


@dataclass(frozen=True)
class KeptMeasurements(Measurements):
    """Measurements whose models and rows are kept as tables, without records."""

    facts: pd.DataFrame = field(default_factory=pd.DataFrame)
    rows: dict[str, list[dict[str, object]]] = field(default_factory=dict)

    @cached_property
    def models(self) -> pd.DataFrame:
        """The facts of every model and encoder, by id."""
        frame = self.facts.reindex(columns=list(dict.fromkeys((*FACTS, *self.facts.columns))))
        texts = [name for name in FACTS if name not in NUMBERS]
        frame = frame.astype(dict.fromkeys(texts, object)).fillna(dict.fromkeys(texts, ""))
        return frame.astype(dict.fromkeys(NUMBERS, "Int64"))

    @property
    def _rows(self) -> dict[str, list[dict[str, object]]]:
        return self.rows


def kept_study(folder: Path, corpus: str, title: str) -> KeptMeasurements:
    """Read the kept tables of a study."""
    facts = pd.read_csv(folder / "facts.csv", index_col="id", keep_default_na=False, na_values=[""])
    if "reference" not in facts:  # Kept before reports had this fact.
        facts["reference"] = facts["method"].eq("source-only").map({True: ZERO_SHOT, False: ""})
    rows = {}
    for name in FRAMES:
        if (folder / f"rows-{name}.csv").is_file():
            table = pd.read_csv(folder / f"rows-{name}.csv", keep_default_na=False, na_values=[""])
            tested = {"corpus": corpus, "treebank": "", "inputs": "", "inputs.translator": ""}
            rows[name] = table.assign(**tested).to_dict("records")
    named = {name for of_kind in rows.values() for row in of_kind for name in row}
    return KeptMeasurements(runs=[], title=title, facts=facts.drop(columns=named, errors="ignore"), rows=rows)


def main(folder: str) -> None:
    """Write a page for each study, with its figures and tables."""
    for place, (name, corpus, title) in STUDIES.items():
        m = kept_study(RESULTS / place, corpus, title)
        page = Page(
            m=m,
            opening=opening_of(m),
            outcomes=judge(all_claims()[0], m),
            sections=[show_section(section, m) for section in SECTIONS],
            runs=plain_table("runs", "Models and encoders", m.facts.reset_index()),
            steps=[
                NextStep(
                    "The command of this study and its scope are in "
                    f"docs/results/{place.split('/')[0]}/README.md."
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
