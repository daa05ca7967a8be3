"""Trials of the claims of papers 2, 3 and 4: systems whose scores differ by an effect, or by none.

A claim of several parts has all of them but one where its effect is absent: it is supported by mistake as
often as by that one. What a seed does to one system it does, in part, to all others with its number.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np
from court import Frames, Rng, Trial

import made_up_rows as rows_of_mixup
from made_up_rows import MIXES, TRANSLATES, Row, centroid, cka, mixup_ratio
from made_up_studies import (
    CONTINUAL,
    ENCODER,
    MODEL,
    WITHIN,
    ZERO_SHOT,
    adjusted_facts,
    distances,
    kind_cosines,
    layer_cosines,
    meta,
    pretrained_facts,
    scores,
    seeds,
    similar,
)

SPREAD = 0.01
"""Standard deviation of scores over seeds."""

SHARED = 0.5
"""Share of their variance that systems of one seed have in common."""

EFFECT = 0.04
POINT = 0.01

LANGUAGES = [f"qa{letter}" for letter in "bcdefghijk"]


class Seeds:
    """Noise of a number of seeds, correlated between systems."""

    def __init__(self, rng: Rng, number: int) -> None:
        """Draw what the systems of a seed share."""
        self.rng = rng
        self.number = number
        self.common = rng.normal(0, 1, number)

    def around(self, mean: float, spread: float = SPREAD) -> list[float]:
        """Return a number for each seed of one system."""
        single_samples = self.rng.normal(0, 1, self.number)
        return list(mean + spread * (SHARED**0.5 * self.common + (1 - SHARED) ** 0.5 * single_samples))


PLAIN = {"method": "source-only"}
NO_MIXUP = {**MIXES, "method.ratio": 0.0}
NLI = {"task": "nli", "corpus": "xnli"}


def score_tagged(
    drawn_seeds: Seeds, options: Mapping[str, Any], mean: float, inputs: str = "", language: str = "qad"
) -> list[Row]:
    """Return the scores of a system of the second paper."""
    return [
        rows_of_mixup.score(value, language=language, seed=seed, inputs=inputs, about={**options})
        for seed, value in enumerate(drawn_seeds.around(mean))
    ]


def mixup(rng: Rng, index: int, *systems: tuple[Mapping[str, Any], float, str, str], **facts: str) -> Frames:
    """Return X-Mixup at .8 on the target, translate-train at .7, source-only at .6, and other systems."""
    usual = ((MIXES, 0.8, "paired", "qad"), (TRANSLATES, 0.7, "", "qad"), (PLAIN, 0.6, "", "qad"))
    values_by_id = {
        (str(options), inputs, language): (options, mean, inputs, language)
        for options, mean, inputs, language in (*usual, *systems)
    }
    drawn_seeds = Seeds(rng, index)
    return {
        "scores": [
            row
            for options, mean, inputs, language in values_by_id.values()
            for row in score_tagged(drawn_seeds, {**options, **facts}, mean, inputs, language)
        ]
    }


def states(rng: Rng, index: int, effect: float, make: Callable[..., Row], frame: str) -> Frames:
    """Return a number of X-Mixup's states and of translate-train's."""
    drawn_seeds = Seeds(rng, index)
    return {
        frame: [
            make(value, seed=seed, **({"about": mixes} if make is cka else mixes))
            for mixes, mean in ((MIXES, 0.5 + effect), (TRANSLATES, 0.5))
            for seed, value in enumerate(drawn_seeds.around(mean))
        ]
    }


def ratios(rng: Rng, index: int, share: float) -> Frames:
    """Return ratios that vary over examples by a share of their mean."""
    shares = Seeds(rng, index).around(share)
    return {
        "mixup_ratio": [
            mixup_ratio(0.25, 0.25 * seed_share, seed=seed) for seed, seed_share in enumerate(shares)
        ]
    }


def rank_languages(rng: Rng, _: int, rho: float) -> Frames:
    """Return CKA and scores of ten languages with a correlation."""
    pairs = rng.multivariate_normal([0, 0], [[1, rho], [rho, 1]], len(LANGUAGES))
    return {
        "cka": [
            cka(0.5 + 0.1 * x, language=language, about=PLAIN)
            for language, (x, _) in zip(LANGUAGES, pairs, strict=True)
        ],
        "scores": [
            rows_of_mixup.score(0.5 + 0.1 * y, language=language)
            for language, (_, y) in zip(LANGUAGES, pairs, strict=True)
        ],
    }


def draw_gains(rng: Rng, _: int, rho: float) -> Frames:
    """Return gains of a hundred languages in CKA and in score, with a correlation."""
    pairs = rng.multivariate_normal([0, 0], [[1, rho], [rho, 1]], 100)
    codes = [f"x{index}" for index in range(len(pairs))]
    target = {"target": "+".join(codes)}
    frames = {"scores": list[Row](), "cka": list[Row]()}
    for language, (x, y) in zip(codes, pairs, strict=True):
        for mixes, inputs, part in ((MIXES, "paired", 0.01), (TRANSLATES, "", 0.0)):
            facts = {**mixes, **target}
            frames["scores"].append(
                rows_of_mixup.score(0.5 + part * y, language=language, inputs=inputs, about=facts)
            )
            frames["cka"].append(cka(0.5 + part * x, language=language, about=facts))
    return frames


def score_tuned(
    drawn_seeds: Seeds, mean: float, task: str, spread: float = SPREAD, **facts: Any
) -> list[Row]:
    """Return the scores of a system of the third paper, above .5 by a mean."""
    return scores(drawn_seeds.around(mean, spread), task=task, **facts)


def gains(
    rng: Rng, index: int, values_by_task: Mapping[str, float], spread: float = SPREAD, **facts: Any
) -> Frames:
    """Return scores of the original and of the adjusted encoder, by task."""
    drawn_seeds = Seeds(rng, index)
    return {
        "scores": [
            row
            for task, gain in values_by_task.items()
            for mean, options in ((0.0, {}), (gain, adjusted_facts()))
            for row in score_tuned(drawn_seeds, mean, task, spread, **{**options, **facts})
        ]
    }


def sizes(rng: Rng, index: int, values_by_task: Mapping[str, float]) -> Frames:
    """Return scores after adjustments on three sizes of bitext, which rise by a gain."""
    drawn_seeds = Seeds(rng, index)
    return {
        "scores": [
            row
            for task, gain in values_by_task.items()
            for step, size in enumerate((5, 30, 250))
            for row in score_tuned(drawn_seeds, gain * step, task, **adjusted_facts(size))
        ]
    }


def score_pulled(rng: Rng, index: int, values_by_task: Mapping[str, float]) -> Frames:
    """Return scores of encoders with all words pulled, above those with [CLS] alone by a gain."""
    drawn_seeds = Seeds(rng, index)
    return {
        "scores": [
            row
            for task, gain in values_by_task.items()
            for mean, words in ((gain, "all"), (0.0, "opening"))
            for row in score_tuned(drawn_seeds, mean, task, **adjusted_facts(pulled=words))
        ]
    }


def mixed_inputs(rng: Rng, index: int, values_by_form: Mapping[str, float]) -> Frames:
    """Return gains on mixed inputs, above those on plain ones."""
    tasks = {"mixed": "nli", "mixed-question": "qa", "mixed-passage": "qa"}
    plain_scores = gains(rng, index, {"nli": 0.0, "qa": 0.0})["scores"]
    mixed_rows = [
        row
        for form, gain in values_by_form.items()
        for row in gains(rng, index, {tasks[form]: gain}, inputs=form)["scores"]
    ]
    return {"scores": [*plain_scores, *mixed_rows]}


def measure_moved(rng: Rng, index: int, values_by_task: Mapping[str, float]) -> Frames:
    """Return distances of words, moved by fine-tuning."""
    drawn_seeds = Seeds(rng, index)
    distances_before = distances("", (0.0,), **ENCODER)
    rows_after = [
        row for task, change in values_by_task.items() for row in distances(task, drawn_seeds.around(change))
    ]
    return {**gains(rng, index, {"nli": 0.0}), "word_distance": [*distances_before, *rows_after]}


def continual(rng: Rng, index: int, values_by_task: Mapping[str, float], auc: Mapping[str, float]) -> Frames:
    """Return scores and AUC of continual models of an adjusted encoder, above source-only ones by a gain."""
    drawn_seeds = Seeds(rng, index)
    ways = (adjusted_facts(), {**adjusted_facts(), **CONTINUAL})
    flat = [0.0] * index
    return {
        "scores": [
            row
            for task, gain in values_by_task.items()
            for mean, options in zip((0.0, gain), ways, strict=True)
            for row in score_tuned(drawn_seeds, mean, task, **options)
        ],
        "word_distance": [
            row
            for task in ("nli", "ner", "qa")
            for mean, options in zip((0.0, auc.get(task, EFFECT)), ways, strict=True)
            for row in distances(task, flat, drawn_seeds.around(mean), **options)
        ],
    }


JOINT = pretrained_facts()
FFN, ATTENTION, ADAPTER, SHARED_ADAPTER = (
    pretrained_facts(name) for name in ("feed-forward", "attention", "adapter", "shared-adapter")
)
LITTLE = {"lines": '[["qad", 100]]'}
TARGET = {"language": "qad", "method": "target-only", "source": "", "target": "qad"}


def encoders(
    rng: Rng, index: int, *systems: tuple[Mapping[str, Any], Mapping[str, Any], float], **frames: list[Row]
) -> Frames:
    """Return scores of encoders on halves, by facts of the encoder and the half, and distance above .5."""
    drawn_seeds = Seeds(rng, index)
    rows = [
        row
        for encoder, half_system, mean in systems
        for row in seeds({**encoder}, drawn_seeds.around(mean), **half_system)
    ]
    return {"scores": rows, **frames}


def both_halves(encoder: Mapping[str, Any], inner_effect: float, zero_shot: float) -> Iterable[Any]:
    """Return an encoder on both halves."""
    return (encoder, WITHIN, inner_effect), (encoder, ZERO_SHOT, zero_shot)


def curves(
    encoder: Mapping[str, Any], index: int, ends: tuple[float, ...], language: str = "qaa"
) -> list[Row]:
    """Return curves of perplexity that end with these numbers."""
    return [
        {
            **MODEL,
            **ENCODER,
            **encoder,
            "encoder.seed": seed,
            "encoder.run": f"{encoder['encoder']}-{seed}",
            "language": language,
            "split": "dev",
            "step": step,
            "score": score,
        }
        for seed in range(index)
        for step, score in zip((10, 90, 100), ends, strict=True)
    ]


def speeds(rng: Rng, index: int, adapter: float, learned_value: float) -> Frames:
    """Return log perplexities of adapters above the joint encoder's, and of meta-learned ones."""
    drawn_seeds = Seeds(rng, index)
    systems = ((JOINT, 0.0), (ADAPTER, adapter), (meta(), adapter + learned_value))
    return {
        "perplexity": [
            {
                **MODEL,
                **ENCODER,
                **encoder,
                "encoder.seed": seed,
                "language": "qaa",
                "split": "dev",
                "step": step,
                "score": 50 * float(np.exp(value - step / 100)),
            }
            for encoder, mean in systems
            for seed, value in enumerate(drawn_seeds.around(mean))
            for step in (10, 20)
        ]
    }


def parts(rng: Rng, index: int, frame: str, slope: float, attention: float) -> Frames:
    """Return similarities of two languages in layers and modules: their slope, and attention's lead."""
    make = kind_cosines if frame == "language_gates" else layer_cosines
    drawn_seeds = Seeds(rng, index)
    lines = zip(drawn_seeds.around(slope), drawn_seeds.around(attention), strict=True)
    # A rank correlation is of noise, not of a slope: each layer has its own.
    rows = [
        row
        for seed, line in enumerate(lines)
        for row in similar(
            JOINT, seed, {part: value + rng.normal(0, SPREAD / 2) for part, value in make(*line).items()}
        )
    ]
    return {frame: rows}


def conflicts(rng: Rng, index: int, distant: float, closer: float) -> Frames:
    """Return cosines in training of a close and a distant pair, where a language has .8 with itself."""
    drawn_seeds = Seeds(rng, index)
    pairs = ((JOINT, 0.9, closer), (pretrained_facts(languages="qaa+qab"), 0.1, 0.0))
    rows = {"training_conflict": list[Row](), "gradient_conflict": list[Row]()}
    for encoder, overlap, lead in pairs:
        for seed, cosine in enumerate(drawn_seeds.around(distant + lead)):
            rows["training_conflict"] += similar(encoder, seed, {(np.nan, "all"): cosine})
            rows["gradient_conflict"] += similar(encoder, seed, {(np.nan, "all"): 0.5}, overlap=overlap)
    return rows


def close_pair(rng: Rng, index: int, effect: float) -> Frames:
    """Return scores in the common language of two pairs, with more shared subwords in one pair."""
    near_pretrained_facts = pretrained_facts(languages="qaa+qab")
    far_joint = JOINT
    overlaps = [
        row
        for encoder, overlap in ((near_pretrained_facts, 0.9), (far_joint, 0.1))
        for row in similar(encoder, 0, {(np.nan, "all"): 0.5}, overlap=overlap)
    ]
    return encoders(
        rng,
        index,
        (near_pretrained_facts, WITHIN, effect),
        (far_joint, WITHIN, 0.0),
        gradient_conflict=overlaps,
    )


def score_owned(rng: Rng, index: int, effect: float) -> Frames:
    """Return own modules that help within languages, own feed-forward by an effect, and hurt zero-shot."""
    systems = [*both_halves(JOINT, 0.0, 0.0), *both_halves(FFN, effect, -EFFECT)]
    systems += [*both_halves(ATTENTION, EFFECT, -EFFECT), *both_halves(ADAPTER, EFFECT, -EFFECT)]
    settled_rows = [
        row for encoder in (JOINT, FFN, ATTENTION, ADAPTER) for row in curves(encoder, 2, (50.0, 40.0, 39.8))
    ]
    return encoders(rng, index, *systems, perplexity=settled_rows)


def score_learned(rng: Rng, index: int, effect: float) -> Frames:
    """Return meta-learned adapters that help zero-shot, and within languages by an effect."""
    systems = [
        *both_halves(JOINT, 0.0, 0.0),
        *both_halves(ADAPTER, 0.0, 0.0),
        *both_halves(SHARED_ADAPTER, 0.0, 0.0),
    ]
    return encoders(rng, index, *systems, *both_halves(meta(), effect, EFFECT))


def little(rng: Rng, index: int, effect: float) -> Frames:
    """Return a joint encoder with little text of a language, above the monolingual one by an effect."""
    joint = pretrained_facts(**LITTLE)
    single_pretrained_facts = pretrained_facts(languages="qad", **LITTLE)
    systems = [
        (JOINT, WITHIN, 0.0),
        (joint, WITHIN, 0.0),
        (joint, TARGET, effect),
        (single_pretrained_facts, TARGET, 0.0),
    ]
    remembered_curves = curves(single_pretrained_facts, 2, (50.0, 55.0, 60.0), "qad")
    return encoders(rng, index, *systems, perplexity=remembered_curves)


def third(rng: Rng, index: int, effect: float) -> Frames:
    """Return an encoder of three languages, above the zero-shot score of one of two by an effect."""
    three = pretrained_facts(languages="qaa+qad+qab")
    return encoders(rng, index, *both_halves(JOINT, 0.0, 0.0), *both_halves(three, 0.0, effect))


def trial(claim: str, make: Callable[..., Frames], absent: Any, present: Any, seeds: int = 6) -> Trial:
    """Return the trial of frames made with one value where an effect is absent, and another where not."""
    return Trial(
        claim,
        lambda rng, index: make(rng, index, absent),
        lambda rng, index: make(rng, index, present),
        seeds,
    )


def try_tasks(claim: str, make: Callable[..., Frames], task: str, absent: float, **present: float) -> Trial:
    """Return the trial of effects by task, with one effect absent."""
    return trial(claim, make, {**present, task: absent}, present)


SYSTEM_TRIALS = (
    trial("2a", lambda rng, n, x: mixup(rng, n, (MIXES, 0.7 + x, "paired", "qad")), 0.0, EFFECT),
    trial("2b", partial(states, make=cka, frame="cka"), 0.0, EFFECT),
    trial("2c", rank_languages, 0.0, 0.95),
    trial(
        "2d",
        lambda rng, n, x: mixup(
            rng, n, (NO_MIXUP, 0.7, "", "qad"), ({**MIXES, "method.mse": 0.0}, 0.8 - x, "paired", "qad")
        ),
        0.0,
        EFFECT,
    ),
    trial(
        "2e",
        lambda rng, n, x: mixup(
            rng, n, (MIXES, 0.7 + x, "paired", "qae"), (TRANSLATES, 0.7, "", "qae"), (PLAIN, 0.6, "", "qae")
        ),
        0.0,
        EFFECT,
    ),
    trial("2f", ratios, 0.1, 0.15),
    trial(
        "2g",
        lambda rng, n, x: mixup(rng, n, (MIXES, 0.9, "", "qaa"), (TRANSLATES, 0.8 + x, "", "qaa")),
        0.0,
        EFFECT,
    ),
    trial(
        "2h",
        lambda rng, n, x: mixup(rng, n, (MIXES, 0.8 + x, "", "qaa"), (TRANSLATES, 0.8, "", "qaa")),
        0.0,
        EFFECT,
    ),
    trial(
        "2i",
        lambda rng, n, x: mixup(
            rng,
            n,
            ({**MIXES, "method.mse": 0.0}, 0.7 + x, "paired", "qad"),
            ({**MIXES, "method.kl": 0.0}, 0.7, "paired", "qad"),
            **NLI,
        ),
        0.0,
        EFFECT,
    ),
    trial(
        "2j",
        lambda rng, n, x: mixup(rng, n, (MIXES, 0.7 + x, "", "qad"), (NO_MIXUP, 0.7, "", "qad")),
        0.0,
        EFFECT,
    ),
    trial(
        "2k",
        lambda rng, n, x: mixup(
            rng,
            n,
            ({**MIXES, "method.layer": 1.0}, 0.8, "paired", "qad"),
            ({**MIXES, "method.layer": 2.0}, 0.7 + x, "paired", "qad"),
        ),
        0.0,
        EFFECT,
    ),
    trial("2l", partial(states, make=centroid, frame="representation_map"), 0.0, -EFFECT),
    trial("2m", draw_gains, 0.5, 0.0),
    try_tasks("3a", gains, "nli", 0.0, nli=EFFECT, ner=EFFECT, qa=-POINT),
    try_tasks("3b", sizes, "nli", 0.0, nli=EFFECT, ner=EFFECT),
    try_tasks("3c", measure_moved, "nli", 0.0, nli=-EFFECT, ner=-EFFECT, qa=-EFFECT),
    Trial(
        "3d",
        lambda rng, n: continual(rng, n, {"nli": EFFECT}, {"nli": 0.0}),
        lambda rng, n: continual(rng, n, {"nli": EFFECT}, {}),
    ),
    trial(
        "3e",
        mixed_inputs,
        {"mixed": 0.0, "mixed-question": EFFECT, "mixed-passage": EFFECT},
        dict.fromkeys(("mixed", "mixed-question", "mixed-passage"), EFFECT),
    ),
    try_tasks(
        "3f",
        partial(gains, source="en", language="es", **{"encoder.pairs": "en-es"}),
        "ner",
        POINT,
        ner=-POINT,
        qa=-POINT,
    ),
    try_tasks("3g", partial(gains, spread=0.003, language="qaa"), "nli", POINT, nli=0.0, qa=0.0),
    try_tasks("3h", sizes, "qa", 0.0, qa=-EFFECT),
    try_tasks("3i", score_pulled, "nli", 0.0, nli=EFFECT, ner=EFFECT),
    Trial(
        "3j",
        lambda rng, n: continual(rng, n, {"ner": POINT, "qa": -POINT}, {}),
        lambda rng, n: continual(rng, n, {"ner": -POINT, "qa": -POINT}, {}),
    ),
    trial(
        "4a",
        lambda rng, n, x: encoders(
            rng, n, (JOINT, WITHIN, 0.0), (pretrained_facts(languages="qaa"), WITHIN, x)
        ),
        0.0,
        EFFECT,
    ),
    trial("4b", lambda rng, n, x: conflicts(rng, n, 0.5, x), 0.0, EFFECT),
    trial("4c", lambda rng, n, x: parts(rng, n, "gradient_conflict", x, EFFECT), 0.0, -EFFECT),
    trial("4d", score_owned, 0.0, EFFECT),
    trial("4e", score_learned, 0.0, EFFECT),
    trial("4f", lambda rng, n, x: parts(rng, n, "language_gates", x, EFFECT), 0.0, -EFFECT),
    trial("4g", score_learned, 0.0, EFFECT),
    trial("4h", lambda rng, n, x: encoders(rng, n, (FFN, WITHIN, x), (ATTENTION, WITHIN, 0.0)), 0.0, EFFECT),
    trial("4i", lambda rng, n, x: speeds(rng, n, EFFECT, x), 0.0, -EFFECT),
    trial(
        "4j",
        lambda rng, n, x: encoders(
            rng, n, *both_halves(JOINT, 0.0, 0.0), *both_halves(SHARED_ADAPTER, x, EFFECT)
        ),
        0.0,
        EFFECT,
    ),
    trial("4k", little, 0.0, EFFECT, 25),
    trial("4l", close_pair, 0.0, EFFECT),
    trial("4m", third, 0.0, EFFECT, 20),
)
"""Every claim of the three papers."""
