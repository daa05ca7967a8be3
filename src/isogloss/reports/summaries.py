"""Summary tables: one frame each, averaged over seeds."""

from functools import partial

import numpy as np
import pandas as pd

from isogloss.reports.comparison import SYSTEM, TEST_SET, filter_rows, main_scores, model_languages
from isogloss.reports.measurements import Measurements
from isogloss.reports.names import distinguishing_names
from isogloss.reports.run_facts import fields_of
from isogloss.reports.scores import GAP, scored_sets, values_of
from isogloss.reports.tables import Summary, numbers, percents

TEST = ("corpus", "treebank", "inputs", "task")
MODEL = ("name", "source", "target")
WHERE = ("inputs.translator", "split", "metric", *SYSTEM)
ONE_MODEL = ["model", *TEST_SET, "inputs", "inputs.translator"]
COMPARABLE = "It is per subword: only encoders with one vocabulary can be compared."


def with_role(scores: pd.DataFrame) -> pd.DataFrame:
    """Add whether the scored language is a source of the model or a target.

    A model without a source (target-only) was compared with models that have some: theirs are its sources,
    but for the languages that it was trained on.
    """
    studied = {code for source in scores["source"] for code in source.split("+")}
    others = [[*(studied - {*target.split("+")})] for target in scores["target"]]
    sources = [
        source.split("+") if source else codes for source, codes in zip(scores["source"], others, strict=True)
    ]
    pairs = zip(scores["language"], sources, strict=True)
    return scores.assign(role=["source" if code in codes else "target" for code, codes in pairs])


def spreads(m: Measurements) -> pd.DataFrame:
    """Return mean and standard deviation over seeds of each system's main score, by language."""
    scores = m.frame("scores")
    scores = with_role(main_scores(scores))
    keys = [*TEST_SET, *SYSTEM, "target", "language"]
    over = scores.groupby(keys, sort=False, dropna=False)["score"].agg(seeds="count", mean="mean", std="std")
    systems = scores.drop_duplicates(keys).drop(columns=["score", "run", "model", "seed", "encoder.seed"])
    systems = systems.join(over, on=keys)
    return systems[systems["seeds"] > 1]


def gaps(m: Measurements) -> pd.DataFrame:
    """Return source score, mean target score and their difference for each model scored on both."""
    scores = m.frame("scores")
    scores = with_role(model_languages(main_scores(scores)))
    models = scores.groupby(ONE_MODEL, sort=False).ngroup().to_numpy()
    places = np.flatnonzero(models >= 0)  # Arrays: frames of few rows each take as long as large ones.
    places = places[np.argsort(models[places], kind="stable")]
    values, is_source = scores["score"].to_numpy(dtype=float), (scores["role"] == "source").to_numpy()
    firsts, means = [], []
    for of_model in np.split(places, np.flatnonzero(np.diff(models[places])) + 1):
        sources, others = values[of_model[is_source[of_model]]], values[of_model[~is_source[of_model]]]
        if len(sources) and len(others):
            firsts.append(of_model[0])
            means.append((np.nanmean(sources), np.nanmean(others)))
    facts = scores.iloc[firsts].to_dict("records")
    return pd.DataFrame(
        [
            {**row, "source_score": source, "target_mean": target, "gap": source - target}
            for row, (source, target) in zip(facts, means, strict=True)
        ],
        index=scores.index[firsts],
    )


def unshown_gaps(m: Measurements) -> pd.DataFrame:
    """Return the gaps that no table of scores shows, such as those over a model's own targets."""
    shown: set[object] = set()
    for test_set in scored_sets(m):
        by_system = values_of(test_set).reindex(columns=[GAP]).dropna().groupby(SYSTEM).size()
        systems = pd.MultiIndex.from_frame(test_set.rows[SYSTEM])
        shown |= {*test_set.rows.index[systems.isin(by_system.index)]}
    rows = gaps(m)
    return rows[~rows.index.isin(shown)]


def last_and_lowest(rows: pd.DataFrame) -> pd.DataFrame:
    """Return for each run and language the final perplexity, the lowest with its epoch, and that before."""
    rows = rows.sort_values("epoch", kind="stable")
    keys = ["run", "language"]
    first = rows[rows["step"] == 0].set_index(keys)["score"].rename("before")
    lowest = rows.loc[rows.groupby(keys)["score"].idxmin()].set_index(keys)[["score", "epoch"]]
    last = rows.drop_duplicates(keys, keep="last").sort_values("language", kind="stable")
    lowest = lowest.rename(columns={"score": "lowest", "epoch": "lowest_epoch"})
    return last.join(lowest, on=keys).join(first, on=keys)


def parameter_counts(rows: pd.DataFrame) -> pd.DataFrame:
    """Return parameter counts of each encoder: shared, of one language, used per text, and total."""
    is_own = rows["language"] != ""
    parts = {"shared": rows["parameters"].mask(is_own, 0), "own": rows["parameters"].where(is_own, 0)}
    of = rows.assign(**parts).groupby("run")
    rows = rows.assign(shared=of["shared"].transform("sum"), own=of["own"].transform("max"))
    total = of["parameters"].transform("sum")
    return rows.assign(read=rows["shared"] + rows["own"], total=total).drop_duplicates("encoder")


def trained_shares(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the counts with the share trained; none where all models trained all parameters."""
    if not (rows["trained"] < rows["parameters"]).any():
        return rows[:0]
    return rows.assign(percent=100 * rows["trained"] / rows["parameters"])


def sweep_ends(rows: pd.DataFrame) -> pd.DataFrame:
    """Return each model's score without mixing, as trained, and at the λ₀ that is best over seeds."""
    keys = [*TEST_SET, *SYSTEM, "target", "language", "layer"]
    means = rows.groupby([*keys, "ratio"])["score"].mean()
    best = means.groupby(level=keys).idxmax().map(lambda key: key[-1]).rename("at")
    rows = rows.join(best, on=keys)
    rows = rows.assign(
        unmixed=rows["score"].where(rows["ratio"] == 0),
        as_trained=rows["score"].where(rows["trained"].astype(bool)),
        best=rows["score"].where(rows["ratio"] == rows["at"]),
    )
    a_model, names = [*keys, "model"], ["unmixed", "as_trained", "best"]
    return rows.assign(**rows.groupby(a_model)[names].transform("first")).drop_duplicates(a_model)


def data_runs(m: Measurements, kind: str, part: str) -> pd.DataFrame:
    """Return the rows of runs that make data, with the fields of the run and of its aligner or translator."""
    rows = m.raw(kind)
    if rows.empty:
        return rows
    facts = []
    for run in m.finished(kind):
        content = fields_of(run.record.run) if run.record else {}
        plain = {name: value for name, value in content.items() if isinstance(value, str | int)}
        maker = fields_of(content.get(part) or {})
        settings = {f"{part}.{name}": value for name, value in maker.items() if name != "kind"}
        facts.append({"run": run.id, **plain, part: (content.get(part) or {}).get("kind", ""), **settings})
    described = pd.DataFrame(facts)
    described["settings"] = distinguishing_names(
        described, [name for name in described if name.startswith(f"{part}.")] or [part]
    )
    described = described.rename(columns={"examples": "requested"}).sort_values("languages", kind="stable")
    return described.merge(rows[["run", *rows.columns.difference(described.columns, sort=False)]], on="run")


def _within_or_zero_shot(scores: pd.DataFrame) -> pd.DataFrame:
    """Return models trained in one language, on encoders pretrained here on it and on the one tested."""
    rows = main_scores(scores[scores["inputs"].eq("") & scores["encoder.kind"].eq("pretrain")])
    across = rows["method"] == "source-only"
    rows = rows.assign(plain=~across, trained=rows["source"].where(across, rows["target"]))
    within = rows["trained"] == rows["language"]
    arrow = (rows["trained"] + " → " + rows["language"]).mask(within, rows["language"] + " within")
    rows = rows.assign(within=~within, cell=rows["task"] + " " + arrow)
    rows = rows[across | (within & rows["method"].eq("target-only"))]
    read = ("encoder.languages", "trained", "language")
    rows = filter_rows(rows, lambda languages, *codes: {*codes} <= {*languages.split("+")}, *read)
    if rows["encoder"].nunique() < 2:
        return rows.head(0)
    an_encoder = ["encoder", "encoder.seed", "corpus", "cell"]
    rows = rows.sort_values(["within", "task", "cell", "plain"], kind="stable")
    rows = rows.drop_duplicates([*an_encoder, "seed"])
    return rows.assign(score=rows.groupby(an_encoder)["score"].transform("mean")).drop_duplicates(an_encoder)


INTERFERENCE = Summary(
    section="interference",
    frame="scores",
    name="interference",
    title="One encoder for each language, one for all, and what each language has for itself",
    caption=(
        "Scores by each task's metric, percent, mean ± standard deviation over pretraining seeds. Within: "
        "trained and tested in one language; an arrow is zero-shot. Tests stand in the tables of scores."
    ),
    by=("corpus", "encoder.label"),
    values=percents({"score": "score"}),
    choose=_within_or_zero_shot,
    keep=("encoder.label",),
    pivot="cell",
)
"""Within languages and zero-shot ("On Negative Interference …", Table 2), encoder by encoder."""

SUMMARIES = (
    Summary(
        section="transfer-gap",
        frame=unshown_gaps,
        name="transfer-gap",
        title="Transfer gap",
        caption=(
            "Source score minus mean over all other languages scored, or over its own targets where a model "
            "was made for some, in points; 0: no loss. The tables of scores show all other gaps."
        ),
        by=(*TEST, *MODEL, "split", "metric"),
        keep=("name",),
        values=percents({"source score": "source_score", "mean target": "target_mean", "gap": "gap"}),
        group_by=WHERE,
    ),
    Summary(
        section="retrieval",
        frame="retrieval",
        name="retrieval-by-layer",
        title="Translation retrieval",
        caption="Percent of translations found. Centred: each language's mean is taken off first.",
        by=("corpus", "task", *MODEL, "first", "second", "layer", "similarity", "centred", "candidates"),
        keep=("name", "first", "second", "layer", "similarity", "centred"),
        values=percents({"forward": "accuracy_forward", "backward": "accuracy_backward", "chance": "chance"}),
        group_by=("encoder", "way", "treebank"),
    ),
    Summary(
        section="mining",
        frame="mining",
        title="Bitext mining",
        caption="Percent of the mined pairs, and of the gold ones, at the threshold with the best F1 on dev.",
        by=(
            *("corpus", "task", *MODEL, "first", "second", "split"),
            *("layer", "centred", "margin", "neighbours", "gold"),
        ),
        keep=("name", "first", "second", "split", "layer", "centred", "margin", "neighbours", "gold"),
        values={
            **percents({"precision": "precision", "recall": "recall", "F1": "f1"}),
            **numbers({"threshold": "threshold"}, 3),
        },
        group_by=("encoder", "way", "treebank"),
    ),
    Summary(
        section="anisotropy",
        frame="anisotropy",
        title="Anisotropy",
        caption="Mean cosine between different sentences of a language; near 1 all states point one way.",
        by=("corpus", *MODEL, "language", "layer", "sentences"),
        keep=("name", "language", "layer"),
        values=numbers({"mean cosine": "mean_cosine"}, 3),
        group_by=("encoder", "way"),
    ),
    Summary(
        section="mixup-ratio",
        frame="mixup-ratio",
        title="Mixing ratio by language",
        caption="Share λ of the translation (Eq. 5) over examples, each ± standard deviation over seeds.",
        by=(*TEST, *MODEL, "language", "split"),
        keep=("name", "language"),
        values=numbers(
            {"mean λ": "mean", "spread": "std", "5 %": "q05", "median": "median", "95 %": "q95"}, 3
        ),
        group_by=("encoder", "way", "inputs.translator"),
    ),
    Summary(
        section="link-attention",
        frame="link-attention",
        title="Attention on translated words",
        caption="Percent of the weights of Eq. 3 of X-Mixup on the linked word, and largest weights there.",
        by=("corpus", "task", *MODEL, "first", "second", "look", "layer"),
        keep=("name", "first", "second", "look", "layer"),
        values=percents({"on the linked word": "mass", "found": "hits", "chance": "chance"}),
        group_by=("encoder", "way", "treebank"),
    ),
    Summary(
        section="mixup-sweep",
        frame="mixup-sweep",
        title="Mixing more, less, or elsewhere at inference",
        caption="Percent; best: at the λ₀ chosen on the very examples it is scored on, so it flatters.",
        by=(*TEST, *MODEL, "language", "split", "layer"),
        keep=("name", "language", "layer"),
        values={
            **percents({"unmixed": "unmixed", "as trained": "as_trained", "best": "best"}),
            **numbers({"at λ₀": "at"}),
        },
        choose=sweep_ends,
        group_by=("encoder", "way", "inputs.translator", "metric"),
    ),
    Summary(
        section="training",
        frame="stopping",
        title="Early stopping",
        caption="Where trainings with patience ended: updates made of those planned, epochs run and chosen.",
        by=("corpus", "task", *MODEL),
        keep=("name",),
        values=numbers(
            {"updates": "updates", "of": "planned", "epochs": "last_epoch", "chosen": "chosen_epoch"}, 1
        ),
        group_by=("encoder", "way"),
    ),
    Summary(
        section="training",
        frame="perplexity",
        name="perplexity-by-language",
        title="Perplexity on held-out text",
        caption=f"After the last epoch, whose weights are kept, and at its lowest; before the first step, "
        f"where one was trained further. {COMPARABLE}",
        by=("language", "encoder.label"),
        keep=("language", "encoder.label"),
        values={
            **numbers({"before": "before", "last": "score", "lowest": "lowest"}),
            **numbers({"last epoch": "epoch", "lowest at epoch": "lowest_epoch"}, 0),
        },
        choose=last_and_lowest,
        group_by=("encoder", "split"),
    ),
    Summary(
        section="training",
        frame="new-subwords",
        title="Subwords that encoders gained",
        caption="Added to the vocabulary, and how many start from translations, old subwords, or random "
        "numbers.",
        by=("encoder.label",),
        keep=("encoder.label",),
        values=numbers(
            {
                "added": "added",
                "from translations": "from_translations",
                "from subwords": "from_averages",
                "random": "at_random",
            },
            0,
        ),
        over="encoders",
        group_by=("encoder",),
    ),
    Summary(
        section="training",
        frame="parameters",
        title="Parameters of the encoders",
        caption="With masked-LM heads; a text is read by what is shared and what its own language has.",
        by=("encoder.label",),
        values=numbers(
            {"shared": "shared", "of a language": "own", "that read a text": "read", "in all": "total"}, 0
        ),
        choose=parameter_counts,
        over="encoders",
        group_by=("encoder",),
    ),
    Summary(
        section="trained-parameters",
        frame="trained-parameters",
        title="Trained parameters",
        caption="Of each model, its head included; the others stay as they are in the encoder.",
        by=("corpus", "task", *MODEL),
        keep=("name",),
        values={**numbers({"trained": "trained", "of": "parameters"}, 0), **numbers({"percent": "percent"})},
        choose=trained_shares,
        group_by=("encoder", "way"),
    ),
    Summary(
        section="training",
        frame="further-tasks",
        title="Further tasks",
        caption="Percent, on the source's dev sets, of tasks that models learned in addition to their own.",
        by=("corpus", "task", *MODEL, "further_corpus", "further_task", "language", "metric"),
        keep=("name", "further_corpus", "further_task", "language", "metric"),
        values=percents({"score": "score", "baseline": "baseline"}),
        group_by=("encoder", "way"),
    ),
    Summary(
        section="data",
        frame=partial(data_runs, kind="align", part="aligner"),
        name="word-alignment",
        title="Word alignments against gold links",
        caption="Percent, on the pairs that have gold links. AER: alignment error rate, 0 is best.",
        by=("bitext", "languages", "split", "aligner", "settings", "pairs"),
        keep=("languages", "split", "pairs"),
        values={
            **numbers({"links": "links", "gold pairs": "gold_pairs"}, 0),
            **percents({"precision": "precision", "recall": "recall", "F1": "f1", "AER": "aer"}),
        },
        choose=lambda rows: rows if rows["gold_pairs"].any() else rows[:0],
        over="alignments",
    ),
    Summary(
        section="data",
        frame=partial(data_runs, kind="translate", part="translator"),
        name="translations",
        title="Translations",
        caption="Lost: label not found, left out. Tagged: words with a tag. chrF against the corpus's own.",
        by=("corpus", "languages", "split", "translator", "settings"),
        keep=("languages", "split"),
        values={
            **numbers({"examples": "examples", "lost": "lost", "cuts": "cuts"}, 0),
            **percents({"tagged": "tagged", "chrF": "score"}),
        },
        over="translations",
    ),
    INTERFERENCE,
)
