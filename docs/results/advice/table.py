"""Write the evidence of advice: `python docs/results/advice/table.py [RUNS ...]`.

With RUNS, the folders of tags.toml, names.toml and topics.toml (also with --scale source), the scores of
their records replace those in rows.csv. gains.csv follows from rows.csv and the kept rows of other pages;
the package has a copy of it (src/isogloss/features/advising). regret.csv has what advice from it lost in
languages that were held out.
"""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

import isogloss
from isogloss.core.languages import canonical_language
from isogloss.features.advising.evidence import Gain
from isogloss.features.advising.measured_gains import Costs
from isogloss.reports.frames import list_rows

HERE = Path(__file__).parent
RESULTS = HERE.parent
GEMMA = "gemma-3-270m"
BASE = "source-only"
KEYS = ["task", "option", "source", "language", "seed"]
TASKS = {"upos": "tags", "ner": "names", "text-classification": "topics"}
BUDGETS = {"no label": 0, "20 labels": 20, "100 labels": 100}
"""Labels of the budgets of the plan."""

ANY_HOURS = 1000.0

OTHER_SOURCES = {"upos": "other source (Swahili)", "ner": "other source (Russian)"}
OTHER_SOURCES |= {"text-classification": "other source (Spanish)"}
NEEDS = {
    "annotate 20": "20 labelled examples of the target",
    "annotate 100": "100 labelled examples of the target",
    "zero head": "",
    "adjust": "1,200 translated verses of any languages",
    "average of 3": "three seeds",
    "translate": "a translator into the target",
    "source by rule": "as many labels of the nearest language",
    **dict.fromkeys(OTHER_SOURCES.values(), "as many labels of that language"),
    "contrast": "translated sentences",
    "self-training": "unlabelled text of the target",
    "translate-train": "a perfect translator into the target",
    "consistency": "a perfect translator into the target",
    "flare": "a perfect translator into the target",
    "lora on translations": "a perfect translator into the target",
}
SHIPPED_HOURS = 0.01
"""Hours of a model of the shipped encoder, some 20 to 40 seconds."""

LABELS = {"annotate 20": 20, "annotate 100": 100}

LOTTERY = {("causal", BASE): BASE, ("causal", "zero head"): "zero head", ("adjusted", BASE): "adjust"}
"""Arms of the seed lottery, by encoder and method."""


def write_rows(runs: str) -> None:
    """Merge the scores and hours of a folder of runs into rows.csv."""
    measurements = isogloss.read(runs).measurements
    costs = Costs(measurements)
    frame = measurements.frame("scores")
    frame = frame[frame["main"].astype(bool)]
    rows = frame.assign(
        option=[name_option(row) for row in list_rows(frame)],
        score=(100 * frame["score"]).round(4),
        hours=[round(costs.hours(model), 4) for model in frame["model"]],
    )
    is_measured = (rows["target"] == "") | (rows["target"] == rows["language"])
    rows = rows[is_measured][[*KEYS, "score", "hours"]]
    path = HERE / "rows.csv"
    old_rows = [pd.read_csv(path)] if path.exists() else []
    all_rows = pd.concat([*old_rows, rows]).drop_duplicates(KEYS, keep="last").sort_values(KEYS)
    all_rows.to_csv(path, index=False)


def name_option(row: Mapping[str, Any]) -> str:
    """Name the option of a score by the method, its shots, the head and the encoder."""
    if row["method"] == "few-shot":
        return f"annotate {int(row['method.shots'])}"
    if row["method"] == "average":
        return "average of 3"
    if row["encoder.adjusted"]:
        return "adjust"
    return "zero head" if row.get("optimization.head_weights") == "zeros" else BASE


def read_studies() -> Iterator[pd.DataFrame]:
    """Yield scores in percent: this study, the seed lottery, translations, and built-in languages."""
    rows = pd.read_csv(HERE / "rows.csv")
    from_other = rows["source"] != "en"
    rows["option"] = rows["option"].where(~from_other, rows["task"].map(OTHER_SOURCES))
    rows = rows[(rows["language"] != "en") & (rows["language"] != rows["source"])]
    # A seed of an option counts if it was scored in every target.
    targets = rows.groupby(["task", "option", "seed"])["language"].transform("nunique")
    all_targets = targets.groupby([rows["task"], rows["option"]]).transform("max")
    yield rows[targets == all_targets].assign(encoder=GEMMA)
    lottery = pd.read_csv(RESULTS / "real_weights/lottery/rows.csv")
    arms = pd.Series(list(zip(lottery["encoder"], lottery["method"], strict=True)), index=lottery.index)
    lottery = lottery.assign(option=arms.map(LOTTERY), score=100 * lottery["score"], encoder=GEMMA)
    yield lottery[lottery["option"].notna() & (lottery["language"] != "en")]
    folder = RESULTS / "real_weights/translated"
    for name in ("gemma", "nli"):
        scores = pd.read_csv(folder / f"rows-scores-{name}.csv")
        facts = pd.read_csv(folder / f"facts-{name}.csv")[["id", "task", "seed", "method"]]
        scores = scores[scores["main"]].merge(facts, left_on="model", right_on="id")
        option = scores["method"].map({BASE: BASE, "translate-train": "translate"})
        scores = scores.assign(option=option, score=100 * scores["score"], encoder=GEMMA)
        # Without translated inputs: models score the French test set itself.
        yield scores[(scores["language"] == "fr")].drop_duplicates(["option", "seed"])
    baselines = pd.read_csv(RESULTS / "baselines/scores.csv")
    task = baselines["study"].map({study: task for task, study in TASKS.items()})
    baselines = baselines.assign(task=task, option=baselines["arm"], score=100 * baselines["score"])
    yield baselines[(baselines["language"] != "qaa") & (baselines["arm"] != "longer")].assign(
        encoder="shipped"
    )


def list_gains(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the mean gain over seeds of each option and language, paired by seed."""
    base = scores[scores["option"] == BASE].set_index(["task", "language", "seed"])["score"]
    options = scores[scores["option"] != BASE].set_index(["task", "language", "seed"])
    base_scores = base.reindex(options.index)
    # An average is compared with the mean of its models.
    means = base.groupby(["task", "language"]).mean()
    places = options.index.droplevel("seed")
    base_scores = base_scores.where(options["option"] != "average of 3", means.reindex(places).to_numpy())
    table = options.assign(gain=options["score"] - base_scores).dropna(subset=["gain"]).reset_index()
    keys = ["task", "encoder", "option", "language"]
    return table.groupby(keys).agg(gain=("gain", "mean"), seeds=("seed", "nunique")).reset_index()


def list_frozen() -> pd.DataFrame:
    """Return the gains of the rule's source over English, with frozen states of Gemma."""
    rows = []
    for task, name, english in (("upos", "tags", "en"), ("text-classification", "topics", "eng_Latn")):
        table = pd.read_csv(RESULTS / f"choosing/sources-frozen-{name}.csv")
        for target, group in table.groupby("target"):
            if target != english:
                chosen_score = group.loc[group["rule"].idxmax(), "score"]
                english_score = group.loc[group["source"] == english, "score"].iloc[0]
                gain = 100 * (chosen_score - english_score)
                language_code = canonical_language(str(target))
                rows.append((task, GEMMA, "source by rule", language_code, gain, 1))
    return pd.DataFrame(rows, columns=["task", "encoder", "option", "language", "gain", "seeds"])


def write_gains() -> None:
    """Write the evidence. Of two studies of one option and language, that with more seeds counts."""
    tables = [*(list_gains(scores) for scores in read_studies()), list_frozen()]
    gains = pd.concat(tables).sort_values("seeds", ascending=False)
    gains = gains.drop_duplicates(["task", "encoder", "option", "language"])
    rows = pd.read_csv(HERE / "rows.csv")
    hours = rows.groupby(["task", "option"])["hours"].mean()
    gains["labels"] = gains["option"].map(LABELS).fillna(0).astype(int)
    gains["hours"] = [find_hours(hours, *key) for key in zip(*(gains[n] for n in KEYS[:2]), strict=True)]
    gains.loc[gains["encoder"] == "shipped", "hours"] = SHIPPED_HOURS
    gains["needs"] = gains["option"].map(NEEDS)
    gains = gains.sort_values(["task", "encoder", "option", "language"])[list(Gain._fields)]
    gains.round({"gain": 2, "hours": 3}).to_csv(HERE / "gains.csv", index=False)


def find_hours(hours: "pd.Series[float]", task: str, option: str) -> float:
    """Return the hours of an option: measured, or multiples of a source-only model's."""
    if (task, option) in hours:
        return float(hours[task, option])
    single = float(hours.get((task, BASE), 0.1))
    return {"translate": 2.5 * single, "average of 3": 3 * single}.get(option, single)


def write_regrets() -> None:
    """Write the regret of advice, of always the same option and of nothing, for each task and budget."""
    gains = isogloss.read_gains(HERE / "gains.csv")
    tables = []
    for task, name in TASKS.items():
        for budget, labels in BUDGETS.items():
            options = [gain for gain in gains if gain.labels <= labels]
            regrets = isogloss.held_out_regret(task, hours=ANY_HOURS, encoder=GEMMA, gains=options)
            tables.append(pd.DataFrame(regrets).assign(task=name, budget=budget))
    pd.concat(tables).round(2).to_csv(HERE / "regret.csv", index=False)


if __name__ == "__main__":
    for runs in sys.argv[1:]:
        write_rows(runs)
    write_gains()
    write_regrets()
