"""Which of a frozen encoder's parameters does each language need? Gates learned on batches of your own.

"On Negative Interference in Multilingual Models", Sections 3.2 and 3.4, Fig. 4.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any

import pandas as pd
from annotated_types import Gt, Lt
from torch import Tensor

from isogloss.core.arguments import checks_arguments
from isogloss.core.errors import ConfigError
from isogloss.core.identity import derive
from isogloss.core.progress import OnProgress
from isogloss.core.run_parts import Positive, Rate, Whole, with_fields
from isogloss.encoders.shared_weights import differentiable_copy
from isogloss.features.language_gates.diagnostic import similarity_rows
from isogloss.features.language_gates.gate_training import GATE_UPDATES, Drawn, GateTraining, learn_gates_on
from isogloss.features.language_gates.gates import GateKinds, Mask, OfAttention, OfFeedForward, gate_groups
from isogloss.functional.batches import GivenBatch, list_batches, model_loss
from isogloss.functional.beginning import showing_progress
from isogloss.functional.given_models import TextModel
from isogloss.functional.preparing import require_layers
from isogloss.training.fit import Callbacks

MIN_LANGUAGES = 2
"""Languages that are compared."""


@checks_arguments
def language_gates(
    model: TextModel,
    batches: Mapping[str, Iterable[Any]],
    loss: Callable[[Any, Any], Tensor] | None = None,
    *,
    sparsity: Annotated[float, Gt(0), Lt(1)] = 0.5,
    attention: OfAttention = "row",
    feed_forward: OfFeedForward = "row",
    steps: Positive = 300,
    learning_rate: Rate = 0.1,
    draws: Positive = 2,
    seed: Whole = 0,
    on_progress: OnProgress | None = None,
) -> pd.DataFrame:
    """Return the overlap of the parameters that languages need, by pair of languages and part.

    For each language hard-concrete gates over the parameters of the frozen model are learned, so that the
    model keeps all but a share ``sparsity`` of them (Eq. 1), ``draws`` times: a language's pairs with itself
    are the control. A gate controls a weight, a row of a matrix, or a head (in ``attention``) or neuron (in
    ``feed_forward``), or "none". ``batches`` are taken in turn for ``steps`` updates; they and ``loss`` are
    as for ``gradient_conflict``. Gates are drawn by ``seed``.

    Columns: ``first``, ``first_draw``, ``second``, ``second_draw``, ``layer`` (from 1, empty for all),
    ``module``, ``gates`` (their number), ``cosine`` and ``correlation`` of the gates' log α, the cosine of
    their probabilities of being open (``open_cosine``), the Jaccard index of those kept (``overlap``), and
    how many only one keeps.

    ConfigError for fewer than two languages, ModelError for a family without known layers.

    Device: as the model, where batches must be. Cost: ``steps`` passes forward and backward for each
    language and draw, and the memory of one more model.

    >>> isogloss.language_gates(model, {"en": english, "sw": swahili})       # doctest: +SKIP
    """
    network = require_layers(model, "language_gates")
    batches = list_batches(batches)
    missing = [language for language, language_batches in batches.items() if not len(language_batches)]
    if missing or len(batches) < MIN_LANGUAGES:
        raise ConfigError(
            f"language_gates: found {len(batches)} languages, without batches: "
            f"{', '.join(missing) or 'none'}. Give batches of two languages or more."
        )
    kinds = GateKinds(attention=attention, feed_forward=feed_forward)
    training = GateTraining(
        steps=steps,
        rows=0,
        sparsity=sparsity,
        updates=with_fields(GATE_UPDATES, learning_rate=learning_rate, precision="float32"),
    )
    compute = loss or model_loss
    network_copy = differentiable_copy(network)

    def learn_mask(language: str, draw: int) -> Mask:
        seed_of_draw = derive(seed, language, draw)
        gates = learn_gates_on(
            (network_copy, gate_groups(network_copy, kinds, language=language)),
            lambda step: Drawn(
                GivenBatch(batches[language][step % len(batches[language])]),
                derive(seed_of_draw, step),
                step / steps,
            ),
            lambda trained_model, batch: compute(trained_model, batch.inputs),
            training,
            seed=seed_of_draw,
            callbacks=Callbacks(on_progress=progress, what=f"gates of {language}"),
        )
        return Mask(
            language=language, draw=draw, kinds=kinds, log_alpha=gates.log_alpha, above=gates.threshold
        )

    with showing_progress(on_progress) as progress:
        masks = [learn_mask(language, draw) for language in batches for draw in range(draws)]
    rows = similarity_rows("", masks, gate_groups(network, kinds, language=next(iter(batches))))
    return pd.DataFrame(list(rows)).drop(columns="model")
