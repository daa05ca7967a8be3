"""ELECTRA encoders."""

from dataclasses import replace

from isogloss.plugins import FAMILIES

ELECTRA = replace(
    FAMILIES["bert"],
    name="electra",
    masked_lm_scores=lambda model, states: model.generator_lm_head(model.generator_predictions(states)),
    tag_scores=lambda model, states: model.classifier(model.dropout(states)),
)
"""ELECTRA (Clark et al. 2020): BERT's layers. Embeddings may be narrower than states."""
