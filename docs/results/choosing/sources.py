"""The cost of a chosen source language: `python docs/results/choosing/sources.py NAME [SCORES [DATA]]`.

With SCORES, NAME's transfer rows are written first, with the signals and the score of each target and source.
SCORES is the folder of the runs of `sources.toml` (NAME names) or `sources_built_in.toml` (NAME tags), or a
file of `frozen.py` (NAME frozen-topics, frozen-tags, frozen-names). Regrets are computed from these rows.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from isogloss.metrics.estimates import mean_std

HERE = Path(__file__).parent
SIGNALS = ("family", "script", "order", "trigrams")
CHOSEN_BY = ("rule", *SIGNALS)
ALWAYS = {
    "names": "en",
    "tags": "qaa",
    "frozen-topics": "eng_Latn",
    "frozen-tags": "en",
    "frozen-names": "en",
}
TEXTS = 1000
PERMUTATIONS = 9999

Matrix = npt.NDArray[np.float64]
"""A value for each target (row) and source (column), nan where both are one language."""


def transfer(path: Path, data: str) -> pd.DataFrame:
    """Return for each target and source the signals, and the score as a mean over seeds."""
    import isogloss
    from isogloss.data.projection.example_texts import texts_of

    if path.suffix == ".csv":
        scores = pd.read_csv(path)
    else:
        scores = isogloss.read(path).frame("scores")
        scores = scores[scores["main"].eq(True)]
    corpus = scores["corpus"].iloc[0]
    languages = sorted(scores["source"].unique())
    texts = {
        language: [" ".join(texts_of(example)) for example in _texts(corpus, language, data)]
        for language in languages
    }
    mean = scores.groupby(["language", "source"])["score"].mean()
    rows = [
        {"target": target, **candidate._asdict(), "score": mean[target, candidate.language]}
        for target in languages
        for candidate in isogloss.rank_sources(target, languages, texts)
    ]
    return pd.DataFrame(rows).rename(columns={"language": "source"}).round(6)


def _texts(corpus: str, language: str, data: str) -> Sequence[object]:
    import isogloss

    try:
        return isogloss.load_corpus(corpus, language, "train", data=data, examples=TEXTS)
    except isogloss.IsoglossError:
        return isogloss.load_corpus(corpus, language, "dev", data=data, examples=TEXTS)


def matrix(rows: pd.DataFrame, column: str) -> Matrix:
    """Return a column of the rows by target and source, both in the order of their names."""
    values: Matrix = rows.pivot(index="target", columns="source", values=column).to_numpy(dtype=float)
    return values


def compute_losses(scores: Matrix) -> Matrix:
    """Return the points that each source loses against the target's best source, and 0 for the target."""
    points: Matrix = np.nan_to_num(100 * (np.nanmax(scores, axis=1, keepdims=True) - scores))
    return points


def choices(scores: Matrix, ranking: Matrix) -> Matrix:
    """Return, for each target, 1 at the first-ranked source. Equally ranked sources share it."""
    values = np.where(np.isnan(scores), -np.inf, np.nan_to_num(ranking))
    is_first = values == values.max(axis=1, keepdims=True)
    shares: Matrix = is_first / is_first.sum(axis=1, keepdims=True)
    return shares


def regret_of(scores: Matrix, ranking: Matrix) -> Matrix:
    """Return for each target the points that the source ranked first loses."""
    regret: Matrix = (compute_losses(scores) * choices(scores, ranking)).sum(axis=1)
    return regret


def mean_in_other_targets(scores: Matrix) -> Matrix:
    """Return for each target the mean score of each source in the other targets, less each target's mean."""
    relative = scores - np.nanmean(scores, axis=1, keepdims=True)
    other_means = [np.nanmean(np.delete(relative, target, axis=0), axis=0) for target in range(len(scores))]
    return np.array(other_means)


def fit_scores(signals: Sequence[Matrix], scores: Matrix) -> Matrix:
    """Return, for each target, a linear regression of scores on signals, fitted on the other languages.

    Signals are standardised over the candidates of a target, and the target's mean is subtracted from scores.
    The target is not used as a source for fitting, because its labels are not known.
    """
    relative = scores - np.nanmean(scores, axis=1, keepdims=True)
    inputs = np.stack([_standardise(signal) for signal in signals], axis=2)
    predictions = np.full_like(scores, np.nan)
    for target in range(len(scores)):
        has_score = ~np.isnan(scores)
        has_score[target] = False
        has_score[:, target] = False
        weights, *_ = np.linalg.lstsq(inputs[has_score], relative[has_score], rcond=None)
        predictions[target] = inputs[target] @ weights
    return predictions


def _standardise(signal: Matrix) -> Matrix:
    counts = np.maximum((~np.isnan(signal)).sum(axis=1, keepdims=True), 1)
    deviations = np.nan_to_num(signal - np.nansum(signal, axis=1, keepdims=True) / counts)
    std = np.sqrt((deviations**2).sum(axis=1, keepdims=True) / counts)
    z_scores: Matrix = deviations / np.where(std > 0, std, 1)
    return z_scores


def chance(scores: Matrix, ranking: Matrix, *, permutations: int = PERMUTATIONS, seed: int = 0) -> float:
    """Return p of a mean regret as low where the languages of the scores are permuted among themselves.

    What a source is worth in all targets, and a target's level, stay; whose they are does not. Targets share
    their sources, which an interval over targets does not see.
    """
    draws = np.random.default_rng(seed)
    points = compute_losses(scores)
    shares = choices(scores, ranking)
    orders = draws.permuted(np.tile(np.arange(len(scores)), (permutations, 1)), axis=1)
    permuted_regrets = (points[orders[:, :, None], orders[:, None, :]] * shares).sum(axis=(1, 2))
    lower = (permuted_regrets <= (points * shares).sum() + 1e-6).sum()
    return float((1 + lower) / (1 + permutations))


def rankings(rows: pd.DataFrame, always: str) -> Mapping[str, Matrix]:
    """Return the ways to choose: a value by target and source. The source with the highest is chosen."""
    scores = matrix(rows, "score")
    signals = [matrix(rows, name) for name in SIGNALS]
    constant_choice = np.broadcast_to(np.array(sorted(set(rows["source"]))) == always, scores.shape).astype(
        float
    )
    sources = mean_in_other_targets(scores)
    return {
        **{name: matrix(rows, name) for name in CHOSEN_BY},
        f"always {always}": constant_choice,
        "best in other targets": sources,
        "fitted": fit_scores(signals, scores),
        "fitted with sources": fit_scores([*signals, sources], scores),
        "random": np.zeros_like(scores),
    }


def regrets(rows: pd.DataFrame, always: str) -> pd.DataFrame:
    """Return the mean regret over targets of each way to choose, in points, and its excess over the rule's.

    Intervals are Student's over targets. One source for all is compared on the other targets.
    """
    scores = matrix(rows, "score")
    languages = sorted(set(rows["target"]))
    ways = rankings(rows, always)
    rule = regret_of(scores, ways["rule"])
    table = []
    for name, ranking in ways.items():
        is_counted = np.array([language != always or not name.startswith("always") for language in languages])
        regret = regret_of(scores, ranking)[is_counted]
        mean = mean_std(list(regret))
        more = mean_std(list(regret - rule[is_counted]))
        table.append(
            {
                "chosen by": name,
                "targets": mean.n,
                "regret": mean.mean,
                "low": mean.low,
                "high": mean.high,
                "worst": regret.max(),
                "best chosen": int((regret == 0).sum()),
                "more than the rule": more.mean,
                "more low": more.low,
                "more high": more.high,
                "p of chance": chance(scores, ranking) if name in CHOSEN_BY else np.nan,
            }
        )
    columns = pd.DataFrame(table)
    return columns.round(2).assign(**{"p of chance": columns["p of chance"].round(4)})


def main() -> None:
    """Write the rows, where scores are given, and the regrets."""
    name, *arguments = sys.argv[1:]
    rows = HERE / f"sources-{name}.csv"
    if arguments:
        transfer(Path(arguments[0]), arguments[1] if len(arguments) > 1 else "").to_csv(rows, index=False)
    table = regrets(pd.read_csv(rows), ALWAYS[name])
    table.to_csv(HERE / f"sources-{name}-regret.csv", index=False)
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
