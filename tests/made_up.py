"""Made-up text for the tiny encoders, and sentences whose tags can be learned from it."""

import random

from isogloss.data.examples import TaggedSentence
from isogloss.training.setting import Reads

TEXT = (
    "the cat sat on the mat . a dog ran over hills and saw Anna Lee in Rome Italy with the "
    "unbelievable lower casing things that happened slowly there yesterday"
)
SPANS = tuple(" ".join(TEXT.split()[index : index + 5]) for index in range(18))
"""Lines of five words, each like the next."""


def tagged_sentences(language: str, count: int, *, seed: int = 0) -> list[TaggedSentence]:
    """Sentences of a made-up language in which a word's last letter decides its tag."""
    rng = random.Random(f"{language} {seed}")
    tags = {"e": "DET", "t": "NOUN", "s": "NOUN", "y": "ADV", "d": "VERB"}
    words = TEXT.split() if language == "en" else TEXT.split()[::2]
    drawn_choices = [tuple(rng.choices(words, k=rng.randint(2, 9))) for _ in range(count)]
    return [
        TaggedSentence(
            id=f"{language}-{index}",
            words=drawn_choice,
            tags=tuple(tags.get(word[-1], "X" if language == "en" else "INTJ") for word in drawn_choice),
        )
        for index, drawn_choice in enumerate(drawn_choices)
    ]


def on(*languages: str) -> Reads:
    """Read the train and dev examples of some languages."""
    return Reads(train=languages, dev=languages)
