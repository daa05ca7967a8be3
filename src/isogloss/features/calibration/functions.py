"""Calibration of probabilities: their expected error, and the temperature that corrects it.

Ahuja et al. (EMNLP 2022), "On the Calibration of Massively Multilingual Language Models", Section 2: models
are less calibrated in languages without training data. Predictions are put into bins B_m of equal width by
their confidence, the highest probability:

    ECE = Σ_m |B_m|/n · |accuracy(B_m) - mean confidence(B_m)|                                (1)

Temperature scaling (Guo et al. 2017) divides logits z by one number, which is fitted on labelled data:

    T = argmin_T - Σ_i log softmax(z_i / T)_{y_i}                                            (2)

The loss is convex in 1/T, so its only minimum is where its derivative is 0. Predictions do not change.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from isogloss.core.arguments import checks_arguments
from isogloss.core.errors import DataError
from isogloss.core.run_parts import Positive
from isogloss.functional.probabilities import check_probabilities

BINS = 10
"""Bins of the paper."""

COLDEST, HOTTEST = 0.01, 100.0
"""Range of temperatures. Without a wrong prediction, the best temperature is 0."""

HALVINGS = 100
"""Steps of the bisection, which exceed the precision of a number."""

IGNORED = -100
"""Label of items that are ignored, as in losses of torch."""

Numbers = Tensor | npt.NDArray[Any] | Sequence[Any]
"""Numbers [item, class], or labels [item]."""

Array = npt.NDArray[np.float64]


@checks_arguments
def calibration_error(probabilities: Numbers, gold: Numbers, *, bins: Positive = BINS) -> float:
    """Return the expected calibration error (ECE): the mean distance of confidence and accuracy over bins.

    ``probabilities`` have the shape [item, class], ``gold`` are the right classes. 0 is perfect, 1 is a model
    that is always sure and always wrong. Items with the label -100 are ignored. The value depends on the
    number of ``bins`` and grows for few items, so compare languages with similar numbers.

    DataError for numbers that are no probabilities, or labels that do not fit.

    Device: the CPU. Cost: one pass over the numbers.

    >>> import numpy as np
    >>> import isogloss
    >>> probabilities = np.array([[0.8, 0.2], [0.8, 0.2], [0.8, 0.2], [0.8, 0.2]])
    >>> round(isogloss.calibration_error(probabilities, [0, 0, 0, 1]), 3)
    0.05
    """
    values, labels = _read(probabilities, gold, "calibration_error: probabilities")
    check_probabilities(values, "calibration_error: probabilities")
    confidence = values.max(axis=1)
    right = values.argmax(axis=1) == labels
    numbers = np.clip(np.ceil(confidence * bins).astype(int) - 1, 0, bins - 1)
    surplus = np.bincount(numbers, weights=confidence - right, minlength=bins)
    return float(np.abs(surplus).sum() / len(labels))


@checks_arguments
def fit_temperature(logits: Numbers, gold: Numbers) -> float:
    """Return the temperature that minimises the negative log-likelihood of labels (Guo et al. 2017).

    ``logits`` have the shape [item, class], ``gold`` are the right classes. Divide logits by the result
    before the softmax: above 1 it lowers confidence. Fit it on held-out data that the model was not trained
    on, such as the source's dev set, and apply it in other languages. The result is between 0.01 and 100.
    Items with the label -100 are ignored.

    DataError for logits that are not finite, or labels that do not fit.

    Device: the CPU. Cost: a hundred passes over the numbers.

    >>> import numpy as np
    >>> import isogloss
    >>> logits = np.log([[0.9, 0.1], [0.9, 0.1], [0.9, 0.1], [0.9, 0.1]])
    >>> round(isogloss.fit_temperature(logits, [0, 0, 0, 1]), 2)
    2.0
    """
    values, labels = _read(logits, gold, "fit_temperature: logits")
    right = values[np.arange(len(labels)), labels]
    low, high = 1 / HOTTEST, 1 / COLDEST
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        expected = (softmax(middle * values) * values).sum(axis=1)
        if (expected - right).mean() < 0:  # The derivative of the loss by 1/T.
            low = middle
        else:
            high = middle
    return 2 / (low + high)


def softmax(logits: Array) -> Array:
    """Return probabilities [item, class]."""
    exponents = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities: Array = exponents / exponents.sum(axis=1, keepdims=True)
    return probabilities


def _read(numbers: Numbers, gold: Numbers, name: str) -> tuple[Array, npt.NDArray[np.int64]]:
    """Return numbers [item, class] and labels [item] of the items with a label."""
    values = _as_array(numbers)
    labels = _as_array(gold)
    if values.ndim != 2 or labels.shape != values.shape[:1]:
        raise DataError(
            f"{name}: found arrays of shape {list(values.shape)}, and labels of shape {list(labels.shape)}; "
            f"expected [item, class] and [item]."
        )
    is_labelled = labels != IGNORED
    if not np.isfinite(values).all() or not is_labelled.any():
        raise DataError(f"{name}: expected finite numbers and one label or more.")
    labels = labels[is_labelled].astype(np.int64)
    if labels.min() < 0 or labels.max() >= values.shape[1]:
        raise DataError(
            f"{name}: found labels from {labels.min()} to {labels.max()}; expected 0 to "
            f"{values.shape[1] - 1}, or -100 for items to ignore."
        )
    return values[is_labelled], labels


def _as_array(numbers: Numbers) -> Array:
    values = numbers.detach().float().cpu().numpy() if isinstance(numbers, Tensor) else numbers
    return np.asarray(values, dtype=np.float64)
