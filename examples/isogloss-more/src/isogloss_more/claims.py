"""A claim about code-switching."""

from isogloss.plugins import HELPS, Check, Claim, Measurements, check_of

PAIR = ["code-switching", "source-only"]


def code_switching_helps(measurements: Measurements) -> list[Check]:
    """Compare both methods on target languages, over seeds."""
    if "scores" not in measurements.kinds():
        return []
    scores = measurements.frame("scores")
    scores = scores[scores["main"] & (scores["language"] != scores["source"])]
    means = scores.pivot_table(index="seed", columns="method", values="score")
    if not set(PAIR) <= set(means.columns):
        return []
    paired_means = means[PAIR].dropna()
    return [
        check_of(paired_means[PAIR[0]] - paired_means[PAIR[1]], "code-switching minus source-only", HELPS)
    ]


CODE_SWITCHING = Claim(
    id="MORE1",
    title="CoSDA-ML",
    where="Table 2",
    says="Code-switching helps in the target languages.",
    rule="The mean score of the target languages rises, over seeds.",
    test=code_switching_helps,
)
