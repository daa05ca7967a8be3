"""CoSDA-ML: training sentences in which words are replaced by their translations.

Qin et al. (2020), "CoSDA-ML: Multi-Lingual Code-Switching Data Augmentation for Zero-Shot Cross-Lingual NLP".
The lexicon is mined from aligned bitext, where the paper uses MUSE's dictionaries.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from isogloss.plugins import (
    ConfigError,
    Method,
    Reads,
    Setting,
    Share,
    TaggedSentence,
    Task,
    Trained,
    Translation,
    derive,
    fine_tune,
    language_pairs,
    pair_words,
)


@dataclass(frozen=True, kw_only=True)
class CodeSwitching(Method):
    """Train on source sentences in which words are replaced by their translations."""

    name: ClassVar[str] = "code-switching"
    uses: ClassVar[tuple[str, ...]] = ("source", "target")

    share: Share = 0.5
    """Share of the words in the lexicon that are replaced. 0 is source-only."""

    bitext: str = "bitext"
    """Corpus of translations from which the lexicon is mined."""

    def check(self, task: Task, encoder: object) -> None:
        """Raise ConfigError for a task without labels of words."""
        del encoder
        if task.labels_are != "word":
            raise ConfigError(f"{self.name}: task {task.name} labels no words. Choose a tagging task.")

    def reads(self, source: tuple[str, ...], target: tuple[str, ...]) -> Reads:
        """Read labelled source examples, and bitext of all pairs."""
        return Reads(train=source, dev=source, bitext=self.bitext, pairs=language_pairs(source, target))

    def train(self, setting: Setting) -> Trained:
        """Train on switched sentences."""
        lexicon = mine_lexicon(pair for pairs in setting.bitext.values() for pair in pairs)

        def switch_sentences(language: str) -> list[TaggedSentence]:
            generator = random.Random(derive(setting.seed, "switch", language))
            sentences = setting.train(language)
            return [
                replace(sentence, words=switch(sentence.words, lexicon, self.share, generator))
                for sentence in sentences
            ]

        return fine_tune(replace(setting, train=switch_sentences), self.reads(setting.source, setting.target))


def mine_lexicon(bitext: Iterable[Translation]) -> Mapping[str, str]:
    """Return the most frequent translation of each linked word, in lower case."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for pair in bitext:
        source_words, target_words = pair_words(pair)
        for source_index, target_index in pair.links or ():
            counts[source_words[source_index].lower()][target_words[target_index]] += 1
    return {
        word: max(counter, key=lambda translation: (counter[translation], translation))
        for word, counter in counts.items()
    }


def switch(
    words: tuple[str, ...], lexicon: Mapping[str, str], share: float, generator: random.Random
) -> tuple[str, ...]:
    """Replace a random share of the words in the lexicon."""
    return tuple(
        lexicon[word.lower()] if word.lower() in lexicon and generator.random() < share else word
        for word in words
    )
