"""X-Mixup in a training loop of your own, and mixing while a model predicts.

Yang et al. (2022), "Enhancing Cross-lingual Transfer by Manifold Mixup", Section 4.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager

from torch import Tensor, nn

from isogloss.core.errors import ConfigError, DataError
from isogloss.encoders import mixup as encoder_mixup
from isogloss.encoders.family import Model
from isogloss.encoders.mixup import Attends, Mixed, MixingTrace, Mixup, Residual
from isogloss.functional.models import require_encoder
from isogloss.methods.x_mixup import XMixup
from isogloss.tasks.batch import EncodedRow
from isogloss.tasks.classification import TextClassification
from isogloss.tasks.tagging import Tagging
from isogloss.tasks.task import ScoredTask
from isogloss.training.sides import RowPair, collate_pairs

Inputs = Mapping[str, Tensor]
"""What a tokenizer returns ([row subword], on the model's device), with labels where they are needed."""

IGNORED = -100
"""The label of a subword that is not scored, as in transformers."""

Links = Sequence[tuple[int, int]]
"""Pairs of the numbers of a subword of the source and of one of the target, special ones counted."""

TASKS: dict[str, Callable[[tuple[str, ...]], ScoredTask]] = {
    "ForSequenceClassification": lambda labels: TextClassification(name="classification", labels=labels),
    "ForTokenClassification": lambda labels: Tagging(name="tagging", labels=labels, metric="accuracy"),
}
"""By the end of a model's class name."""


def mixing(
    model: Model,
    *,
    layer: int,
    ratio: float = 0.5,
    mask: Tensor | None = None,
    attends: Attends | None = None,
    residual: Residual = "normed",
    mixed: Mixed | None = None,
    languages: tuple[str, ...] = (),
    links: Tensor | None = None,
) -> AbstractContextManager[MixingTrace]:
    """Let one layer mix states while a model runs on [source rows; target rows] (Eqs 2 to 4).

    Row i of the second half is the translation of row i of the first. ``layer`` counts from 1, ``ratio`` is
    λ, the weight of the source; ``mask`` [row subword] is 1 at real subwords, None without padding.
    ``attends``, ``residual`` and ``mixed`` are those of the method ``x-mixup``: encoders with norms first and
    decoders mix with mixed = "states". ``links`` [pair target source], for attends = "links", are true at
    linked subwords, or weights such as a translator's cross-attention. The trace has the ``weights`` of Eq. 3
    and the ``ratios`` of the last pass. A hook is in the model meanwhile, which mixes only in the thread that
    entered this context.

    ModelError for a family that cannot mix, ConfigError for a layer that does not exist.

    >>> import torch, isogloss
    >>> model, tokenizer = isogloss.load_encoder("shipped")
    >>> batch = tokenizer(["tuki mirne", "bero zal"], return_tensors="pt", padding=True)
    >>> with torch.no_grad(), isogloss.mixing(model, layer=2, mask=batch["attention_mask"]) as trace:
    ...     states = model(**batch).last_hidden_state
    >>> trace.ratios.tolist()
    [0.5]
    """
    require_encoder(model, "mixing")
    mixup = Mixup(layer=layer, ratio=ratio, learned=False, attends=attends, residual=residual, mixed=mixed)
    return encoder_mixup.mixing(model, mixup, mask, languages, links, in_this_thread=True)


class MixupLoss(nn.Module):
    """The loss of X-Mixup (Eqs 7 and 8) of a model for sequence or token classification.

    Called with the inputs of examples and of their translations, both with labels: row i of one is the
    translation of row i of the other. Its parameters are W and b of the mixup ratio (Eq. 5); they belong into
    the optimizer, as the model's do.

    ``alpha`` is the weight of the source's loss (the paper's, 0.4 for classification and 0.8 for tagging, if
    left out), ``mse`` and ``kl`` are those of the consistency of representations and of predictions; the
    others are those of the method ``x-mixup``. A target without labels has the source's in classification; in
    tagging they are a teacher's.

    >>> loss = isogloss.MixupLoss(model)                                     # doctest: +SKIP
    >>> optimizer = torch.optim.AdamW([*model.parameters(), *loss.parameters()], lr=2e-5)  # doctest: +SKIP
    >>> loss(english, swahili).backward()                                    # doctest: +SKIP
    """

    def __init__(
        self,
        model: Model,
        *,
        layer: int = 0,
        ratio: float = 0.5,
        learned_ratio: bool = True,
        attends: Attends | None = None,
        residual: Residual = "normed",
        mixed: Mixed | None = None,
        alpha: float | None = None,
        mse: float = 1.0,
        kl: float = 1.0,
    ) -> None:
        super().__init__()
        require_encoder(model, "MixupLoss")
        self._task = _task(model)
        self._method = XMixup(
            layer=layer,
            ratio=ratio,
            learned_ratio=learned_ratio,
            residual=residual,
            attends=attends,
            mixed=mixed,
            alpha=alpha,
            mse=mse,
            kl=kl,
        )
        # In a list: the model's parameters are not the loss's.
        self._mixed = [self._method.mixed_model(self._task, model)]
        self.ratio = self._mixed[0].ratio

    def forward(self, source: Inputs, target: Inputs, links: Iterable[Links] | None = None) -> Tensor:
        """Return the loss of a batch; ``links`` are of subwords, required by attends = "links".

        DataError where the numbers of rows or of links differ.
        """
        [mixed] = self._mixed
        sides = [self._rows(inputs, source) for inputs in (source, target)]
        linked = [None] * len(sides[0]) if links is None else list(links)
        if not len(sides[0]) == len(sides[1]) == len(linked):
            raise DataError(
                f"MixupLoss: {len(sides[0])} examples, {len(sides[1])} translations, links of {len(linked)}; "
                f"expected equal numbers."
            )
        pairs = [RowPair(*pair) for pair in zip(*sides, linked, strict=True)]
        batch = collate_pairs(pairs, padding=int(mixed.network.config.pad_token_id or 0))
        return self._method.loss(self._task, mixed, batch.to(mixed.network.device))

    def _rows(self, inputs: Inputs, source: Inputs) -> list[EncodedRow]:
        """Return the rows of one side, without padding and with their labels."""
        labels = inputs.get("labels", source["labels"]).cpu()
        if labels.ndim > 1 and "labels" not in inputs:
            raise DataError(
                "MixupLoss: the translations have no labels, and words are labelled one by one. Add those of "
                "a teacher, or carry them over by isogloss.project_labels."
            )
        rows = []
        for number, subwords in enumerate(inputs["input_ids"].cpu()):
            real = inputs["attention_mask"][number].bool().cpu() if "attention_mask" in inputs else ...
            segments = inputs["token_type_ids"][number].cpu()[real] if "token_type_ids" in inputs else None
            of_words = labels.ndim > 1
            gold = labels[number][real] if of_words else labels[number : number + 1]
            scored = (gold != IGNORED).nonzero().flatten().tolist()
            rows.append(
                EncodedRow(
                    example=number,
                    subwords=subwords[real].tolist(),
                    segments=None if segments is None else segments.tolist(),
                    positions=scored if of_words else (),
                    gold=gold[scored].tolist(),
                    word_of=range(len(subwords[real])),  # Links are of subwords, each a word of its own.
                )
            )
        return rows


def _task(model: Model) -> ScoredTask:
    """Return the task of a model's head; ConfigError for one that has no loss here."""
    labels = tuple(model.config.id2label.values())
    for ending, task in TASKS.items():
        if type(model).__name__.endswith(ending):
            return task(labels)
    raise ConfigError(
        f"MixupLoss: found {type(model).__name__}; expected a model of transformers whose class ends in "
        f"{' or '.join(TASKS)}. For other heads combine isogloss.mixing with a loss of your own."
    )
