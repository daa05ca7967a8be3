"""Measurements of models, encoders and scores, and the table that lists them."""

from typing import TYPE_CHECKING

from isogloss.core.registry import Registry

if TYPE_CHECKING:
    from isogloss.diagnostics.setting import Diagnostic

DIAGNOSTICS: "Registry[type[Diagnostic]]" = Registry(
    {
        "scores": "isogloss.diagnostics.scores:Scores",
        "run-variance": "isogloss.diagnostics.scores:RunVariance",
        "transfer-gap": "isogloss.diagnostics.scores:TransferGap",
    },
    features="diagnostics",
)
"""[[measure]]: what is measured, and of what."""
