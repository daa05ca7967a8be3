"""What is claimed of language-specific parameters, tested on the gates at hand.

"On Negative Interference in Multilingual Models", Section 3.4 and Fig. 4a.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from isogloss.metrics.correlation import spearman
from isogloss.metrics.significance import paired_t_test
from isogloss.oldreports.claims import Claim
from isogloss.oldreports.comparison import LEVEL
from isogloss.oldreports.gate_tables import KINDS, MaskLikeness, Part
from isogloss.oldreports.gradients import number, own_cosine
from isogloss.oldreports.paths import grouped

FEWEST_LAYERS = 3
"""Layers a rank correlation is computed from."""

Unit = tuple[str, int]
"""An encoder and the number of a draw: of each language one mask, learned independently of all others."""

Found = Mapping[Unit, float]


@dataclass(frozen=True)
class Tested:
    """One half of a claim: what was found in words, and whether it holds; None where it cannot be tested."""

    said: str
    holds: bool | None


def gate_claims(rows: Sequence[MaskLikeness]) -> tuple[Claim, ...]:
    """Test the claim; none where no masks were compared."""
    return (lower_layers_are_shared(rows),) if rows else ()


def lower_layers_are_shared(rows: Sequence[MaskLikeness]) -> Claim:
    """Claim (n), by gates: lower layers and attention are shared more than upper ones, feed-forward."""
    sentence = (
        "Lower layers are shared more than upper ones, and attention more than feed-forward: by the "
        "parameters each language needs."
    )
    how = (
        f"Cosine of two languages' gate parameters, as in the paper, divided by the geometric mean of the "
        f"two languages' own cosines (masks learned twice), which corrects it for noise. In each draw, "
        f"attention and feed-forward: Spearman's ρ of layer and cosine, mean over both and over pairs of "
        f"languages, t-test against 0 over draws and encoders; attention minus feed-forward, mean over "
        f"layers and pairs, likewise. Supported when ρ is below and the difference above 0, both with "
        f"p < {LEVEL}, refuted when one is not. In brackets the same by correlation, that is without what "
        f"all gates have in common."
    )
    parts = [_by_layer(rows), _by_module(rows)]
    said = "; ".join(part.said for part in parts)
    known = [part.holds for part in parts if part.holds is not None]
    if not all(known):
        return Claim("n", sentence, said, "refuted", how)
    return Claim("n", sentence, said, "supported" if len(known) == len(parts) else "not tested", how)


def _by_layer(rows: Sequence[MaskLikeness]) -> Tested:
    found, beside = (_rhos(rows, measure) for measure in ("cosine", "correlation"))
    if len(found) < 2:
        return Tested("layers: fewer than two draws of three layers that are more than noise", None)
    means = list(found.values())
    test = paired_t_test(means, [0.0] * len(means))
    said = f"ρ {_written(found, beside)} of layer and cosine, p = {test.p_value:.4f}, n = {len(means)}"
    return Tested(said, fmean(means) < 0 and test.p_value < LEVEL)


def _by_module(rows: Sequence[MaskLikeness]) -> Tested:
    found, beside = (_differences(rows, measure) for measure in ("cosine", "correlation"))
    if len(found) < 2:
        return Tested("modules: fewer than two draws of attention and feed-forward", None)
    means = list(found.values())
    test = paired_t_test(means, [0.0] * len(means))
    said = f"attention minus feed-forward {_written(found, beside)}, p = {test.p_value:.4f}, n = {len(means)}"
    return Tested(said, fmean(means) > 0 and test.p_value < LEVEL)


def _written(found: Found, beside: Found) -> str:
    correlation = f" ({number(fmean(beside.values()))})" if beside else ""
    return f"{number(fmean(found.values()))}{correlation}"


def _rhos(rows: Sequence[MaskLikeness], measure: str) -> Found:
    """Return for each unit the mean rank correlation of layer and corrected likeness."""
    units: dict[Unit, list[float]] = {}
    for unit, pairs in _corrected(rows, measure).items():
        for parts in pairs:
            for kind in KINDS:
                own = [(layer, value) for (layer, module), value in parts.items() if module == kind]
                if len(own) >= FEWEST_LAYERS:
                    rho = spearman([float(layer or 0) for layer, _ in own], [value for _, value in own]).rho
                    units.setdefault(unit, []).append(0.0 if math.isnan(rho) else rho)
    return {unit: fmean(values) for unit, values in units.items()}


def _differences(rows: Sequence[MaskLikeness], measure: str) -> Found:
    """Return for each unit the mean of corrected likeness in attention minus that in feed-forward."""
    units: dict[Unit, list[float]] = {}
    for unit, pairs in _corrected(rows, measure).items():
        for parts in pairs:
            sides = [[value for (_, module), value in parts.items() if module == kind] for kind in KINDS]
            if all(sides):
                units.setdefault(unit, []).append(fmean(sides[0]) - fmean(sides[1]))
    return {unit: fmean(values) for unit, values in units.items()}


def _corrected(rows: Sequence[MaskLikeness], measure: str) -> dict[Unit, list[dict[Part, float]]]:
    """Return for each unit and pair of languages the corrected likeness of single layers."""
    layers = [row for row in rows if row.layer and row.module in KINDS and getattr(row, measure) is not None]
    own = {
        key: [float(getattr(row, measure)) for row in group]
        for key, group in grouped(
            (row for row in layers if row.first == row.second), lambda r: (r.encoder, r.first, r.part)
        ).items()
    }
    together = [row for row in layers if row.first != row.second and row.first_draw == row.second_draw]
    found: dict[Unit, list[dict[Part, float]]] = {}
    for (encoder, draw, *_), group in grouped(
        together, lambda r: (r.encoder, r.first_draw, r.first, r.second)
    ).items():
        parts = {}
        for row in group:
            controls = [own.get((encoder, code, row.part), []) for code in (row.first, row.second)]
            within = own_cosine(*controls)
            if within is not None:
                parts[row.part] = float(getattr(row, measure)) / within
        found.setdefault((encoder, draw), []).append(parts)
    return found
