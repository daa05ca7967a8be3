"""Finished studies of the site: their answers, rows and reports."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest

DOCS = Path(__file__).parent.parent / "docs"
PAGE = (DOCS / "studies.md").read_text(encoding="utf-8")


def load_script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


finished_script = load_script("finished")
SECTIONS = {re.findall(r"build/site/reports/(\w+)/", text)[0]: text for text in PAGE.split("\n## ")[1:]}
"""The sections of the page, by the names of their reports."""


def test_the_page_of_studies_has_a_section_with_figure_and_hours_for_each_report() -> None:
    assert list(SECTIONS) == list(finished_script.STUDIES) and 5 <= len(SECTIONS) <= 9
    for text in SECTIONS.values():
        assert "?" in text and "![" in text and re.search(r"minutes|hours", text)


@pytest.mark.parametrize("name", SECTIONS)
def test_an_answer_has_the_numbers_of_its_results_page_and_the_command_of_its_report(name: str) -> None:
    text, study = SECTIONS[name], finished_script.STUDIES[name]
    (answer,) = re.findall(r"\*\*(.+?)\*\*", text, re.S)
    (results,) = re.findall(r"\((results/[\w/]+/README\.md)", text)
    page_numbers = set(re.findall(r"\d+\.\d+", (DOCS / results).read_text(encoding="utf-8")))
    numbers = re.findall(r"\d+\.\d+", answer)
    assert numbers and set(numbers) - page_numbers == set()
    assert f"```\n{study.command}\n```" in text


def test_each_report_is_linked_on_the_site() -> None:
    source = [PAGE]
    load_script("conf").prepare(None, "studies", source)
    links = re.findall(r'<a href="reports/(\w+)/index\.html">', source[0])
    assert links == list(finished_script.STUDIES) and "build/site" not in source[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", SECTIONS)
def test_a_kept_study_has_all_its_rows_and_opens_with_a_sentence(name: str) -> None:
    study = finished_script.STUDIES[name]
    m = finished_script.kept_study(study)
    for kind in m.frames:
        file = DOCS / "results" / study.folder / f"rows-{kind}{study.ending}.csv"
        table = pd.read_csv(file, keep_default_na=False)
        frame = m.frame(kind)
        assert len(frame) == len(table)
        assert sorted(frame["score" if "score" in table else "angle"]) == pytest.approx(
            sorted(table["score" if "score" in table else "angle"].astype(float))
        )
        assert frame["task"].ne("").all() and frame["corpus"].isin(list(study.corpora.values())).all()
    answer = finished_script.write_opening(m).answer
    assert answer != study.title and " reach " in answer


@pytest.mark.slow
def test_inputs_with_translations_are_apart_from_those_without() -> None:
    scores = finished_script.kept_study(finished_script.STUDIES["french"]).frame("scores")
    mixed_scores = scores[
        (scores["method"] == "x-mixup") & (scores["language"] == "fr") & (scores["metric"] == "span_f1")
    ]
    means = 100 * mixed_scores.groupby("inputs")["score"].mean()
    assert means.round(1).to_dict() == {"": 20.3, "paired": 22.4}  # As on the results page.


@pytest.mark.slow
def test_what_models_read_is_derived_from_their_methods() -> None:
    facts = finished_script.kept_study(finished_script.STUDIES["french"]).models
    models = facts[(facts["kind"] == "model") & (facts["task"] == "upos") & (facts["seed"] == 0)]
    models = models.assign(**{"method.labels": models["method.labels"].fillna("")})
    read = models.set_index(["method", "method.labels"])[["read.labels", "read.translations", "read.taught"]]
    assert {key: tuple(row) for key, row in zip(read.index, read.to_numpy(), strict=True)} == {
        ("source-only", ""): ("en", "", ""),
        ("translate-train", ""): ("en", "en-fr", ""),
        ("translate-train", "teacher"): ("en", "en-fr", "yes"),
        ("x-mixup", ""): ("en", "en-fr", "yes"),
    }


@pytest.mark.nightly
@pytest.mark.parametrize("name", SECTIONS)
def test_a_report_is_rendered_with_its_tables(name: str, tmp_path: Path) -> None:
    finished_script.main(str(tmp_path), name)
    page = (tmp_path / name / "index.html").read_text(encoding="utf-8")
    assert finished_script.STUDIES[name].title in page
    assert (tmp_path / name / "tables" / "runs.csv").is_file()
