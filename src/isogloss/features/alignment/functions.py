"""Word alignment of your sentences, and annotation projection along its links.

``first`` and ``second`` are sentences and their translations, in the same order: texts, which are split into
words as everywhere in isogloss, or lists of words.
"""

from collections.abc import Iterable, Sequence

from isogloss.aligners import ALIGNERS
from isogloss.aligners.setting import AlignSetting
from isogloss.core.arguments import checks_arguments
from isogloss.core.errors import ConfigError, DataError, check_named
from isogloss.core.progress import OnProgress
from isogloss.core.run_parts import Precision, Whole, with_fields
from isogloss.core.tag_schemes import are_bio
from isogloss.data.formats.word_links import Symmetrization, pair_words
from isogloss.data.projection.words import project_tags
from isogloss.features.alignment.encoder_similarity import Rule, align_pairs
from isogloss.features.alignment.matching import Matching
from isogloss.functional.beginning import showing_progress
from isogloss.functional.bitext import Links, translations
from isogloss.functional.given_models import TextModel, TextTokenizer
from isogloss.functional.preparing import prepare
from isogloss.functional.states import Sentence

STATISTICAL = "fast-align"
"""The aligner without a model."""


@checks_arguments
def align(
    first: Sequence[Sentence],
    second: Sequence[Sentence],
    model: TextModel | None = None,
    tokenizer: TextTokenizer | None = None,
    *,
    languages: tuple[str, str] = ("", ""),
    layer: Whole | None = None,
    matching: Matching = "argmax",
    symmetrization: Symmetrization = "intersection",
    precision: Precision = "float32",
    on_progress: OnProgress | None = None,
) -> list["WordLinks"]:
    """Return the links between the words of sentences and of their translations: 0-based pairs, sorted.

    A text is split into words at spaces and punctuation; each pair's links are a list that also has the words
    that they count, as ``first`` and ``second``. Give lists of words for your own words, such as
    ``text.split()``.

    With a model, by the similarity of its states (SimAlign, Jalili Sabet et al. 2020): ``matching`` is
    argmax, itermax or match, in a ``layer`` (default: at two thirds of the depth). Without one, by fast_align
    (Dyer et al. 2013), which learns only from these sentences: a few thousand are better;
    ``symmetrization`` joins its two directions; grow-diag visits points by words of ``first``, Moses by words
    of ``second``, so that about one sentence of a hundred has other links.

    ConfigError for a model without its tokenizer, DataError for sides of different lengths.

    Device: as the model; fast_align runs on the CPU. Cost: one pass over both sides with a model;
    without, five passes over the pairs in each direction.

    >>> import isogloss
    >>> isogloss.align(["das haus", "das buch", "ein buch"], ["the house", "the book", "a book"])
    [[(0, 0), (1, 1)], [(0, 0), (1, 1)], [(0, 0), (1, 1)]]
    >>> isogloss.align(["Das Haus."], ["The house."])[0].second
    ('The', 'house', '.')
    """
    if (model is None) != (tokenizer is None):
        raise ConfigError("align: a model comes with its tokenizer. Give both, or neither for fast_align.")
    with showing_progress(on_progress) as progress:
        pairs = translations(first, second)
        setting = AlignSetting(pairs=pairs, languages=languages, precision=precision, on_progress=progress)
        if model is None or tokenizer is None:
            check_named("align", "word aligner", ALIGNERS, STATISTICAL)
            aligner = with_fields(ALIGNERS[STATISTICAL](), symmetrization=symmetrization)
            alignments = aligner.align(setting)
        else:
            encoder = prepare(model, tokenizer, "align", precision, words=True)
            rule = Rule(matching=matching, layer=layer)
            alignments = align_pairs(*encoder.loaded, setting, rule)
    return [
        WordLinks(sorted(alignment.links), *pair_words(pair))
        for alignment, pair in zip(alignments, pairs, strict=True)
    ]


LONGEST_SHOWN = 200
"""Characters of links that are printed."""


class WordLinks(list[tuple[int, int]]):
    """The links of a pair of sentences, 0-based pairs of words, and the words that they count.

    >>> [links] = align(["Das Haus."], ["The house."])
    >>> links.first, links.second
    (('Das', 'Haus', '.'), ('The', 'house', '.'))
    """

    def __init__(self, links: Iterable[tuple[int, int]], first: Sequence[str], second: Sequence[str]) -> None:
        super().__init__(links)
        self.first = tuple(first)
        """The words of the sentence."""
        self.second = tuple(second)
        """The words of its translation."""

    def __repr__(self) -> str:
        """Return the links as a list. Long sentences have only their number of links."""
        text = super().__repr__()
        if len(text) <= LONGEST_SHOWN:
            return text
        return f"WordLinks({len(self)} links of {len(self.first)} and {len(self.second)} words)"


@checks_arguments
def project_labels(
    examples: Iterable[tuple[Sequence[str], Sequence[str]]],
    translated: Sequence[Sentence],
    links: Iterable[Links] | None = None,
) -> list[tuple[tuple[str, ...], tuple[str, ...]] | None]:
    """Return the translations' words with the tags of the words that they translate (annotation projection).

    Yarowsky et al. (2001). ``examples`` are pairs of words and their tags; ``links`` are found by ``align``
    by default. BIO tags mark entities, each from its first to its last linked word; a sentence of which an
    entity is not located is None. A word gets any other tag on which all words linked to it agree, or none
    (""). DataError for an example that has not one tag for each word.

    Device: the CPU. Cost: one pass over the examples, and the cost of ``align`` without links.

    >>> import isogloss
    >>> tagged = [(["Anna", "sleeps"], ["B-PER", "O"])]
    >>> isogloss.project_labels(tagged, ["dort Anna"], [[(0, 1), (1, 0)]])
    [(('dort', 'Anna'), ('O', 'B-PER'))]
    """
    sentences = [_check_tagged(index, example) for index, example in enumerate(examples)]
    originals = [words for words, _ in sentences]
    word_links = align(originals, translated) if links is None else links
    bio = are_bio(tag for _, tags in sentences for tag in tags)
    projections = []
    for pair, (_, tags) in zip(translations(originals, translated, word_links), sentences, strict=True):
        words = pair_words(pair)[1]
        word_tags = project_tags(tags, len(words), pair.links or (), bio=bio)
        projections.append(None if word_tags is None else (words, word_tags))
    return projections


def _check_tagged(index: int, example: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the words and tags of an example. Raises DataError unless they are equally many texts."""
    example_name = f"project_labels: example {index}"
    if isinstance(example, str) or not isinstance(example, Sequence) or len(example) != 2:
        raise DataError(
            f"{example_name}: found {example!r:.60}; expected a pair: a list of words, a list of tags."
        )
    for name, side in zip(("words", "tags"), example, strict=True):
        if isinstance(side, str) or not all(isinstance(part, str) for part in side):
            raise DataError(
                f"{example_name}: {name}: found {side!r:.60}; expected a list of texts. Split it."
            )
    words, tags = (tuple(side) for side in example)
    if len(words) != len(tags):
        raise DataError(
            f"{example_name}: {len(words)} words and {len(tags)} tags; expected one tag for each "
            f"word. Correct it."
        )
    return words, tags
