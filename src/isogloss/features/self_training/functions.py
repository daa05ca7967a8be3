"""Choose labels of unlabelled text by the probabilities of a model, for your training loop."""

from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from isogloss.core.arguments import checks_arguments
from isogloss.core.errors import DataError
from isogloss.core.run_parts import Share
from isogloss.functional.probabilities import check_probabilities
from isogloss.tasks.batch import IGNORED

DEFAULT_THRESHOLD = 0.9
"""Probability above which a label is learned."""


@checks_arguments
def silver_labels(
    probabilities: Tensor | npt.NDArray[Any], *, threshold: Share = DEFAULT_THRESHOLD
) -> npt.NDArray[np.int64]:
    """Return the most probable class of each item, or -100 where its probability is too low.

    Self-training: y = argmax p where max p > τ. ``probabilities`` of a teacher have the shape [item, class];
    each row sums to 1. Losses of torch and transformers ignore labels of -100. ``threshold`` 0 keeps all
    labels, 1 none. Of equally probable classes the first is chosen.

    DataError for numbers that are no probabilities.

    Device: the CPU. Cost: one pass over the numbers.

    >>> import numpy as np
    >>> import isogloss
    >>> isogloss.silver_labels(np.array([[0.95, 0.05], [0.4, 0.6]])).tolist()
    [0, -100]
    """
    values = np.asarray(
        probabilities.detach().float().cpu() if isinstance(probabilities, Tensor) else probabilities,
        dtype=np.float64,
    )
    if values.ndim != 2 or not values.size:
        raise DataError(
            f"silver_labels: probabilities: found an array of shape {list(values.shape)}; expected [item, "
            f"class]."
        )
    check_probabilities(values, "silver_labels: probabilities")
    labels: npt.NDArray[np.int64] = values.argmax(axis=1)
    labels[values.max(axis=1) <= threshold] = IGNORED
    return labels
