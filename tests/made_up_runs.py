"""Folders of artificial runs: records as from trainings and diagnostics, with invented numbers."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from isogloss.core.atomic_files import write_text
from isogloss.core.identity import identity
from isogloss.core.records import PREDICTIONS, Record, write_record
from isogloss.data.result_files import Predictions, write_predictions

Content = dict[str, Any]

SHIPPED: Content = {"kind": "pretrained", "source": "shipped", "data": "0123456789abcdef"}

OPTIMIZATION = {"kind": "Optimization", "epochs": 1, "learning_rate": 0.001, "batch_size": 16, "limit": 128}

Facts = Mapping[str, Any]

NONE: Facts = MappingProxyType({})


def pretrain(
    languages: Sequence[str] = ("qaa", "qad"), *, seed: int = 0, modules: str = "", **more: Any
) -> Content:
    own_part = {"kind": "Modules", "fields": {"kind": modules, "reduction": 4}} if modules else None
    return {
        "kind": "pretrain",
        "text": ["rawtext"],
        "languages": list(languages),
        "architecture": {"kind": "Architecture", "family": "bert", "layers": 4, "dim": 32},
        "method": {"kind": "masked-language-modelling", "steps": 20, **more},
        "modules": own_part,
        "seed": seed,
    }


def adjust(encoder: Content = SHIPPED, *, pairs: str = "qaa-qad", size: int = 0, seed: int = 0) -> Content:
    aligned_words = {
        "kind": "align",
        "bitext": "bitext",
        "languages": pairs,
        "aligner": {"kind": "fast-align"},
    }
    return {
        "kind": "adjust",
        "encoder": encoder,
        "method": {"kind": "cross-lingual-adjustment", "stay": 1.0, "layer": -1},
        "aligned": [{**aligned_words, "split": "train", "examples": size, "seed": 0}],
        "seed": seed,
    }


def model(
    method: str = "source-only",
    *,
    target: Sequence[str] = (),
    seed: int = 0,
    encoder: Content = SHIPPED,
    optimization: Facts = NONE,
    fields: Facts = NONE,
    **more: Any,
) -> Content:
    """Return a fine-tuning. ``fields`` are the method's, ``more`` what else of it is not as usual."""
    content = {
        "kind": "fine-tune",
        "encoder": encoder,
        "corpus": "ud",
        "task": "upos",
        "method": {"kind": method, **fields},
        "source": [] if method == "target-only" else ["qaa"],
        "target": list(target),
        "optimization": {**OPTIMIZATION, **optimization},
        "treebanks": [],
        "examples": 160,
        "seed": seed,
        "data": "fedcba9876543210",
    }
    return content | more


def measure(diagnostic: str, subjects: Sequence[Content], **more: Any) -> Content:
    options = {"languages": ["qaa", "qad"], "corpus": "ud", "split": "test", "treebanks": [], "examples": 40}
    return {
        "kind": "measure",
        "diagnostic": {"kind": diagnostic},
        "subjects": list(subjects),
        **options,
        **more,
    }


def scores(
    content: Content, values_by_language: Mapping[str, float], *, split: str = "test"
) -> list[dict[str, Any]]:
    options = {
        "model": identity(content),
        "split": split,
        "metric": "accuracy",
        "baseline": 0.2,
        "examples": 40,
    }
    return [
        {**options, "main": True, "language": language, "score": score}
        for language, score in values_by_language.items()
    ]


def path(
    start: Content, end: Content, values_by_alpha: Mapping[float, float], language: str = "qad"
) -> Iterator[dict[str, Any]]:
    options = {"start": identity(start), "end": identity(end), "part": "all", "language": language}
    for alpha, score in values_by_alpha.items():
        role = "source" if language == "qaa" else "target"
        yield {**options, "alpha": alpha, "role": role, "split": "dev", "metric": "accuracy", "score": score}


def write(
    folder: Path,
    content: Content,
    rows: Iterable[Facts] = (),
    *,
    title: str = "",
    warnings: Sequence[str] = (),
    needs: Sequence[str] = (),
) -> str:
    """Write a finished run and return its id."""
    name = identity(content)
    record = Record(
        id=name,
        kind=content["kind"],
        title=title or str(content["kind"]),
        run=content,
        rows=list(rows),
        warnings=tuple(warnings),
        needs=tuple(needs),
    )
    (folder / name).mkdir(parents=True, exist_ok=True)
    write_text(folder / name, "made.json", json.dumps({"seconds": 1.5, "device": "cpu", "threads": 1}))
    write_record(folder / name, record)
    return name


def keep_predictions(
    folder: Path, run: str, values_by_language: Mapping[str, float], *, examples: int = 200
) -> None:
    """Write predictions, this share of them right."""
    write_predictions(
        folder / run / PREDICTIONS,
        [
            Predictions(
                language=language,
                ids=[f"{language}-{index}" for index in range(examples)],
                predicted=["0"] * examples,
                contributions={"accuracy": (_right(share, examples, run), np.ones(examples))},
            )
            for language, share in values_by_language.items()
        ],
    )


def keep_sentences(folder: Path, run: str, sentences: Sequence[Content], *, language: str = "qad") -> None:
    """Write sentences as a path stores them: units, gold labels, and the labels at each α."""
    predicted_texts = [json.dumps(sentence, ensure_ascii=False) for sentence in sentences]
    ids = [str(index) for index in range(len(predicted_texts))]
    kept_predictions = Predictions(language=language, ids=ids, predicted=predicted_texts, contributions={})
    write_predictions(folder / run / PREDICTIONS, [kept_predictions])


def changing_sentence(*words: str) -> Content:
    """Return a sentence whose last word is tagged right from α = 0.5 on."""
    tags = ["NOUN"] * len(words)
    wrong = [*tags[:-1], "VERB"]
    return {"units": words, "gold": tags, "predicted": [[0.0, wrong], [0.5, tags], [1.0, tags]]}


def _right(share: float, examples: int, run: str) -> Any:
    samples = np.random.default_rng(int(run, 16) % 2**32).random(examples)
    return (samples < share).astype(float)


def write_plan(folder: Path, runs: Sequence[str], **options: Any) -> None:
    body = {"title": "A study", "recipe": "title = 'A study'", "command": "isogloss run study.toml"}
    write_text(folder, "plan.json", json.dumps({**body, "labels": {}, **options, "runs": list(runs)}))


def small_study(folder: Path, *, seeds: int = 3) -> list[str]:
    """Write source-only and bilingual models of some seeds, their scores, and the paths between them."""
    names = []
    for seed in range(seeds):
        single_content = model(seed=seed)
        contents = model("bilingual", target=["qad"], seed=seed)
        for item, (source, target) in ((single_content, (0.9, 0.6)), (contents, (0.9, 0.8))):
            epoch = {"epoch": 1, "step": 9, "language": "qaa", "split": "dev", "metric": "accuracy"}
            names.append(write(folder, item, [{**epoch, "score": 0.9, "chosen": True}], title="fine-tuned"))
            rows = scores(item, {"qaa": source + seed / 100, "qad": target + seed / 50})
            names.append(write(folder, measure("scores", [item]), rows))
        points = path(single_content, contents, {0.0: 0.6, 0.5: 0.7, 1.0: 0.8})
        names.append(write(folder, measure("interpolation", [single_content, contents]), points))
    write_plan(folder, names)
    return names
