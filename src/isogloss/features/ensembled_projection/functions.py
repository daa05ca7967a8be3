"""Average the probabilities of a sentence's words with those of the words that translate them.

Ebing & Glavaš (ACL 2025), "The Devil Is in the Word Alignment Details: On Translation-Based Cross-Lingual
Transfer for Token Classification Tasks". Translate-train has a model for the target sentence x_T, and
translate-test a model for its translation x̃_S into the source, whose labels are projected along word links.
Both predict each word i of the target together:

    p(y_i) = ½ p_TT(y_i; x_T) + ½ p_S(y_link(i); x̃_S)                                        (1)

A word with several links has the mean of the words that they lead to. A word without links has only p_TT.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from isogloss.core.arguments import checks_arguments
from isogloss.core.errors import DataError
from isogloss.core.run_parts import Share
from isogloss.functional.probabilities import check_probabilities

Probabilities = Tensor | npt.NDArray[Any] | Sequence[Any]
"""Numbers [word, class]."""

Links = Iterable[tuple[int, int]]
"""0-based pairs of a word of the target sentence and a word of its translation."""


@checks_arguments
def ensemble_projection(
    target: Probabilities, translated: Probabilities, links: Links, *, share: Share = 0.5
) -> npt.NDArray[np.float64]:
    """Return the probabilities of a sentence's words, averaged with those of their translations.

    Ensembled projection (Ebing & Glavaš 2025): ``target`` are the probabilities [word, class] of a model that
    reads the sentence, such as translate-train, ``translated`` those of a model that reads its translation
    into the source language, ``links`` the pairs of words that translate each other, first the word of the
    sentence, as ``align`` returns them. ``share`` is the weight of the translation: 0 leaves ``target`` as it
    is, 1 is label projection (translate-test). Words without a link always have the probabilities of
    ``target``.

    DataError for different classes, or links beyond the words.

    Device: the CPU. Cost: one pass over the numbers.

    >>> import numpy as np
    >>> import isogloss
    >>> target = np.array([[0.5, 0.5], [0.9, 0.1]])
    >>> translated = np.array([[0.2, 0.8]])
    >>> isogloss.ensemble_projection(target, translated, [(0, 0)]).round(2).tolist()
    [[0.35, 0.65], [0.9, 0.1]]
    """
    own = _read("target", target)
    other = _read("translated", translated)
    if own.shape[1] != other.shape[1]:
        raise DataError(
            f"ensemble_projection: {own.shape[1]} classes in target and {other.shape[1]} in translated. Give "
            f"both models the same labels, in one order."
        )
    matrix = np.zeros((len(own), len(other)))
    for word, translation in links:
        if not (0 <= word < len(own) and 0 <= translation < len(other)):
            raise DataError(
                f"ensemble_projection: links: found {(word, translation)}; expected words 0 to "
                f"{len(own) - 1} of the sentence and 0 to {len(other) - 1} of its translation."
            )
        matrix[word, translation] = 1
    counts = matrix.sum(axis=1, keepdims=True)
    projected = matrix @ other / np.maximum(counts, 1)
    result: npt.NDArray[np.float64] = np.where(counts > 0, (1 - share) * own + share * projected, own)
    return result


def _read(name: str, numbers: Probabilities) -> npt.NDArray[np.float64]:
    values = np.asarray(
        numbers.detach().float().cpu() if isinstance(numbers, Tensor) else numbers, dtype=np.float64
    )
    if values.ndim != 2 or not np.isfinite(values).all():
        raise DataError(
            f"ensemble_projection: {name}: found numbers of shape {list(values.shape)}; expected finite "
            f"probabilities [word, class]."
        )
    check_probabilities(values, f"ensemble_projection: {name}")
    return values
