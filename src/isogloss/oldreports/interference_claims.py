"""What is claimed of negative interference and of what helps against it, tested on the rows at hand.

"On Negative Interference in Multilingual Models", Sections 3.2, 3.5 and 4: (k), (o) and (p) are its claims
(a), (d) and (e); (l) to (n) are in ``gradient_claims`` and ``gate_claims``. Letters go on from paper to
paper, so that one report can hold the claims of several.
"""

from collections.abc import Sequence

from isogloss.oldreports.claims import Claim
from isogloss.oldreports.comparison import LEVEL, Comparison
from isogloss.oldreports.gains import gain, is_a_gain, is_a_loss
from isogloss.oldreports.gather import run_rows
from isogloss.oldreports.interference import Study
from isogloss.oldreports.paths import grouped
from isogloss.oldreports.pretrained_encoders import MASKED, META, FromText
from isogloss.oldreports.rows import Perplexity

RISE = 1.05
"""How many times its lowest held-out perplexity an encoder ends at, from which on it learned by heart."""

RULE = (
    f"Against the joint encoder with the same seeds, by the test of the table: gained where the mean "
    f"difference is above 0, at least one test set is better with p < {LEVEL} (corrected) and none worse so; "
    f"lost the other way round; what is within chance is neither."
)


def interference_claims(study: Study | None) -> tuple[Claim, ...]:
    """Test the three claims; none where no encoders are compared."""
    if study is None:
        return ()
    return (languages_interfere(study), own_modules_help_within(study), meta_learning_helps_both(study))


def languages_interfere(study: Study) -> Claim:
    """Claim (k): monolingual encoders beat the joint one within their language."""
    sentence = (
        "Within a language, an encoder of that language alone beats one that shares all with others, except "
        "where a low-resource language is learned by heart."
    )
    how = (
        f"Each monolingual encoder, trained and tested in its language. {RULE} Left out: an encoder of text "
        f"cut down by lines whose held-out perplexity ends at {RISE:g} times its lowest or more."
    )
    alone = [one for one in study.encoders() if one.is_monolingual]
    exempt = [one for one in alone if one.cut and overfits(one)]
    tests = study.tested([one for one in alone if one not in exempt], within=True)
    said = [*_said(tests), *(f"{one.label} left out: learned by heart" for one in exempt)]
    if not tests:
        return Claim("k", sentence, "; ".join([*said, _missing("monolingual")]), "not tested", how)
    return Claim("k", sentence, "; ".join(said), "supported" if is_a_gain(tests) else "refuted", how)


def own_modules_help_within(study: Study) -> Claim:
    """Claim (o): modules of each language's own help within languages and hurt zero-shot."""
    sentence = "Modules of each language's own help within languages and hurt zero-shot transfer."
    how = (
        f"Encoders with feed-forward, attention or adapter modules by {MASKED}, all together. {RULE} "
        f"Supported when they gain within languages and lose zero-shot, refuted when one is not so."
    )
    encoders = [one for one in study.encoders() if one.has_own and one.method == MASKED]
    return _both("o", sentence, how, _halves(study, encoders), (is_a_gain, is_a_loss))


def meta_learning_helps_both(study: Study) -> Claim:
    """Claim (p): meta-learned adapters help within languages and zero-shot."""
    sentence = "Meta-learned adapters help both within languages and in zero-shot transfer."
    how = (
        f"Encoders with adapters by {META}, all together. {RULE} Supported when they gain within languages "
        f"and zero-shot, refuted when one is not so."
    )
    encoders = [one for one in study.encoders() if one.method == META and one.modules == "adapter"]
    return _both("p", sentence, how, _halves(study, encoders), (is_a_gain, is_a_gain))


def overfits(encoder: FromText) -> bool:
    """Tell whether every seed ends well above its lowest perplexity in a language."""
    found = []
    for _, run in encoder.runs:
        for rows in grouped(run_rows(run, Perplexity)[0], lambda row: row.language).values():
            last = max(rows, key=lambda row: row.epoch).score
            found.append(last >= RISE * min(row.score for row in rows))
    return bool(found) and all(found)


Halves = tuple[list[Comparison], list[Comparison]]


def _halves(study: Study, encoders: Sequence[FromText]) -> Halves:
    """Return the tests within languages, and zero-shot."""
    return study.tested(encoders, within=True), study.tested(encoders, within=False)


def _both(letter: str, sentence: str, how: str, halves: Halves, rules: Sequence[object]) -> Claim:
    said, held = [], []
    for name, tests, rule in zip(("within languages", "zero-shot"), halves, rules, strict=True):
        if tests:
            said.append(f"{name}: {'; '.join(_said(tests))}")
            held.append(rule(tests))  # type: ignore[operator]
    if not said:
        return Claim(letter, sentence, _missing("such"), "not tested", how)
    if len(held) < 2 and all(held):
        return Claim(letter, sentence, f"{said[0]}; the other half not measured", "not tested", how)
    return Claim(letter, sentence, "; ".join(said), "supported" if all(held) else "refuted", how)


def _said(tests: Sequence[Comparison]) -> list[str]:
    """Write the differences, encoder by encoder, with a star where more than chance."""
    return [
        f"{label} " + ", ".join(f"{one.place.task} {one.place.language} {gain(one)}" for one in own)
        for label, own in grouped(tests, lambda one: one.system.encoder).items()
    ]


def _missing(what: str) -> str:
    return f"no {what} encoder scored beside the joint one, with predictions"
