"""Lines that users write with their tables, loops and studies. mypy --strict finds nothing."""

from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch.utils.data import DataLoader
from transformers import (
    AutoModel,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

import isogloss


def load(name: str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    return AutoModel.from_pretrained(name), AutoTokenizer.from_pretrained(name)


model, tokenizer = load("x")
frame = pd.read_csv("pairs.csv")
english = frame["en"].tolist()
swahili = frame["sw"].tolist()
layers: pd.Series = isogloss.cka(model, tokenizer, english, swahili, layers=range(3))
best_forward: float = isogloss.retrieval(model, tokenizer, ["a"], ["b"])["forward"].max()
links = isogloss.align(["a b"], ["c d"], model, tokenizer, matching="match")
isogloss.word_distances(model, tokenizer, ["a b"], ["c d"], links, distance="cosine", words="average")
first_model = AutoModelForSequenceClassification.from_pretrained("a")
merged_average = isogloss.average(
    [first_model, first_model], [1.0, 1.0], origin=model, density=0.2, scale=1.0
)
wrapped_states = isogloss.states(torch.nn.DataParallel(model), tokenizer, english)
adapted_value = isogloss.adjust(model, tokenizer, english, swahili)


def score(moved_module: torch.nn.Module) -> dict[str, float]:
    return {"en": float(sum(weight.sum() for weight in moved_module.parameters()))}


curve = isogloss.path(model, adapted_value, score, alphas=np.linspace(0, 1, 5))
isogloss.path(model, adapted_value, lambda moved_value: torch.tensor(1.0))
batches = [tokenizer(["a"], return_tensors="pt")]
loader = DataLoader(torch.utils.data.TensorDataset(torch.zeros(8, 2)))
isogloss.gradient_conflict(first_model, {"en": batches, "sw": loader}, lambda ran, batch: ran(batch).loss)
mixup = isogloss.MixupLoss(first_model)
loss: torch.Tensor = mixup(batches[0], batches[0])
torch.autograd.backward(loss)
meta = isogloss.MetaLearner(first_model, ["en", "sw"])
torch.autograd.backward(meta("en", batches[0], {"en": batches[0]}))
saved_path: Path = meta.save("meta", tokenizer)
alignment = isogloss.AlignmentLoss(first_model, tokenizer, english, swahili)
total: torch.Tensor = loss + alignment()
with isogloss.mixing(model, layer=2, ratio=0.5) as trace:
    ratios: torch.Tensor | None = trace.ratios

comparison = isogloss.compare(pd.Series([1, 0]), torch.tensor([0, 1]), margin=0.01)
if comparison.p_examples < 0.05 or (comparison.p_equivalence or 1.0) < 0.05:
    flips = comparison["difference"] * 100, comparison.gained, comparison.lost
seeds = isogloss.compare({0: [1, 0], 1: [1, 1]}, {0: [1, 0], 1: [1, 1]}, ["a", "b"], metric="accuracy")
file_outputs: isogloss.Compared = isogloss.compare_outputs([Path("a.jsonl"), Path("b.jsonl")], margin=0.01)

study: isogloss.Study = isogloss.read("runs")
table: pd.DataFrame = study.frame("scores")
chosen_folders = [
    run.folder for run in study.runs if run.method == "x-mixup" and "sw" in run.target and run.seed == 0
]
report: isogloss.Report = study.report
records: list[isogloss.Record] = study.records
result: isogloss.Result = isogloss.run("quickstart", out="x", jobs=2, threads=1)
product: list[str] = result.outcome.made
tagger: isogloss.Model[list[str]] = isogloss.load_model(chosen_folders[0])
rows = tagger.evaluate(examples=[{"words": ["a"], "tags": ["DET"]}], languages="sw")
own_corpus = isogloss.corpus({"name": "own", "kind": "text"}, rows={"sw": {"test": frame.to_dict("records")}})
for sentence in isogloss.load_corpus("ud", "en", "train"):
    parts = sentence.words, sentence.tags, sentence.heads
for pair in isogloss.load_corpus("bitext", "en-sw"):
    sides = pair.first, pair.second


def show(progress: isogloss.Progress) -> None:
    assert progress.done <= progress.total, progress.what


encoder, own_tokenizer = isogloss.load_encoder("shipped")
width: int = encoder.config.hidden_size
isogloss.states(encoder, own_tokenizer, english, on_progress=show)
