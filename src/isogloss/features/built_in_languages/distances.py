"""Distances between two built-in languages, measured on their sentences, whatever the dials say."""

from collections import Counter
from typing import NamedTuple

from isogloss.data.examples import ParsedSentence
from isogloss.features.built_in_languages.family import Language
from isogloss.features.built_in_languages.generating import examples

NAME = "PROPN"
PUNCTUATION = "PUNCT"
COMMA_AND_STOP = "punct"
"""Relation of punctuation. A clause at the start of a sentence has no comma."""


class _TreebankCounts(NamedTuple):
    """Counts in the sentences of one language."""

    words: Counter[str]
    """Words without names and punctuation."""
    names: Counter[str]
    letters: Counter[str]
    ambiguous_verbs: float
    """Share of verbs whose lemma is also the lemma of a noun."""
    before_head: dict[str, float]
    """Share of dependents that precede their head, by relation."""
    relations: dict[str, tuple[str, ...]]
    """Relations of each sentence by id, in alphabetical order."""


def measure_distances(source: str | Language, target: str | Language) -> dict[str, float]:
    """Return the distances between two languages by dial, measured on their treebanks (``ud``, test split).

    - ``words``: share of word tokens of the target that the source's text lacks, without names. A word in
      another script is another word.
    - ``names``: the same of name tokens.
    - ``senses``: difference of the shares of verb tokens that sound like a noun of the train split.
    - ``world``: share of sentences with the same id that have different dependency relations.
    - ``order``: mean difference, over relations, of the shares of dependents that precede their head.
    - ``script``: share of the target's letter tokens that the source's text lacks.
    """
    source_text = _count(source)
    target_text = _count(target)
    relations = sorted(source_text.before_head.keys() & target_text.before_head.keys())
    turned = [
        abs(source_text.before_head[relation] - target_text.before_head[relation]) for relation in relations
    ]
    ids = source_text.relations.keys() & target_text.relations.keys()
    different = sum(source_text.relations[key] != target_text.relations[key] for key in ids)
    return {
        "words": _share_unknown(source_text.words, target_text.words),
        "names": _share_unknown(source_text.names, target_text.names),
        "senses": abs(source_text.ambiguous_verbs - target_text.ambiguous_verbs),
        "world": different / len(ids),
        "order": sum(turned) / len(turned),
        "script": _share_unknown(source_text.letters, target_text.letters),
    }


def _share_unknown(known: Counter[str], counts: Counter[str]) -> float:
    return sum(count for item, count in counts.items() if item not in known) / counts.total()


def _count(language: str | Language) -> _TreebankCounts:
    sentences = _read_trees(language, "test")
    train_sentences = _read_trees(language, "train")
    nouns = {lemma for sentence in train_sentences for lemma in _lemmas(sentence, "NOUN")}
    verbs = [lemma for sentence in sentences for lemma in _lemmas(sentence, "VERB")]
    words: Counter[str] = Counter()
    names: Counter[str] = Counter()
    directions: dict[str, list[bool]] = {}
    for sentence in sentences:
        for word, tag in zip(sentence.words, sentence.tags, strict=True):
            if tag != PUNCTUATION:
                (names if tag == NAME else words)[word] += 1
        for position, (head, relation) in enumerate(
            zip(sentence.heads, sentence.relations, strict=True), start=1
        ):
            if head and relation != COMMA_AND_STOP:
                directions.setdefault(relation, []).append(position < head)
    return _TreebankCounts(
        words=words,
        names=names,
        letters=Counter("".join((words + names).elements())),
        ambiguous_verbs=sum(verb in nouns for verb in verbs) / len(verbs),
        before_head={relation: sum(before) / len(before) for relation, before in directions.items()},
        relations={
            sentence.id: tuple(sorted(name for name in sentence.relations if name != COMMA_AND_STOP))
            for sentence in sentences
        },
    )


def _read_trees(language: str | Language, split: str) -> list[ParsedSentence]:
    sentences = examples("ud", language, split)
    return [sentence for sentence in sentences if isinstance(sentence, ParsedSentence)]


def _lemmas(sentence: ParsedSentence, tag: str) -> list[str]:
    """Return the lemmas of the words of a sentence with a tag."""
    lines = [line.split("\t") for line in sentence.lines if not line.startswith("#")]
    return [lemma for _, _, lemma, word_tag, *_ in lines if word_tag == tag]
