"""Sentence retrieval: how often is a sentence's translation its nearest neighbour?

Accuracy in both directions among held-out translations, on mean-pooled states (Artetxe & Schwenk 2019 use the
same measure on Tatoeba). By cosine, and by CSLS (Conneau et al. 2018, "Word Translation Without Parallel
Data", Eq. 3), which corrects for hubs: sentences that are near to all others. Centring each language removes
a constant difference between languages.
"""

from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize

SIMILARITY_TOLERANCE = 1e-6
"""Similarities closer than this are equal, so that rounding does not choose between two copies."""


def directions(states: Float[Tensor, "item dim"], *, centred: bool) -> Float[Tensor, "item dim"]:
    """Return states normalised to length 1, after subtracting their mean if ``centred``."""
    return normalize(states - states.mean(dim=0) if centred else states, dim=1)
