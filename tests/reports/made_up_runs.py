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
    own = {"kind": "Modules", "fields": {"kind": modules, "reduction": 4}} if modules else None
    return {
        "kind": "pretrain",
        "text": ["rawtext"],
        "languages": list(languages),
        "architecture": {"kind": "Architecture", "family": "bert", "layers": 4, "dim": 32},
        "method": {"kind": "masked-language-modelling", "steps": 20, **more},
        "modules": own,
        "seed": seed,
    }


def adjust(encoder: Content = SHIPPED, *, pairs: str = "qaa-qad", size: int = 0, seed: int = 0) -> Content:
    aligned = {"kind": "align", "bitext": "bitext", "languages": pairs, "aligner": {"kind": "fast-align"}}
    return {
        "kind": "adjust",
        "encoder": encoder,
        "method": {"kind": "cross-lingual-adjustment", "stay": 1.0, "layer": -1},
        "aligned": [{**aligned, "split": "train", "examples": size, "seed": 0}],
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
    """Return a fine-tuning; ``fields`` are the method's, ``more`` what else of it is not as usual."""
    content = {
        **{"kind": "fine-tune", "encoder": encoder, "corpus": "ud", "task": "upos"},
        "method": {"kind": method, **fields},
        **{"source": [] if method == "target-only" else ["qaa"], "target": list(target)},
        "optimization": {**OPTIMIZATION, **optimization},
        **{"treebanks": [], "examples": 160, "seed": seed, "data": "fedcba9876543210"},
    }
    return content | more


def measure(diagnostic: str, subjects: Sequence[Content], **more: Any) -> Content:
    about = {"languages": ["qaa", "qad"], "corpus": "ud", "split": "test", "treebanks": [], "examples": 40}
    return {
        "kind": "measure",
        "diagnostic": {"kind": diagnostic},
        "subjects": list(subjects),
        **about,
        **more,
    }


def scores(of: Content, by_language: Mapping[str, float], *, split: str = "test") -> list[dict[str, Any]]:
    about = {"model": identity(of), "split": split, "metric": "accuracy", "baseline": 0.2, "examples": 40}
    return [{**about, "main": True, "language": code, "score": score} for code, score in by_language.items()]


def path(
    start: Content, end: Content, by_alpha: Mapping[float, float], language: str = "qad"
) -> Iterator[dict[str, Any]]:
    about = {"start": identity(start), "end": identity(end), "part": "all", "language": language}
    for alpha, score in by_alpha.items():
        role = "source" if language == "qaa" else "target"
        yield {**about, "alpha": alpha, "role": role, "split": "dev", "metric": "accuracy", "score": score}


def write(
    out: Path, content: Content, rows: Iterable[Facts] = (), *, title: str = "", warnings: Sequence[str] = ()
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
    )
    (out / name).mkdir(parents=True, exist_ok=True)
    write_text(out / name, "made.json", json.dumps({"seconds": 1.5, "device": "cpu", "threads": 1}))
    write_record(out / name, record)
    return name


def keep_predictions(out: Path, run: str, by_language: Mapping[str, float], *, examples: int = 200) -> None:
    """Write predictions, this share of them right."""
    write_predictions(
        out / run / PREDICTIONS,
        [
            Predictions(
                language=code,
                ids=[f"{code}-{number}" for number in range(examples)],
                predicted=["0"] * examples,
                contributions={"accuracy": (_right(share, examples, run), np.ones(examples))},
            )
            for code, share in by_language.items()
        ],
    )


def keep_sentences(out: Path, run: str, sentences: Sequence[Content], *, language: str = "qad") -> None:
    """Write sentences as a path stores them: units, gold labels, and the labels at each α."""
    predicted = [json.dumps(sentence, ensure_ascii=False) for sentence in sentences]
    ids = [str(number) for number in range(len(predicted))]
    kept = Predictions(language=language, ids=ids, predicted=predicted, contributions={})
    write_predictions(out / run / PREDICTIONS, [kept])


def changing_sentence(*words: str) -> Content:
    """Return a sentence whose last word is tagged right from α = 0.5 on."""
    tags = ["NOUN"] * len(words)
    wrong = [*tags[:-1], "VERB"]
    return {"units": words, "gold": tags, "predicted": [[0.0, wrong], [0.5, tags], [1.0, tags]]}


def _right(share: float, examples: int, run: str) -> Any:
    drawn = np.random.default_rng(int(run, 16) % 2**32).random(examples)
    return (drawn < share).astype(float)


def write_plan(out: Path, runs: Sequence[str], **about: Any) -> None:
    body = {"title": "A study", "recipe": "title = 'A study'", "command": "isogloss run study.toml"}
    write_text(out, "plan.json", json.dumps({**body, "labels": {}, **about, "runs": list(runs)}))


def small_study(out: Path, *, seeds: int = 3) -> list[str]:
    """Write source-only and bilingual models of some seeds, their scores, and the paths between them."""
    made = []
    for seed in range(seeds):
        alone, both = model(seed=seed), model("bilingual", target=["qad"], seed=seed)
        for one, (source, target) in ((alone, (0.9, 0.6)), (both, (0.9, 0.8))):
            epoch = {"epoch": 1, "step": 9, "language": "qaa", "split": "dev", "metric": "accuracy"}
            made.append(write(out, one, [{**epoch, "score": 0.9, "chosen": True}], title="fine-tuned"))
            rows = scores(one, {"qaa": source + seed / 100, "qad": target + seed / 50})
            made.append(write(out, measure("scores", [one]), rows))
        points = path(alone, both, {0.0: 0.6, 0.5: 0.7, 1.0: 0.8})
        made.append(write(out, measure("interpolation", [alone, both]), points))
    write_plan(out, made)
    return made
