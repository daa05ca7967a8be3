"""Mine sentences that translate each other from states of two languages."""

import pandas as pd

from isogloss.core.arguments import checks_arguments
from isogloss.core.run_parts import Positive, Whole
from isogloss.features.mining.vectors import Margin
from isogloss.features.mining.vectors import mine as mine_vectors
from isogloss.functional.states import (
    StatesLike,
    choose_layer,
    read_states,
)
from isogloss.similarity.nearest import directions


@checks_arguments
def mine(
    first: StatesLike,
    second: StatesLike,
    *,
    margin: Margin = "ratio",
    neighbours: Positive = 4,
    centred: bool = False,
    layer: Whole = -1,
) -> pd.DataFrame:
    """Return pairs of sentences that may translate each other, with their scores, the highest first.

    Artetxe & Schwenk (2019): columns ``first`` and ``second`` are numbers of sentences, each in one pair at
    most, ``score`` the ``margin`` of their cosine over that with the nearest ``neighbours``: ratio, distance,
    or only the cosine. ``layer`` chooses among the layers of the states by position, the last by default;
    ``centred`` subtracts each side's mean. Which scores are translations is for you to decide, on pairs that
    you know.

    DataError for arrays of a different shape, ConfigError for a layer that the states lack.

    Device: the CPU. Cost: the similarity of each sentence with each.

    >>> import numpy as np
    >>> import isogloss
    >>> sentences = np.eye(3)
    >>> isogloss.mine(sentences, sentences[[2, 0, 1]], neighbours=2)[["first", "second"]].values.tolist()
    [[0, 1], [1, 2], [2, 0]]
    """
    sides = [read_states(first, "mine: first"), read_states(second, "mine: second")]
    vectors = [choose_layer(side.vectors, layer, "mine") for side in sides]
    a, b = (directions(side, centred=centred) for side in vectors)
    pairs, scores = mine_vectors(a, b, neighbours=neighbours, margin=margin)
    return pd.DataFrame({"first": pairs[:, 0], "second": pairs[:, 1], "score": scores})
