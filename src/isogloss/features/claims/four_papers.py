"""The claims of the four papers, in their order.

claims.toml has the texts, and a module for each paper has the rules.
"""

import tomllib
from pathlib import Path

from isogloss.features.claims import adjustment, interference, transfer, x_mixup
from isogloss.reports.verdicts import Claim

PAPERS = {
    "1": ("transfer", "Zero-shot Cross-lingual Transfer is Under-specified Optimization"),
    "2": ("x-mixup", "Enhancing Cross-lingual Transfer by Manifold Mixup"),
    "3": (
        "adjustment",
        "The Impact of Cross-Lingual Adjustment of Contextual Word Representations on Zero-Shot Transfer",
    ),
    "4": ("interference", "On Negative Interference in Multilingual Models"),
}
"""Subject and title of each paper, by the first character of its claims' ids."""

RULES = {**transfer.RULES, **x_mixup.RULES, **adjustment.RULES, **interference.RULES}
"""Rules by claim id."""

TEXTS = Path(__file__).with_name("claims.toml")


def read_claims() -> tuple[Claim, ...]:
    """Read the texts of all claims and add their rules, papers' titles and subjects."""
    claims = []
    for key, texts in tomllib.loads(TEXTS.read_text(encoding="utf-8")).items():
        subject, title = PAPERS[key[0]]
        claims.append(Claim(id=key, test=RULES[key], title=title, subject=subject, **texts))
    return tuple(claims)


CLAIMS = read_claims()
