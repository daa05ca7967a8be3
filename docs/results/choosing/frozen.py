"""Transfer from every language to every other over a frozen encoder: scores for `sources.py`.

    python docs/results/choosing/frozen.py TASK ENCODER DATA STATES

TASK is topics (SIB-200), tags (udpos) or names (WikiANN). The states that the folder ENCODER has for texts in
DATA are written to the folder STATES, a file for each language, and read again from there. A linear head is
trained on each language and scored on all; the scores are in STATES/TASK.csv. No recipe does this: it would
read all texts again for every source.

The layer is the 12th of 18, where translations had been retrieved best before. The head is a multinomial
logistic regression on states that are standardised by the source's mean and deviation; its penalty is the
best of four on a fifth of the source's own training texts. No label of a target is read.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

import isogloss
from isogloss.metrics.labels import label_contributions, span_contributions
from isogloss.training.states import sentence_states, word_states

LAYER = 12
PENALTIES = (1e-3, 1e-2, 1e-1, 1.0)
STEPS = 60


@dataclass(frozen=True)
class Texts:
    """The texts of a task: its corpus and languages, how many are trained on and scored, and their splits."""

    corpus: str
    languages: str
    train: int
    scored: int
    train_splits: tuple[str, ...] = ("train",)
    """The first that a language has is trained on."""
    scored_splits: tuple[str, ...] = ("test",)


TASKS = {
    "topics": Texts(
        "sib200",
        "arb_Arab ayr_Latn ben_Beng bul_Cyrl deu_Latn ell_Grek eng_Latn fin_Latn fra_Latn grn_Latn hau_Latn "
        "hin_Deva ind_Latn jpn_Jpan kor_Hang quy_Latn rus_Cyrl spa_Latn swh_Latn tam_Taml tel_Telu tha_Thai "
        "tur_Latn urd_Arab vie_Latn yor_Latn zho_Hans",
        701,
        204,
    ),
    "tags": Texts("udpos", "ar bg en es fi fr he hi id ja nl ru tr ur vi zh", 200, 100, ("train", "dev")),
    "names": Texts(
        "wikiann", "ar bn de en es fi fr hi id mr ru sw ta tr ur vi zh", 300, 200, scored_splits=("dev",)
    ),
}


def states(task: str, language: str, encoder: Any, data: str, folder: Path) -> dict[str, Any]:
    """Return states and labels of the texts of a language that are trained on and scored, made once."""
    path = folder / f"{task}-{language}.pt"
    if not path.exists():
        examples = {side: read(task, language, side, encoder, data) for side in ("train", "scored")}
        folder.mkdir(parents=True, exist_ok=True)
        torch.save(examples, path)
        print(task, language, flush=True)
    return dict(torch.load(path))


def read(task: str, language: str, side: str, encoder: Any, data: str) -> dict[str, Any]:
    """Return a state for each text or word in one tensor, and the labels of each text."""
    examples = _examples(TASKS[task], language, side, data)
    options: dict[str, Any] = {"layers": (LAYER,), "precision": "bfloat16"}
    if task == "topics":
        vectors = sentence_states(*encoder, [example.text for example in examples], **options)[0]
        return {"states": vectors.half(), "labels": [[example.label] for example in examples]}
    words = word_states(*encoder, [example.words for example in examples], words="last", **options)
    labels = [
        list(example.tags[: sentence.shape[1]]) for example, sentence in zip(examples, words, strict=True)
    ]
    return {"states": torch.cat([sentence[0] for sentence in words]).half(), "labels": labels}


def _examples(texts: Texts, language: str, side: str, data: str) -> list[Any]:
    splits = getattr(texts, f"{side}_splits")
    for split in splits:
        try:
            return isogloss.load_corpus(
                texts.corpus, language, split, data=data, examples=getattr(texts, side)
            )
        except isogloss.IsoglossError:
            if split == splits[-1]:
                raise
    return []


def fit(inputs: Tensor, classes: Tensor, index: int, penalty: float) -> Tensor:
    """Return the weights of a logistic regression of ``number`` classes, the bias in the last column."""
    weights = torch.zeros(index, inputs.shape[1] + 1, requires_grad=True)
    optimizer = torch.optim.LBFGS([weights], max_iter=STEPS, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        value = cross_entropy(inputs @ weights[:, :-1].T + weights[:, -1], classes)
        value = value + penalty / 2 * weights[:, :-1].square().sum() / index
        value.backward()
        return value

    optimizer.step(loss)
    return weights.detach()


def best_fit(inputs: Tensor, classes: Tensor, count: int) -> Tensor:
    """Return the weights of the penalty that is best on every fifth input, trained on all inputs."""
    is_apart = torch.arange(len(inputs)) % 5 == 0

    def right(penalty: float) -> float:
        weights = fit(inputs[~is_apart], classes[~is_apart], count, penalty)
        return float((predict_classes(inputs[is_apart], weights) == classes[is_apart]).double().mean())

    return fit(inputs, classes, count, max(PENALTIES, key=right))


def predict_classes(inputs: Tensor, weights: Tensor) -> Tensor:
    """Return the class of each input."""
    return (inputs @ weights[:, :-1].T + weights[:, -1]).argmax(dim=1)


def score(task: str, gold: Sequence[Sequence[str]], flat: Sequence[str]) -> float:
    """Return span F1 for names, else accuracy, of labels in one list for all texts."""
    labels = iter(flat)
    sentences = [[next(labels) for _ in tags] for tags in gold]
    parts = (span_contributions if task == "names" else label_contributions)(gold, sentences)
    return sum(parts.part) / max(1.0, sum(parts.whole))


def transfer(task: str, data_by_language_by_language: dict[str, dict[str, Any]]) -> pd.DataFrame:
    """Return the score of every source on every language."""
    names = sorted(
        {label for row in data_by_language_by_language.values() for label in chain(*row["train"]["labels"])}
    )
    rows = []
    for source, result in data_by_language_by_language.items():
        inputs = result["train"]["states"].float()
        mean = inputs.mean(dim=0)
        std = inputs.std(dim=0).clamp(min=1e-6)
        classes = torch.tensor([names.index(label) for label in chain(*result["train"]["labels"])])
        weights = best_fit((inputs - mean) / std, classes, len(names))
        for target, other_row in data_by_language_by_language.items():
            guesses = predict_classes((other_row["scored"]["states"].float() - mean) / std, weights)
            value = score(task, other_row["scored"]["labels"], [names[guess] for guess in guesses])
            rows.append({"corpus": TASKS[task].corpus, "language": target, "source": source, "score": value})
    return pd.DataFrame(rows).round(6)


def main() -> None:
    """Write the states that are missing, and the scores."""
    task, encoder_folder, data, target = sys.argv[1:]
    model, tokenizer = isogloss.load_encoder(encoder_folder)
    model.config.num_hidden_layers = LAYER + 1  # Nothing above the layer is needed.
    data_by_language = {
        language: states(task, language, (model, tokenizer), data, Path(target))
        for language in TASKS[task].languages.split()
    }
    transfer(task, data_by_language).to_csv(Path(target) / f"{task}.csv", index=False)


if __name__ == "__main__":
    main()
