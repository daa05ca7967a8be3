"""X-Mixup in your training loop, and mixing while a model predicts.

Yang et al. (2022), "Enhancing Cross-lingual Transfer by Manifold Mixup", Section 4.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from isogloss.core.arguments import checks_arguments
from isogloss.core.errors import ConfigError, DataError
from isogloss.core.run_parts import Attends, Count, Mixed, Positive, Residual, Share, Weight
from isogloss.encoders import mixup as encoder_mixup
from isogloss.encoders.families import family_of
from isogloss.encoders.family import Model
from isogloss.encoders.mixup import MixingTrace, Mixup
from isogloss.encoders.shared_weights import copy_sharing_weights, recomputing
from isogloss.features.x_mixup.method import XMixup
from isogloss.features.x_mixup.mixed_model import MixedModel
from isogloss.functional.given_models import TextModel
from isogloss.functional.preparing import refuse_parallel, require_layers
from isogloss.methods.presets import Preset, preset_fields
from isogloss.tasks.batch import EncodedRow
from isogloss.tasks.classification import MultiLabelClassification, Regression, TextClassification
from isogloss.tasks.tagging import Tagging
from isogloss.tasks.task import ScoredTask
from isogloss.training.sides import RowPair, collate_pairs

Inputs = Mapping[str, Tensor]
"""Output of a tokenizer ([row subword], on the model's device), with labels if they are needed."""

IGNORED = -100
"""The label of a subword that is not scored, as in transformers."""

Links = Sequence[tuple[int, int]]
"""Pairs of the numbers of a subword of the source and of one of the target, special ones counted."""

TEXTS = "ForSequenceClassification"
WORDS = "ForTokenClassification"
"""Ends of the names of classes of transformers whose models have a loss here."""

CLASS = "single_label_classification"
LABELS = "multi_label_classification"
NUMBER = "regression"
"""Kinds of labels of texts by config.problem_type."""

READ_AS_SHARES = ("deberta-v2",)
"""Families whose labels are shares of classes in transformers where config.problem_type says nothing."""

READ = ("input_ids", "attention_mask", "token_type_ids", "labels")
"""Keys that are read from a batch."""


@checks_arguments
def mixing(
    model: TextModel,
    *,
    layer: Positive,
    ratio: Share = 0.5,
    mask: Tensor | None = None,
    attends: Attends | None = None,
    residual: Residual = "normed",
    mixed: Mixed | None = None,
    languages: tuple[str, ...] = (),
    links: Tensor | None = None,
) -> AbstractContextManager[MixingTrace]:
    """Mix states in one layer while a model runs on source rows followed by target rows (Eqs 2 to 4).

    Row i of the second half is the translation of row i of the first. ``layer`` counts from 1, ``ratio`` is
    λ, the weight of the source; ``mask`` [row subword] is 1 at real subwords, None without padding.
    ``attends``, ``residual`` and ``mixed`` are as in the method ``x-mixup``: encoders with norms first and
    decoders mix with mixed = "states". ``links`` [pair target source], for attends = "links", are true at
    linked subwords, or weights such as a translator's cross-attention. The trace has the ``weights`` of Eq. 3
    and the ``ratios`` of the last pass. A hook is in the model meanwhile, which mixes only in the thread that
    entered this context.

    ModelError for a family that cannot mix, ConfigError for a layer that does not exist.

    Device: as the model. Cost: the layer that mixes computes a second attention.

    >>> import torch, isogloss
    >>> model, tokenizer = isogloss.load_encoder("shipped")
    >>> batch = tokenizer(["tuki mirne", "bero zal"], return_tensors="pt", padding=True)
    >>> with torch.no_grad(), isogloss.mixing(model, layer=2, mask=batch["attention_mask"]) as trace:
    ...     states = model(**batch).last_hidden_state
    >>> trace.ratios.tolist()
    [0.5]
    """
    network = require_layers(model, "mixing")
    mixup = Mixup(layer=layer, ratio=ratio, learned=False, attends=attends, residual=residual, mixed=mixed)
    return encoder_mixup.mixing(network, mixup, mask, languages, links, in_this_thread=True)


class MixupLoss(nn.Module):
    """The loss of X-Mixup (Eqs 7 and 8) of a model for sequence or token classification.

    Called with the inputs of examples and of their translations, both with labels: row i of one is the
    translation of row i of the other. Its parameters are W and b of the mixup ratio (Eq. 5); they belong into
    the optimizer, as the model's do.

    ``alpha`` is the weight of the source's loss (default: the paper's, 0.4 for texts and 0.8 for words),
    ``mse`` and ``kl`` are the weights of the consistency of representations and of predictions; the others
    are as in the method ``x-mixup``. Without mixing, with ``ratio``, ``mse`` and ``kl`` 0, it is
    ``alpha`` times the model's own loss on the source plus 1 − ``alpha`` times its loss on the target: texts
    have a class, several labels or a number, as config.problem_type says or, as in transformers, the labels
    show. A number has no ``kl``. Labels of −100 are ignored. Translations of texts may come without labels:
    they have the source's. Labels of words are a teacher's, or ``project_labels`` carries them over.

    With ``preset`` "released" the ratio is fixed and ``back_loss`` "target", as in the authors' code: in a
    batch of back-translations, which a call names by ``back``, words have only the loss of the target side.
    Its source_as_target is in your batches: pair each source example with itself.

    ConfigError or ModelError for a model that cannot mix.

    Device: as the model, to which batches are moved. Cost: one pass over source and target together,
    in which one layer computes a second attention.

    >>> loss = isogloss.MixupLoss(model)                                     # doctest: +SKIP
    >>> optimizer = torch.optim.AdamW([*model.parameters(), *loss.parameters()], lr=2e-5)  # doctest: +SKIP
    >>> loss(english, swahili).backward()                                    # doctest: +SKIP
    """

    @checks_arguments
    def __init__(
        self,
        model: TextModel,
        *,
        layer: Count = 0,
        ratio: Share = 0.5,
        preset: Preset | Literal[""] = "",
        learned_ratio: bool | None = None,
        attends: Attends | None = None,
        residual: Residual = "normed",
        mixed: Mixed | None = None,
        alpha: Share | None = None,
        mse: Weight = 1.0,
        kl: Weight = 1.0,
        back_loss: Literal["target"] | None = None,
    ) -> None:
        super().__init__()
        refuse_parallel(model, "MixupLoss")
        network = require_layers(model, "MixupLoss")
        self._labels_texts = _labels_texts(network)
        unit = "" if self._labels_texts else "word"
        options: dict[str, Any] = {"learned_ratio": True, "back_loss": None}
        if preset:
            options |= preset_fields(XMixup.name, preset, unit=unit)
        if learned_ratio is not None:
            options["learned_ratio"] = learned_ratio
        if back_loss is not None:
            options["back_loss"] = back_loss
        self._method = XMixup(
            layer=layer,
            ratio=ratio,
            learned_ratio=bool(options["learned_ratio"]),
            back_loss=options["back_loss"],
            residual=residual,
            attends=attends,
            mixed=mixed,
            alpha=alpha,
            mse=mse,
            kl=kl,
        )
        # In a list: the model's parameters are not the loss's.
        self._mixed = [
            self._method.mixed_model(_task(network, CLASS if self._labels_texts else WORDS), network)
        ]
        self.ratio = self._mixed[0].ratio

    @checks_arguments
    def forward(
        self,
        source: Inputs,
        target: Inputs,
        links: Iterable[Links] | None = None,
        *,
        back: bool = False,
    ) -> Tensor:
        """Return the loss of a batch. ``links`` are of subwords, required by attends = "links".

        ``back`` says that the source side is a back-translation of the target.

        DataError where the numbers of rows or of links differ, and for a batch whose loss would be another
        than the model's own.
        """
        [mixed_model] = self._mixed
        network = copy_sharing_weights(mixed_model.network)
        problem = self._problem(source)
        sides = [
            _rows(inputs, self._with_labels(inputs, source), _Labelled(name, problem), network)
            for name, inputs in (("source", source), ("target", target))
        ]
        pair_links = [None] * len(sides[0]) if links is None else list(links)
        if not len(sides[0]) == len(sides[1]) == len(pair_links):
            raise DataError(
                f"MixupLoss: {len(sides[0])} examples, {len(sides[1])} translations, links of "
                f"{len(pair_links)}; expected equal numbers."
            )
        pairs = [RowPair(*pair) for pair in zip(*sides, pair_links, strict=True)]
        padding = int(network.config.pad_token_id or 0)
        batch = replace(collate_pairs(pairs, padding=padding), back=back).to(network.device)
        with recomputing(network):
            return self._method.loss(_task(network, problem), MixedModel(network, mixed_model.mixup), batch)

    def _problem(self, source: Inputs) -> str:
        """Return the kind of labels, from config.json or, as in transformers, from the labels."""
        config = self._mixed[0].network.config
        if not self._labels_texts:
            return WORDS
        if config.problem_type is not None:
            return str(config.problem_type)
        if config.num_labels == 1:
            return NUMBER
        if "labels" not in source or not source["labels"].is_floating_point():
            return CLASS
        if config.model_type in READ_AS_SHARES:
            raise ConfigError(
                f"MixupLoss: config.problem_type is None, and transformers reads these labels of a "
                f"{config.model_type} as shares of classes. Set problem_type to {LABELS}."
            )
        return LABELS

    def _with_labels(self, inputs: Inputs, source: Inputs) -> Tensor:
        """Return the labels of a side: its own, or of texts the source's."""
        if "labels" in inputs:
            return inputs["labels"].cpu()
        if "labels" not in source:
            raise DataError(
                f"MixupLoss: source: found no labels, only {', '.join(source)}. Add labels of the examples."
            )
        if self._labels_texts:
            return source["labels"].cpu()
        raise DataError(
            "MixupLoss: the translations have no labels, and words are labelled one by one. Add those of "
            "a teacher, or carry them over by isogloss.project_labels."
        )


def _labels_texts(model: Model) -> bool:
    """Return whether a model labels texts, not words. Raises ConfigError for a model without a loss here."""
    name = type(model).__name__
    config = model.config
    if not name.endswith((TEXTS, WORDS)):
        raise ConfigError(
            f"MixupLoss: found {name}; expected a model of transformers whose class ends in {TEXTS} or "
            f"{WORDS}. For other heads combine isogloss.mixing with a loss of your own."
        )
    if getattr(model.base_model, "decoder", None) is not None:
        raise ConfigError(
            f"MixupLoss: {name} reads its classes from a decoder, and only states of an encoder are mixed. "
            f"Give a model whose base model is an encoder."
        )
    if name.endswith(WORDS):
        return False
    if config.problem_type == NUMBER and config.num_labels > 1:
        raise ConfigError(
            f"MixupLoss: config.problem_type is {NUMBER} and config.num_labels {config.num_labels}; expected "
            f"one number. For several combine isogloss.mixing with a loss of your own."
        )
    if family_of(model).is_decoder and config.pad_token_id is None:
        raise ConfigError(
            f"MixupLoss: config.pad_token_id is None, and {name} finds the end of a text by it. Set it to "
            f"the tokenizer's."
        )
    return True


def _task(model: Model, problem: str) -> ScoredTask:
    labels = tuple(model.config.id2label.values())
    if problem == WORDS:
        return Tagging(name="tagging", labels=labels, metric="accuracy")
    if problem == NUMBER:
        return Regression(name="regression")
    kind = MultiLabelClassification if problem == LABELS else TextClassification
    return kind(name="classification", labels=labels)


class _Labelled(NamedTuple):
    """A side of a batch, and the kind of its labels."""

    side: str
    problem: str


def _rows(inputs: Inputs, labels: Tensor, origin: "_Labelled", model: Model) -> list[EncodedRow]:
    """Return the rows of one side, without padding and with their labels."""
    side, problem = origin
    is_text = _real(inputs, side, model.config.pad_token_id)
    labels = _check_labels(labels, inputs["input_ids"], origin, model.config.num_labels)
    if problem == WORDS and bool((labels[~is_text] != IGNORED).any()):
        raise DataError(
            f"MixupLoss: {side}: labels of padding; expected {IGNORED} where attention_mask is 0."
        )
    rows = []
    for index, subwords in enumerate(inputs["input_ids"].cpu()):
        row_subwords = subwords[is_text[index]].tolist()
        segments = (
            inputs["token_type_ids"][index].cpu()[is_text[index]] if "token_type_ids" in inputs else None
        )
        row = EncodedRow(
            example=index,
            subwords=row_subwords,
            segments=None if segments is None else segments.tolist(),
            word_of=range(len(row_subwords)),  # Links are of subwords, so each subword is one word.
        )
        if problem == WORDS:
            word_labels = labels[index][is_text[index]]
            # A row without a label gets an ignored one, because all rows of a batch have labels or none has.
            positions = (word_labels != IGNORED).nonzero().flatten().tolist() or [0]
            row = replace(row, positions=tuple(positions), gold=tuple(word_labels[positions].tolist()))
        elif problem == CLASS:
            row = replace(row, gold=(int(labels[index]),))
        else:
            row = replace(row, soft=labels[index : index + 1].float())
        rows.append(row)
    return rows


def _real(inputs: Inputs, side: str, padding: int | None) -> Tensor:
    """Return the mask of subwords that are not padding. Raises DataError for inputs that would be changed."""
    unknown_inputs = [name for name in inputs if name not in READ]
    if unknown_inputs or "input_ids" not in inputs:
        raise DataError(
            f"MixupLoss: {side}: found {', '.join(inputs)}; expected input_ids, and of {', '.join(READ[1:])} "
            f"what the model needs. Leave the others out."
        )
    subwords = inputs["input_ids"].cpu()
    if "attention_mask" not in inputs:
        if padding is not None and bool((subwords == padding).any()):
            raise DataError(
                f"MixupLoss: {side}: input_ids has the padding {padding}, and attention_mask is missing, so "
                f"it would be read as text. Add attention_mask."
            )
        return torch.ones_like(subwords, dtype=torch.bool)
    mask = inputs["attention_mask"].cpu().bool()
    if mask.shape != subwords.shape or not bool(mask.any(dim=1).all()):
        raise DataError(
            f"MixupLoss: {side}: attention_mask {list(mask.shape)} for input_ids {list(subwords.shape)}; "
            f"expected the same shape, and 1 at one subword or more of each row."
        )
    return mask


def _check_labels(labels: Tensor, subwords: Tensor, origin: "_Labelled", count: int) -> Tensor:
    """Return labels in the shape of their problem. Raises DataError for other labels."""
    side, problem = origin
    rows = len(subwords)
    shape = {WORDS: tuple(subwords.shape), LABELS: (rows, count)}.get(problem, (rows,))
    is_column = labels.ndim > 1 and len(shape) == 1 and labels.shape[1] == 1
    labels = labels.squeeze(1) if is_column else labels
    where = f"MixupLoss: {side}: labels"
    if tuple(labels.shape) != shape:
        raise DataError(f"{where} of the shape {list(labels.shape)}; expected {list(shape)} ({problem}).")
    if problem == NUMBER:
        is_allowed = labels.isfinite()
        expected = "finite numbers"
    elif problem == LABELS:
        is_allowed = (labels >= 0) & (labels <= 1)
        expected = "0 to 1"
    elif labels.is_floating_point():
        is_allowed = torch.zeros_like(labels, dtype=torch.bool)
        expected = "integers"
    else:
        is_allowed = (labels == IGNORED) | ((labels >= 0) & (labels < count))
        expected = f"0 to {count - 1}, or {IGNORED}"
    if not bool(is_allowed.all()):
        raise DataError(f"{where}: found {labels[~is_allowed][0].item()}; expected {expected} ({problem}).")
    if problem in (CLASS, WORDS) and bool((labels == IGNORED).all()):
        raise DataError(f"{where}: all are {IGNORED}, and nothing can be learned. Leave the batch out.")
    return labels.unsqueeze(1) if problem == NUMBER else labels
