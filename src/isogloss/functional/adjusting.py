"""Cross-lingual adjustment of an encoder on your own sentence pairs.

"The Impact of Cross-Lingual Adjustment of Contextual Word Representations on Zero-Shot Transfer", Section 3.
"""

from collections.abc import Iterable, Sequence
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory
from warnings import warn

from isogloss.core.errors import DataError
from isogloss.core.progress import OnProgress
from isogloss.core.run_parts import with_fields
from isogloss.encoders.family import Model, Tokenizer
from isogloss.functional.models import require_encoder, showing_progress
from isogloss.functional.sentences import Links, Sentence, align, translations
from isogloss.methods.adjustments import CrossLingualAdjustment, PairTraining, adjust_model
from isogloss.training.aligned_batches import Form
from isogloss.training.bitext import PairEncoding, Word, read_bitext

PAPER = CrossLingualAdjustment()


def adjust(
    model: Model,
    tokenizer: Tokenizer,
    first: Sequence[Sentence],
    second: Sequence[Sentence],
    links: Iterable[Links] | None = None,
    *,
    languages: tuple[str, str] = ("source", "target"),
    form: Form = PAPER.form,
    stay: float = PAPER.stay,
    word: Word = PAPER.encoding.word,
    layer: int = PAPER.encoding.layer,
    epochs: int = PAPER.training.epochs,
    batch_size: int = PAPER.training.batch_size,
    learning_rate: float = PAPER.updates.learning_rate,
    seed: int = 0,
    on_progress: OnProgress | None = None,
) -> Model:
    """Return a copy of an encoder in which the states of words are near those of their translations (Eq. 1).

    Σ‖f(s) − f(t)‖² over linked words, plus ``stay`` times Σ‖f(s) − f⁰(s)‖² over all words of ``first``, the
    source, which stay where the encoder had them. ``links`` between words are found by ``align`` if left out.
    ``form`` "mean" takes means over words and dimensions, as the released code does; ``word`` is the state of
    a word: average, first, last, or subwords, each for itself. The defaults are the paper's. Trained in
    float32 or bfloat16, whichever is faster; ``languages`` are required by encoders with language modules.

    DataError without a link, ConfigError for a layer that the encoder lacks.

    >>> adjusted = isogloss.adjust(model, tokenizer, english, swahili)       # doctest: +SKIP
    """
    require_encoder(model, "adjust")
    method = CrossLingualAdjustment(
        form=form,
        stay=stay,
        encoding=PairEncoding(word=word, layer=layer),
        training=PairTraining(epochs=epochs, batch_size=batch_size),
        updates=with_fields(PAPER.updates, learning_rate=learning_rate),
    )
    with showing_progress(on_progress) as progress, TemporaryDirectory() as folder:
        linked = align(first, second, on_progress=progress) if links is None else links
        pairs = translations(first, second, linked)
        if not any(pair.links for pair in pairs):
            raise DataError(
                f"adjust: {len(pairs)} sentence pairs without a linked word; expected links in most of them. "
                f"Align more sentences, or give links."
            )
        bitext = read_bitext({"-".join(languages): pairs}, tokenizer, method.encoding)
        for text in bitext.warnings():
            warn(text, stacklevel=2)
        adjusted: Model = deepcopy(model)
        adjust_model(adjusted, bitext, method, seed=seed, folder=Path(folder), on_progress=progress)
    return adjusted.eval()
