"""Cross-lingual adjustment of an encoder on your own sentence pairs, at once or while it learns a task.

"The Impact of Cross-Lingual Adjustment of Contextual Word Representations on Zero-Shot Transfer", Section 3.
"""

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, TypeVar, cast
from warnings import warn

from torch import Tensor, nn

from isogloss.core.arguments import checks_arguments
from isogloss.core.errors import DataError
from isogloss.core.progress import OnProgress
from isogloss.core.run_parts import Positive, Rate, Weight, Whole, with_fields
from isogloss.data.examples import Translation
from isogloss.encoders.family import Tokenizer, check_layers
from isogloss.encoders.shared_weights import copy_sharing_weights, recomputing
from isogloss.features.adjustment import term as methods
from isogloss.features.adjustment.aligned_batches import frozen_copy
from isogloss.features.adjustment.methods import CrossLingualAdjustment, adjust_model
from isogloss.functional.beginning import showing_progress
from isogloss.functional.bitext import Links, link_words, translations
from isogloss.functional.given_models import TextModel, TextTokenizer
from isogloss.functional.preparing import prepare_trained, refuse_parallel, text_encoder, unwrap
from isogloss.functional.states import Sentence
from isogloss.methods.presets import Preset, preset_fields
from isogloss.training.bitext import Aligned, AlignedBitext, Form, PairEncoding, Word, read_bitext

Adjusted = TypeVar("Adjusted", bound=TextModel)

PAPER = CrossLingualAdjustment()
CONTINUAL = methods.AlignmentTerm()


@checks_arguments
def adjust(
    model: Adjusted,
    tokenizer: TextTokenizer,
    first: Sequence[Sentence],
    second: Sequence[Sentence],
    links: Iterable[Links] | None = None,
    *,
    languages: tuple[str, str] = ("source", "target"),
    preset: Preset | Literal[""] = "",
    form: Form | None = None,
    drop_identical: bool | None = None,
    stay: Weight = PAPER.stay,
    word: Word = PAPER.encoding.word,
    layer: Whole = PAPER.encoding.layer,
    epochs: Positive = PAPER.training.epochs,
    batch_size: Positive = PAPER.training.batch_size,
    learning_rate: Rate = PAPER.updates.learning_rate,
    seed: Whole = 0,
    on_progress: OnProgress | None = None,
) -> Adjusted:
    """Return a copy of an encoder with states of words near the states of their translations (Eq. 1).

    Σ‖f(s) − f(t)‖² over linked words and over [CLS] and [SEP], the subwords that open and close a text: each
    pair's are linked with each other. Plus ``stay`` times Σ‖f(s) − f⁰(s)‖² over all words of ``first``, the
    source, and its [CLS] and [SEP], which stay where the encoder had them. ``links`` between words are found
    by ``align`` by default. ``form`` "mean" takes means over these items and over dimensions, as the released
    code does; ``drop_identical`` skips words with the same spelling; ``word`` is the state of a word:
    average, first, last, or subwords, each for itself. The defaults are the paper's; with ``preset``
    "released" the form, and what has no argument, are its code's. Trained in float32 or bfloat16, whichever
    is faster; ``languages`` are required by encoders with language modules.

    ``model`` stays as it is, and other threads may use it. Dropout is drawn from torch's generators, which
    are restored at the end: a training of yours that draws from them has to wait.

    DataError without a link, ConfigError for a layer that the encoder lacks.

    Device: a GPU if the machine has one, else the CPU; the result is there. Cost: ``epochs`` passes forward
    and backward over both sides, and the memory of two more encoders.

    >>> adjusted = isogloss.adjust(model, tokenizer, english, swahili)       # doctest: +SKIP
    """
    network, limited_tokenizer = prepare_trained(model, tokenizer, "adjust")
    check_layers(network.config.num_hidden_layers, [layer])
    defaults = preset_fields(PAPER.name, preset) if preset else {}
    lengths = {"epochs": epochs, "batch_size": batch_size, "learning_rate": learning_rate}
    arguments: dict[str, object] = {"stay": stay, "word": word, "layer": layer, **lengths}
    arguments |= _without_none(form=form, drop_identical=drop_identical)
    method = with_fields(PAPER, **{**defaults, **arguments})
    with showing_progress(on_progress) as progress, TemporaryDirectory() as folder:
        word_links = link_words(first, second, on_progress=progress) if links is None else links
        pairs = translations(first, second, word_links)
        bitext = _bitext("adjust", {"-".join(languages): pairs}, limited_tokenizer, method.encoding)
        result = deepcopy(network).float()
        encoder = text_encoder(result) if network.config.is_encoder_decoder else result
        adjust_model(encoder, bitext, method, seed=seed, folder=Path(folder), on_progress=progress)
    return cast(Adjusted, result.to(network.dtype).eval())


class AlignmentLoss(nn.Module):
    """The alignment loss of continual learning (Eq. 2), which is added to a task's loss in your own loop.

    Each call draws ``pairs`` of the sentence pairs, by ``seed`` and the number of calls before, and returns
    the two terms of Eq. 1 of the model's encoder times ``alpha``; with ``weighs`` "pull" the second, which
    anchors source words, is not multiplied. As in ``adjust``, [CLS] and [SEP] of every pair are pulled
    together and anchored like words: n pairs with one link each have 3n items in the first term. f⁰ is a copy
    of the encoder as it is now, or ``original``. The other arguments are as for ``adjust``. Their defaults
    are the defaults of the method ``alignment-loss``. ``form`` "contrast" is the loss of Liu & Niehues
    (2025), which is computed at a middle ``layer``: each item must be nearer to its translation than to all
    others of the batch, by cosines over ``temperature``; ``pulled`` "sentences" compares means of sentences
    and needs no links, and nothing is anchored unless ``stay`` is given. With ``preset``, the values of the
    paper or of its released code, and f⁰ is then the encoder before any adjustment: give it as ``original``
    if the model was adjusted.

    DataError without a link, ConfigError for a layer that the encoder lacks.

    Device: as the model at each call. Cost: a call has a pass forward over both sides of ``pairs``;
    f⁰ needs the memory of one more encoder.

    >>> alignment = isogloss.AlignmentLoss(model, tokenizer, english, swahili)     # doctest: +SKIP
    >>> (model(**batch).loss + alignment()).backward()                       # doctest: +SKIP
    """

    @checks_arguments
    def __init__(
        self,
        model: TextModel,
        tokenizer: TextTokenizer,
        first: Sequence[Sentence],
        second: Sequence[Sentence],
        links: Iterable[Links] | None = None,
        *,
        languages: tuple[str, str] = ("source", "target"),
        preset: Preset | Literal[""] = "",
        alpha: Weight | None = None,
        weighs: Literal["both", "pull"] = CONTINUAL.weighs,
        stay: Weight | None = None,
        form: methods.LossForm | None = None,
        temperature: Rate | None = None,
        pulled: Aligned | None = None,
        drop_identical: bool | None = None,
        pairs: Positive | None = None,
        word: Word = CONTINUAL.encoding.word,
        layer: Whole = CONTINUAL.encoding.layer,
        original: TextModel | None = None,
        seed: Whole = 0,
    ) -> None:
        super().__init__()
        refuse_parallel(model, "AlignmentLoss")
        network, limited_tokenizer = prepare_trained(model, tokenizer, "AlignmentLoss")
        check_layers(network.config.num_hidden_layers, [layer])
        defaults = preset_fields(CONTINUAL.name, preset) if preset else {}
        arguments = _without_none(
            alpha=alpha,
            stay=stay,
            form=form,
            temperature=temperature,
            pulled=pulled,
            drop_identical=drop_identical,
            pairs=pairs,
        )
        fields = {**defaults, "weighs": weighs, "word": word, "layer": layer, **arguments}
        method = with_fields(CONTINUAL, **fields)
        encoding = method.encoding
        if links is None:
            links = link_words(first, second) if encoding.needs_links else [()] * len(first)
        sentences = {"-".join(languages): translations(first, second, links)}
        self._draw = method.draws(_bitext("AlignmentLoss", sentences, limited_tokenizer, encoding), seed)
        start = network if original is None else unwrap(original, "AlignmentLoss: original")
        original_encoder = frozen_copy(text_encoder(start)).to(network.device)
        self._loss = partial(method.loss, original=original_encoder)
        self._model = [text_encoder(network)]
        self.calls = 0

    def forward(self) -> Tensor:
        """Return the loss on the next sentence pairs. ``calls`` is the number of earlier draws."""
        batch, self.calls = self._draw(self.calls), self.calls + 1
        model = copy_sharing_weights(self._model[0])
        with recomputing(model):
            return self._loss(model=model, batch=batch.to(model.device))


def _without_none(**fields: object) -> dict[str, object]:
    """Return the fields that are given."""
    return {name: value for name, value in fields.items() if value is not None}


def _bitext(
    function: str, pairs: Mapping[str, list[Translation]], tokenizer: Tokenizer, encoding: PairEncoding
) -> AlignedBitext:
    """Encode sentence pairs. Raises DataError, naming the function, without a linked word."""
    sentences = [pair for translation_pairs in pairs.values() for pair in translation_pairs]
    if encoding.needs_links and not any(pair.links for pair in sentences):
        raise DataError(
            f"{function}: {len(sentences)} sentence pairs without a linked word; expected links in most of "
            f"them. Align more sentences, or give links."
        )
    bitext = read_bitext(pairs, tokenizer, encoding)
    for text in bitext.warnings():
        warn(text, stacklevel=3)
    return bitext
