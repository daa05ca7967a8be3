"""What is claimed of gradients in multilingual models, each tested on the rows at hand.

"On Negative Interference in Multilingual Models", Section 3.4 and Figs 3 and 4. The paper compares whole
gradients during training, and looks at layers through pruning masks; here layers are compared by gradients.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from isogloss.metrics.correlation import spearman
from isogloss.metrics.significance import paired_t_test
from isogloss.oldreports.claims import Claim
from isogloss.oldreports.comparison import LEVEL
from isogloss.oldreports.gradients import WHOLE, Conflict, number, own_cosine
from isogloss.oldreports.paths import grouped

FEWEST_LAYERS = 3
"""Layers a rank correlation is computed from."""

DIVIDED = (
    "divided by the geometric mean of the two languages' own cosines (over all draws), which corrects it for "
    "noise; where that is below 0.05 the batches were too small"
)

Part = tuple[int | None, str]
About = tuple[str, ...]


@dataclass(frozen=True)
class Tested:
    """One half of a claim: what was found in words, and whether it holds; None where it cannot be tested."""

    said: str
    holds: bool | None


def gradient_claims(rows: Sequence[Conflict]) -> tuple[Claim, ...]:
    """Test both claims on gradients of masked language modelling; none where none were measured."""
    own = [row for row in rows if not row.method and row.cosine is not None]
    return (languages_conflict(own), lower_layers_are_shared(own)) if own else ()


def languages_conflict(rows: Sequence[Conflict]) -> Claim:
    """Claim (l): gradients of two languages are less alike than of one, of distant ones least."""
    sentence = (
        "Gradients of two languages are less alike than those of one language, and those of distant "
        "languages less than those of close ones."
    )
    how = (
        f"Masked language modelling, all parameters. In each draw the mean over pairs of cosine minus the "
        f"geometric mean of the two languages' own; paired t-test over draws and encoders. Distance: pairs "
        f"are ranked by the subwords their texts share; in each draw the mean cosine of the closer half "
        f"against that of the distant half, {DIVIDED}; paired t-test over draws. Supported when both "
        f"differences have the right sign with p < {LEVEL}, refuted when one has not."
    )
    return _claim("l", sentence, how, [_less_than_within(rows), _distant_less_than_close(rows)])


def lower_layers_are_shared(rows: Sequence[Conflict]) -> Claim:
    """Claim (m), by gradients: lower layers and attention are shared more than upper ones, feed-forward."""
    sentence = (
        "Lower layers are shared more than upper ones, and attention more than feed-forward: by gradients."
    )
    how = (
        f"Cosine between two languages in each layer, {DIVIDED}. Spearman's ρ of layer and cosine, mean over "
        f"pairs in each draw, t-test against 0; attention minus feed-forward of all layers likewise. "
        f"Supported when ρ is below and the difference above 0, both with p < {LEVEL}, refuted when one is "
        f"not."
    )
    return _claim("m", sentence, how, [_by_layer(rows), _by_module(rows)])


def _claim(letter: str, sentence: str, how: str, parts: Sequence[Tested]) -> Claim:
    said = "; ".join(part.said for part in parts)
    known = [part.holds for part in parts if part.holds is not None]
    if not all(known):
        return Claim(letter, sentence, said, "refuted", how)
    return Claim(letter, sentence, said, "supported" if len(known) == len(parts) else "not tested", how)


def _less_than_within(rows: Sequence[Conflict]) -> Tested:
    pairs = [row for row in rows if row.part == (None, WHOLE) and row.first != row.second]
    units = list(grouped(pairs, lambda row: (row.about, row.draw)).values())
    if len(units) < 2:
        return Tested("fewer than two draws of two languages", None)
    between = [fmean(row.cosine or 0.0 for row in unit) for unit in units]
    within = [fmean(row.within or 0.0 for row in unit) for unit in units]
    test = paired_t_test(between, within)
    said = (
        f"cosine {number(fmean(between))} between, {number(fmean(within))} within, p = {test.p_value:.4f}, "
        f"n = {len(units)}"
    )
    return Tested(said, fmean(between) < fmean(within) and test.p_value < LEVEL)


def _distant_less_than_close(rows: Sequence[Conflict]) -> Tested:
    overlaps = {(row.about, row.first, row.second): row.overlap for row in rows if row.overlap is not None}
    corrected = _corrected(rows, (None, WHOLE))
    ranked = sorted(
        (pair for pair in overlaps if pair in corrected), key=lambda pair: (overlaps[pair] or 0.0, pair)
    )
    half = len(ranked) // 2
    draws = sorted(set.intersection(*(set(corrected[pair]) for pair in ranked))) if ranked else []
    if not half or len(draws) < 2 or overlaps[ranked[0]] == overlaps[ranked[-1]]:
        return Tested("distance: no two pairs of languages, not equally far, in two draws", None)
    distant, close = (
        [fmean(corrected[pair][draw] for pair in some) for draw in draws]
        for some in (ranked[:half], ranked[-half:])
    )
    test = paired_t_test(close, distant)
    said = (
        f"corrected {number(fmean(close))} in the {half} closer, {number(fmean(distant))} in the {half} more "
        f"distant of {len(ranked)} pairs, p = {test.p_value:.4f}, n = {len(draws)}"
    )
    return Tested(said, fmean(close) > fmean(distant) and test.p_value < LEVEL)


def _by_layer(rows: Sequence[Conflict]) -> Tested:
    layers = sorted({row.layer for row in rows if row.layer and row.module == WHOLE})
    found = {layer: _corrected(rows, (layer, WHOLE)) for layer in layers}
    rhos: dict[tuple[About, int], list[float]] = {}
    for pair in _keys(found.values()):
        at = {layer: own[pair] for layer, own in found.items() if pair in own}
        for draw in sorted({draw for own in at.values() for draw in own}):
            known = [(layer, own[draw]) for layer, own in at.items() if draw in own]
            if len(known) >= FEWEST_LAYERS:
                rho = spearman([float(layer) for layer, _ in known], [value for _, value in known]).rho
                rhos.setdefault((pair[0], draw), []).append(0.0 if math.isnan(rho) else rho)
    means = [fmean(own) for own in rhos.values()]
    if len(means) < 2:
        return Tested("layers: fewer than two draws of three layers that are more than noise", None)
    test = paired_t_test(means, [0.0] * len(means))
    said = f"ρ {number(fmean(means))} of layer and cosine, p = {test.p_value:.4f}, n = {len(means)}"
    return Tested(said, fmean(means) < 0 and test.p_value < LEVEL)


def _by_module(rows: Sequence[Conflict]) -> Tested:
    attention, feed_forward = (_corrected(rows, (None, kind)) for kind in ("attention", "feed-forward"))
    units: dict[tuple[About, int], list[tuple[float, float]]] = {}
    for pair in attention.keys() & feed_forward.keys():
        for draw in attention[pair].keys() & feed_forward[pair].keys():
            both = (attention[pair][draw], feed_forward[pair][draw])
            units.setdefault((pair[0], draw), []).append(both)
    ordered = [units[key] for key in sorted(units)]
    if len(ordered) < 2:
        return Tested("modules: fewer than two draws that are more than noise", None)
    ours, theirs = ([fmean(both[side] for both in unit) for unit in ordered] for side in (0, 1))
    test = paired_t_test(ours, theirs)
    said = (
        f"corrected {number(fmean(ours))} in attention, {number(fmean(theirs))} in feed-forward, "
        f"p = {test.p_value:.4f}, n = {len(ordered)}"
    )
    return Tested(said, fmean(ours) > fmean(theirs) and test.p_value < LEVEL)


Pair = tuple[About, str, str]


def _corrected(rows: Iterable[Conflict], part: Part) -> dict[Pair, dict[int, float]]:
    """Return, for each model and pair of languages, the corrected cosine of a part by draw."""
    groups = grouped(
        (row for row in rows if row.part == part and row.cosine is not None),
        lambda row: (row.about, row.first, row.second),
    )
    values = {key: {row.draw: row.cosine or 0.0 for row in group} for key, group in groups.items()}
    found = {}
    for (about, first, second), own in values.items():
        controls = [list(values.get((about, one, one), {}).values()) for one in (first, second)]
        within = own_cosine(*controls) if first != second else None
        if within is not None:
            found[about, first, second] = {draw: value / within for draw, value in own.items()}
    return found


def _keys(parts: Iterable[dict[Pair, dict[int, float]]]) -> list[Pair]:
    return list(dict.fromkeys(pair for part in parts for pair in part))
