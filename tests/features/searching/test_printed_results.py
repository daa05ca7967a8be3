"""Results of public functions print in fewer than 300 characters, whatever their size."""

import inspect
from pathlib import Path

import pandas as pd
import pytest
import torch

import isogloss
from any_models import make_model
from isogloss.core.progress import Progress
from isogloss.data.corpora.own import KNOWN
from isogloss.features.searching.search import Search, Trial
from isogloss.reports.report import Report
from isogloss.store.store import Outcome
from isogloss.using.formats import Prediction

MOST = 300
WORDS = [f"word{index}" for index in range(60)]
LABELS = {f"label-number-{index}": 1 / 60 for index in range(60)}
LONG = "x" * 500


def own_corpus(tmp_path):
    rows = {"sw": {"test": [{"text": f"a {label}", "label": label} for label in LABELS]}}
    corpus = isogloss.corpus({"name": "printed", "kind": "text", "labels": list(LABELS)}, rows=rows)
    KNOWN.pop("printed")
    return corpus


def trace(_):
    model, tokenizer = make_model("bert")
    batch = tokenizer(["ka lo"] * 2, return_tensors="pt")
    with torch.no_grad(), isogloss.mixing(model, layer=2, mixed="states") as mixed_mixing:
        model(**batch)
    return mixed_mixing


def compared_files(tmp_path):
    paths = [tmp_path / f"{'long' * 20}{index}.jsonl" for index in range(3)]
    for path in paths:
        lines = [
            f'{{"id": "{index}", "label": "a", "gold": "{"ab"[index % 2]}", "language": "{language}"}}\n'
            for language in ("sw", "fi", "et", "en")
            for index in range(9)
        ]
        path.write_text("".join(lines), encoding="utf-8")
    return isogloss.compare_outputs(paths)


RETURNED = {
    "Advice": lambda _: isogloss.advise("upos", "sw"),
    "AdvisedOption": lambda _: isogloss.advise("upos", "sw").options[0],
    "Gain": lambda _: isogloss.read_gains()[0],
    "Regret": lambda _: isogloss.held_out_regret("upos")[0],
    "States": lambda _: isogloss.states(*make_model("bert"), WORDS),
    "WordLinks": lambda _: isogloss.align([WORDS], [WORDS])[0],
    "SourceCandidate": lambda _: isogloss.rank_sources("sw", ["en", "qqx"])[0],
    "NearestSource": lambda _: isogloss.rank_sources_by_states(torch.eye(2), {"en": torch.ones(9, 2)})[0],
    "LabelConsistency": lambda _: isogloss.consistency(["a", "b", "c"], ["a", "b", "b"]),
    "ExpectedScore": lambda _: isogloss.expected_score("hu", "en", {"en": 0.9, "de": 0.8, "sw": 0.4}),
    "Comparison": lambda _: isogloss.compare([1, 0] * 500, [0, 1] * 500, [1, 1] * 500, margin=0.01),
    "Comparison of seeds": lambda _: isogloss.compare(
        {seed: [1, 0, 1] for seed in range(12)}, {seed: [0, 0, 1] for seed in range(12)}, [1, 0, 0]
    ),
    "Compared": compared_files,
    "MixingTrace": trace,
    "Corpus": own_corpus,
    "built-in corpus": lambda _: isogloss.corpus("ud"),
    "corpus of the catalogue": lambda _: isogloss.corpus("xnli"),
    "Prediction": lambda _: Prediction("label-number-1", LABELS),
    "Prediction of tags": lambda _: Prediction(WORDS, [LABELS] * 60),
    "Prediction alone": lambda _: Prediction(LONG),
    "Outcome": lambda _: Outcome(made=WORDS, done=WORDS, failed=dict.fromkeys(WORDS, LONG)),
    "Progress": lambda _: Progress(LONG, 1, 2, LONG, rows=({"a": LONG},)),
    "Trial": lambda _: Trial(number=0, values=LABELS, score=0.5),
    "Search": lambda _: Search(
        tuple(Trial(number=index, values=LABELS, score=0.5) for index in range(9)), Path(LONG), LONG
    ),
    "Report": lambda _: Report(
        html=Path(LONG), figures=(Path(LONG),) * 9, tables=(), found=LONG, claims=(), runs=LONG, warnings=()
    ),
}
"""By name: what makes a large value of a class that public functions return."""


@pytest.mark.parametrize("name", RETURNED)
def test_a_large_result_prints_in_few_characters(name, tmp_path):
    text = repr(RETURNED[name](tmp_path))
    assert 0 < len(text) < MOST


def test_studies_and_models_print_in_few_characters(study_folder, tiny_runs):
    study = isogloss.read(study_folder("transfer"))
    model = isogloss.load_model(min(tiny_runs.glob("*/model")).parent)
    for value in (study, study.report, study.measurements, study.runs[0], study.records[0], model):
        assert 0 < len(repr(value)) < MOST


RETURNED_CLASSES = {
    *(
        "Advice",
        "AdvisedOption",
        "Gain",
        "Regret",
        "ExpectedScore",
        "LabelConsistency",
        "States",
        "WordLinks",
        "SourceCandidate",
        "NearestSource",
        "Comparison",
        "Compared",
        "MixingTrace",
        "Prediction",
    ),
    *("Outcome", "Progress", "Trial", "Search", "Report", "Study", "Result", "PlannedRun", "Record", "Model"),
}


def test_every_class_that_functions_return_is_printed_here():
    """Examples, errors, tables of recipes and modules print their fields, as what users wrote."""
    classes = {name for name in isogloss.__all__ if inspect.isclass(getattr(isogloss, name))}
    other_names = {name for name in classes if name.endswith(("Error", "Table")) or name in GIVEN}
    assert classes - other_names == RETURNED_CLASSES


GIVEN = {name for name, home in isogloss._HOMES.items() if home.endswith((".examples", ".given_models"))} | {
    "AlignmentLoss",
    "MetaLearner",
    "MixupLoss",
    "Recipe",
}


def test_frames_have_their_facts_beside_the_numbers():
    frame = isogloss.cka(*make_model("bert"), WORDS[:8], WORDS[8:16], on_progress=lambda _: None)
    assert isinstance(frame, pd.Series) and frame.attrs == {"precision": "float32"}
