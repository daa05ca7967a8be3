"""Fingerprints of the built-in languages' data. This prints the current ones:

    cd tests/features/built_in_languages && python golden_languages.py > golden.json

Where they differ from golden.json, raise VERSION in isogloss/features/built_in_languages/family.py.
"""

import json
import sys
from collections.abc import Iterable
from dataclasses import fields
from hashlib import sha256
from itertools import islice

from isogloss.features.built_in_languages import (
    LANGUAGES,
    SIZES,
    VERSION,
    BuiltInTranslator,
    examples,
    translations,
)

FIRST = 30

DERIVED = (
    "qaa_Wrda_050",
    "qaa_Namb_050",
    "qab_Senc_050",
    "qad_Wlda_050",
    "qae_Ordz_060",
    "qah_Scra_050",
    "qaa_Mixb_345",
)
"""Derived languages with every dial."""


def digest(items: Iterable[object]) -> str:
    """Return a fingerprint of the first items. Fields with their default are excluded."""
    text = json.dumps([list_values(item) for item in islice(items, FIRST)])
    return sha256(text.encode()).hexdigest()[:16]


def list_values(item: object) -> list[object]:
    """Give the fields of an example that say anything."""
    values = [(field, getattr(item, field.name)) for field in fields(item)]
    return [value for field, value in values if value != field.default]


def digests() -> dict[str, str]:
    """Return the fingerprint of every corpus and language, of bitext, and of noisy translations."""
    result = {"version": str(VERSION)}
    for corpus in (size for size in SIZES if size != "bitext-large"):
        for language in LANGUAGES:
            for split in ("train", "dev"):
                item = (
                    translations("qaa", language, split)
                    if corpus == "bitext"
                    else examples(corpus, language, split)
                )
                result[f"{corpus} {language} {split}"] = digest(item)
    for language in DERIVED:
        for split in ("train", "dev"):
            result[f"derived {language} {split}"] = digest(examples("ud", language, split))
            result[f"derived qaa-{language} {split}"] = digest(translations("qaa", language, split))
    for language in LANGUAGES:
        noisy = BuiltInTranslator("qaa", language, noise=0.2, seed=1)
        texts = [noisy.translate(line.text) for line in islice(examples("text", "qaa", "dev"), FIRST)]
        result[f"noise {language}"] = sha256(json.dumps(texts).encode()).hexdigest()[:16]
    return result


if __name__ == "__main__":
    sys.stdout.write(json.dumps(digests(), indent=1) + "\n")
