"""Judge the published rows again: `python docs/results/recompute.py` writes each study's claims and scores.

The rows of these folders were recorded when records still held names ("x-mixup (mse=0.01) by seq2seq"), and
the records themselves are not kept. So here, and nowhere else, such names are read back into facts; then the
frames, the claims and the tables are those of any folder of runs. Predictions were not kept either: tests are
over seeds alone. What a study did not publish row by row (word distances, gates) cannot be judged again.
"""

import json
import re
import sys
from dataclasses import fields
from pathlib import Path

import pandas as pd

from isogloss.core.identity import identity
from isogloss.core.run_parts import Optimization
from isogloss.methods import METHODS
from isogloss.methods.alignment_loss import AlignmentLoss
from isogloss.reports.measurements import ABOUT, FACTS, FRAMES, TESTED, Measurements
from isogloss.reports.run_facts import CONTINUAL

HERE = Path(__file__).parent

TRAINED = {
    "joint": {},
    "joint-close": {},
    "ffn": {"encoder.modules": "feed-forward"},
    "attention": {"encoder.modules": "attention"},
    "adapter": {"encoder.modules": "adapter"},
    "shared-adapter": {"encoder.modules": "shared-adapter"},
    "meta-adapter": {
        "encoder.modules": "adapter",
        "encoder.method": "meta-learning",
        "encoder.method.inner_step": "plain",
    },
    "meta-preconditioned": {
        "encoder.modules": "adapter",
        "encoder.method": "meta-learning",
        "encoder.method.inner_step": "preconditioned",
    },
}
"""The encoders of examples/interference*.toml."""

ADJUSTED = {"cross-lingual-adjustment": {"word": "average", "pulled": "all"}}
"""How examples/adjust*.toml adjust."""

STUDIES = (
    *("ud_pos", "adjustment/built-in", "adjustment/real", "interference/built-in"),
    *("interference/nli", "interference/qa", "interference/real", "x_mixup/nli", "x_mixup/qa"),
    *(
        "x_mixup/pos_noise",
        "x_mixup/nli_noise",
        "x_mixup/nli_weights",
        "x_mixup/qa_weights",
        "x_mixup/real_pos",
        "x_mixup/real_nli",
    ),
)

SHOWN = (
    *(
        "corpus",
        "treebank",
        "task",
        "mixed",
        "source",
        "split",
        "metric",
        "encoder.label",
        "system",
        "column",
    ),
    *("mean", "std", "units", "against", "difference", "low", "high", "p_units", "p_holm", "smallest_seen"),
)
"""The columns of scores.csv: tests are over seeds (interference: pretraining seeds), Holm's over a table."""

MEASURES = ("seqeval_f1", "word_f1", "em")


def study(name: str) -> Measurements:
    """Return a published study as measurements."""
    folder = HERE / name
    languages = {"interference/real": ("en", "ar")}.get(name, ("qaa", "qad"))
    frames = {frame: pd.DataFrame(columns=_columns(frame)) for frame in FRAMES}
    for path in sorted(folder.glob("*.csv")):
        for stem, (frame, read) in READERS.items():
            if path.stem == stem or path.stem.startswith(f"{stem}-"):
                rows = read(pd.read_csv(path, keep_default_na=False, na_values=[""]))
                facts = pd.DataFrame([_facts(row, languages) for row in rows.to_dict("records")])
                rows = rows.drop(columns=[one for one in facts if one in rows])
                whole = pd.concat([rows.reset_index(drop=True), facts], axis=1)
                frames[frame] = pd.concat([frames[frame], whole]) if len(frames[frame]) else whole
    frames = {name: _typed(frame, name) for name, frame in frames.items()}
    labels = {row: row for frame in frames.values() for row in frame.get("encoder.run", ())}
    return Measurements(runs=[], title=name, labels=labels, _frames=frames)


def _columns(frame: str) -> list[str]:
    others = [f"{one}.{name}" for one in ABOUT.get(frame, ())[1:] for name in ("way", "method")]
    own = (one.name for one in fields(FRAMES[frame]))
    return list(dict.fromkeys(("run", *own, *TESTED, *FACTS, "encoder.run", *others)))


def _typed(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    frame = frame.reindex(columns=list(dict.fromkeys((*_columns(name), *frame.columns)))).reset_index(
        drop=True
    )
    numbers = ["seed", "encoder.seed", "encoder.size"]
    texts = [one for one in (*FACTS, *TESTED) if one not in numbers]
    known = dict.fromkeys(numbers, "Int64") | dict.fromkeys(texts, object)
    return frame.astype(known).fillna(dict.fromkeys(texts, ""))


def _facts(row: dict, languages: tuple[str, str]) -> dict:
    """Read the names of one row: test set, method, encoder."""
    corpus, inputs = _test_set(_text(row, "corpus"))
    found = {**corpus, "inputs": inputs[0], "inputs.translator": inputs[1], "task": _text(row, "task")}
    found |= {"source": _text(row, "source"), "target": _text(row, "target"), "seed": row.get("seed")}
    found |= _way(_text(row, "method")) | _encoder(_text(row, "encoder"), row.get("seed"), languages)
    about = ("task", "corpus", "source", "target", "seed", "way", "encoder", "treebank")
    found["kind"] = "model" if found["method"] else "encoder"
    found["model"] = identity({name: str(found.get(name)) for name in about if name != "corpus"})
    return found


def _test_set(label: str) -> tuple[dict, tuple[str, str]]:
    corpus, _, rest = label.partition(" ")
    bank = rest if rest.isupper() else ""
    how, _, who = ("" if bank else rest).partition(" by ")
    return {"corpus": corpus, "treebank": bank}, (how, json.dumps(_translator(who)) if who else "")


def _translator(text: str) -> dict:
    name, own = _with_fields(text)
    return (
        {"translator": name, **{f"translator.{field}": value for field, value in own.items()}} if name else {}
    )


def _way(label: str) -> dict:
    if not label:
        return {"method": "", "way": ""}
    name, own = _with_fields(label.partition(" by ")[0])
    # Continual learning was a method of its own when these rows were made.
    carrier = CONTINUAL.get(name, name)
    declared = {one.name: one.default for one in fields(METHODS[carrier])}
    values = {**declared, **own} if carrier == name else declared
    # Weights that were not said are the task's own: the paper's α, and 1 for both consistencies.
    found = {
        "method": carrier,
        **{f"method.{field}": value for field, value in values.items() if _plain(value)},
    }
    if carrier != name:
        found |= {f"auxiliary.{field}": value for field, value in own.items()}
        found |= {"auxiliary": AlignmentLoss.name, "auxiliary.method": carrier}
        found["method"] = f"{carrier} + {AlignmentLoss.name}"
    found |= {f"optimization.{one.name}": one.default for one in fields(Optimization) if _plain(one.default)}
    found |= _translator(label.partition(" by ")[2])
    return {**found, "way": identity({key: str(value) for key, value in found.items()})}


def _encoder(label: str, seed: object, languages: tuple[str, str]) -> dict:
    base, *rest = label.split(", ")
    found: dict = {
        "encoder.name": base,
        "encoder.adjusted": "",
        "encoder.modules": "",
        "encoder.kind": "pretrained",
    }
    if base in TRAINED or base.startswith("mono-"):
        own = (base.removeprefix("mono-"),) if base.startswith("mono-") else languages
        own = ("qaa", "qab") if base == "joint-close" else own
        found |= {
            "encoder.kind": "pretrain",
            "encoder.languages": "+".join(own),
            "encoder.method": "masked-language-modelling",
        }
        found |= {
            "encoder.seed": 0 if "en" in languages else seed,
            "encoder.text": "rawtext",
            **TRAINED.get(base, {}),
        }
    found["encoder.original"] = identity(base)
    for words in (one.split(" ") for one in rest):
        size = int(words[2]) if words[2].isdigit() else None
        found |= {
            "encoder.adjusted": words[0],
            **{f"encoder.adjusted.{name}": value for name, value in ADJUSTED.get(words[0], {}).items()},
            "encoder.depth": 1,
            "encoder.pairs": words[2 + (size is not None)],
            "encoder.size": size,
        }
    found["encoder"] = identity(label.rpartition(" (")[0]) if rest else found["encoder.original"]
    return found | {"encoder.run": label}


def _with_fields(text: str) -> tuple[str, dict]:
    name, _, rest = text.partition(" (")
    return name, {key: _value(value) for key, value in re.findall(r"(\w+)=([^,()]+)", rest)}


def _value(text: str) -> object:
    try:
        return json.loads(text.lower())
    except ValueError:
        return text


def _plain(value: object) -> bool:
    return isinstance(value, str | int | float | bool)


def _text(row: dict, name: str) -> str:
    value = row.get(name)
    return "" if pd.isna(value) else str(value)


def _scores(rows: pd.DataFrame) -> pd.DataFrame:
    others = [
        rows.assign(metric=one, score=rows[one], main=False).dropna(subset=["score"])
        for one in MEASURES
        if one in rows
    ]
    return pd.concat([rows.assign(main=True), *others])


def _points(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the points of paths; what were the names of their ends become ids of two models each."""
    names = {"method": rows["end"], **{f"start.{name}": rows["start"] for name in ("method", "way")}}
    which = rows["target"] + " " + rows["seed"].astype(str)
    return rows.assign(**names, start=rows["start"] + " " + which, end=rows["end"] + " " + which)


def _deltas(rows: pd.DataFrame) -> pd.DataFrame:
    renamed = rows.rename(columns={"norm_source": "norm_first", "norm_target": "norm_second"})
    corners = {"first": "source-only", "second": "target-only"}
    facts = {f"{one}.{name}": method for one, method in corners.items() for name in ("method", "way")}
    return renamed.assign(method="bilingual", **facts)


def _in_training(rows: pd.DataFrame) -> pd.DataFrame:
    number = rows.groupby("title")["run"].transform(lambda run: pd.factorize(run)[0])
    return rows.assign(encoder=rows["title"].str.replace("encoder ", ""), seed=number, draw=0)


def _perplexity(rows: pd.DataFrame) -> pd.DataFrame:
    rows = rows.assign(seed=rows.groupby(["encoder", "language"]).cumcount())
    lowest = rows.assign(epoch=rows["lowest_epoch"], score=rows["lowest"])
    return pd.concat([lowest[lowest["epoch"] != rows["epoch"]], rows])


READERS = {
    "rows-scores": ("scores", _scores),
    "rows-interpolation": ("interpolation", _points),
    "rows-deltas": ("deltas", _deltas),
    "cka": ("cka", lambda rows: rows),
    "mixup-ratio": ("mixup-ratio", lambda rows: rows),
    "rows-gradient-conflict": ("gradient-conflict", lambda rows: rows),
    "gradient-conflict-pretraining": ("training-conflict", _in_training),
    "perplexity-by-language": ("perplexity", _perplexity),
}
"""The frame that each file's rows belong to."""


def main() -> None:
    """Write claims.csv and scores.csv of each study, and print the verdicts."""
    from isogloss.reports.report import CLAIMS
    from isogloss.reports.verdicts import judge

    for name in sys.argv[1:] or STUDIES:
        # There a seed is one of pretraining too, which the first paper's spread over seeds is not.
        papers = {4} if name.startswith("interference") else {1, 2, 3, 4}
        m = study(name)
        outcomes = judge([claim for claim in CLAIMS if claim.paper in papers], m)
        table = [{"claim": one.claim.id, "verdict": one.verdict, "found": one.found} for one in outcomes]
        pd.DataFrame(table).to_csv(HERE / name / "claims.csv", index=False)
        for one in outcomes:
            print(f"{name} {one.claim.id} {one.verdict}: {one.found}")
        if (HERE / name / "rows-scores.csv").exists():
            _write_scores(name, m)


def _write_scores(name: str, m: Measurements) -> None:
    """Write every score as mean and standard deviation, with its tests over seeds."""
    from isogloss.reports.scores import score_tables
    from isogloss.reports.tables import to_csv

    data = pd.concat([table.data for table in score_tables(m) if table.name != "significance"])
    shown = [one for one in SHOWN if one in data]
    (HERE / name / "scores.csv").write_text(to_csv(data[shown].round(6)), encoding="utf-8")


if __name__ == "__main__":
    main()
