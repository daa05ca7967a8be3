"""Text of three languages with separate alphabets, and a recipe to pretrain a tiny encoder."""

import random

from isogloss.core.run_parts import Architecture, with_fields
from isogloss.features.pretraining.methods import MaskedLanguageModelling
from isogloss.training.setting import TextSetting
from made_up import TEXT

TINY = {"steps": 8, "block": 16, "learning_rate": 5e-3, "precision": "float32", "checkpoint_every": 3}
"""Fields of a method of pretraining that a test can wait for."""

METHOD = with_fields(MaskedLanguageModelling(), **TINY, batch_subwords=96)
"""Settings for the pretraining of a tiny encoder."""

LETTERS = {"en": "abcdef", "de": "ghijkl", "sw": "mnopqr"}


def line(language, index):
    rng = random.Random(f"{language} {index}")
    return " ".join("".join(rng.choices(LETTERS[language][:4], k=rng.randint(1, 3))) for _ in range(9))


def lines(language, count=60):
    for index in range(count):
        yield line(language, index)


def text_setting(folder, *, family="bert", languages=("en", "de", "sw"), vocabulary=90, positions=16, **more):
    sizes = {"layers": 1, "dim": 16, "heads": 2, "feed_forward": 32, "dropout": 0.25}
    shape = Architecture(family=family, vocabulary=vocabulary, positions=positions, **sizes)
    inputs = {"translations": None, "held_out": lambda item: (line(item, 100 + n) for n in range(12)), **more}
    return TextSetting(text=lines, languages=languages, architecture=shape, folder=folder, seed=0, **inputs)


def known_lines(language, count=40):
    """Yield lines of words that tiny encoders know."""
    rng = random.Random(language)
    for _ in range(count):
        yield " ".join(rng.choices(TEXT.split(), k=9))


def further(start, folder, **changes):
    """Return a recipe that trains an encoder further on such lines."""
    inputs = {
        "text": known_lines,
        "translations": None,
        "held_out": lambda language: known_lines(f"{language} held out", 12),
        "languages": ("en", "sw"),
        "seed": 0,
        **changes,
    }
    return TextSetting(architecture=None, start=str(start), folder=folder, **inputs)
