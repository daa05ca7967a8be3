"""The links that simalign (Jalili Sabet et al. 2020) finds with the shipped encoder, on made-up bitext.

`python tests/functional/simalign_links.py` writes them to simalign_links.json where simalign is installed.
"""

import json
import random
from pathlib import Path

import isogloss

FILE = Path(__file__).with_suffix(".json")
LAYERS = (1, 3)
MATCHINGS = {"argmax": "inter", "itermax": "itermax", "match": "mwmf"}
"""Names of the same rule in isogloss and simalign."""


def sentences():
    """Return words of translations, and of unrelated sentences, which are shuffled."""
    pairs = [
        (pair.first.split(), pair.second.split())
        for pair in isogloss.load_corpus("bitext", "qaa-qad", "test", examples=40)
    ]
    rng = random.Random(0)
    shuffled_samples = [tuple(rng.sample(words, len(words)) for words in pair) for pair in pairs[:20]]
    other_items = [
        (first_pair, second)
        for (first_pair, _), (_, second) in zip(pairs[20:], shuffled_samples, strict=True)
    ]
    return [*pairs, *shuffled_samples, *other_items]


def compute_links():
    """Return the links of each pair, by layer and matching."""
    import simalign

    from isogloss.encoders.folders import shipped_folder

    result = {}
    for layer in LAYERS:
        aligner = simalign.SentenceAligner(str(shipped_folder()), "bpe", matching_methods="mai", layer=layer)
        aligned_words = [aligner.get_word_aligns(*pair) for pair in sentences()]
        for ours, theirs in MATCHINGS.items():
            result[f"{ours} {layer}"] = [
                sorted(list(value) for value in links[theirs]) for links in aligned_words
            ]
    return result


if __name__ == "__main__":
    lines = (f"{json.dumps(name)}: {json.dumps(links)}" for name, links in compute_links().items())
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
