"""Score runs with what they kept, drawn so that it is known which systems differ."""

import numpy as np
from synthetic_runs import measure, write_plan, write_run

from isogloss.core.contributions import Contributions, total
from isogloss.data.prediction_table import PREDICTIONS, Predictions, write_predictions

ABOUT = {"corpus": "xnli", "task": "nli", "source": "en", "target": "", "split": "test"}


def predictions(language, contributions):
    measures = dict(contributions)
    size = len(next(iter(measures.values())).part)
    ids = [f"{language}-{number}" for number in range(size)]
    return Predictions(language=language, ids=ids, predicted=['"x"'] * size, contributions=measures)


def write_scores(out, name, kept, *, keep=True, **about):
    """Write one score run: a row for each language of ``kept``, and the predictions beside it."""
    about = {"encoder": "mini", "method": "source-only", "seed": 0, **ABOUT, **about}
    rows = []
    for one in kept:
        (metric, first), *others = one.contributions.items()
        tail = {"language": one.language, "metric": metric, "score": total(first), "examples": len(one.ids)}
        rows.append({**about, **tail, **{other: total(two) for other, two in others}})
    write_run(out, name, {**measure("scores", rows), "needs": [f"model-{name}"]})
    if keep:
        write_predictions(out / name / PREDICTIONS, kept)
    return name


def answers(seed, gain, languages, size=400, **_):
    """Draw right and wrong answers to the same questions, more of them right by ``gain``."""
    for place, language in enumerate(languages):
        chances = np.random.default_rng(place).uniform(0.3, 0.7, size) + gain
        right = np.random.default_rng((seed, place, round(100 * gain))).random(size) < chances
        yield predictions(language, {"accuracy": Contributions(right.astype(float).tolist(), [1.0] * size)})


def build_kept(out, systems, *, seeds=(0, 1, 2), languages=("en", "de", "fr"), keep=True):
    """Write the score runs of systems, given as {(encoder, method): gain}; return their ids."""
    names = [
        write_scores(
            out,
            f"{encoder}-{method}-{seed}",
            list(answers(seed, gain, languages)),
            keep=keep,
            **{"encoder": encoder, "method": method, "seed": seed},
        )
        for (encoder, method), gain in systems.items()
        for seed in seeds
    ]
    write_plan(out, names, title="Kept")
    return names
