"""Does fine-tuning move unrelated words apart, or words with different tags? `python apart.py RUNS … >
apart.csv`.

RUNS are the folders of examples/combinations.toml (POS tagging) and papers/adjustment/claims-ner (NER):
source-only models of the shipped encoder. Words are from 300 test sentences of qaa and their translations
into qad, linked by the translator. Unrelated words are from different sentences, with the same tag as the
word or with a different one. Distances are in the last layer, in L2, and divided by the root mean square norm
of all states, which removes the scale.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import torch

import isogloss
from isogloss.encoders.loading import load_model
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.built_in_languages import BuiltInTranslator, examples
from isogloss.features.word_distance.word_pairs import drawn_unrelated, l2
from isogloss.training.states import word_states

SENTENCES = 300
TIMES = 20
CORPORA = {"upos": "ud", "ner": "wikiann"}


def texts(corpus: str) -> tuple[list, list, list[tuple[int, int, int, str]]]:
    """Return words of both languages, and links: sentence, word, word, tag."""
    translator = BuiltInTranslator("qaa", "qad", noise=0.0)
    sentences = list(examples(corpus, "qaa", "test"))[:SENTENCES]
    translations = [translator.translate_words(sentence.words) for sentence in sentences]
    links = [
        (index, i, j, sentence.tags[i].partition("-")[2] or sentence.tags[i])
        for index, (sentence, (_, pairs)) in enumerate(zip(sentences, translations, strict=True))
        for i, j in sorted(pairs)
    ]
    return [sentence.words for sentence in sentences], [words for words, _ in translations], links


def distances(folder: Path, corpus: str) -> dict[str, float]:
    """Return mean distances of linked words, and of unrelated ones with equal and with different tags."""
    first_text, second, links = texts(corpus)
    model = load_model(folder)
    tokenizer = load_tokenizer(folder)
    x, y = (word_states(model, tokenizer, side, precision="float32") for side in (first_text, second))
    first_text = torch.stack([x[link][0, i] for link, i, _, _ in links])
    other_tensor = torch.stack([y[link][0, j] for link, _, j, _ in links])
    sentence = np.array([link for link, _, _, _ in links])
    near_text, far_text = drawn_unrelated(sentence, TIMES, np.random.Generator(np.random.PCG64(0)))
    tags = np.array([tag for _, _, _, tag in links])
    same_value = torch.from_numpy(tags[near_text] == tags[far_text])
    distance = l2(first_text[near_text], other_tensor[far_text])
    distances = {
        "linked": l2(first_text, other_tensor).mean(),
        "same tag": distance[same_value].mean(),
        "other tag": distance[~same_value].mean(),
    }
    scale = torch.cat((first_text, other_tensor)).square().sum(dim=1).mean().sqrt()
    return {name: float(value) for name, value in distances.items()} | {"norm": float(scale)}


def main(folders: Sequence[str]) -> None:
    """Print a row for the encoder and for each model."""
    rows = []
    for task, corpus in CORPORA.items():
        rows.append(
            {"task": task, "seed": "", **distances(Path(isogloss.__file__).parent / "shipped", corpus)}
        )
        for runs in folders:
            scores = isogloss.read(runs).frame("scores")
            plain_result = scores["method"].eq("source-only") & scores[
                ["auxiliary", "encoder.adjusted", "average.of"]
            ].eq("").all(axis=1)
            models = scores[plain_result & scores["task"].eq(task)].drop_duplicates("model")
            for seed, name in zip(models["seed"], models["model"], strict=True):
                rows.append({"task": task, "seed": seed, **distances(Path(runs) / name / "model", corpus)})
    table = pd.DataFrame(rows)
    kinds = ["linked", "same tag", "other tag"]
    table = table.join(table[kinds].div(table["norm"], axis=0).add_suffix(", of the norm"))
    table.round(4).to_csv(sys.stdout, index=False)


if __name__ == "__main__":
    main(sys.argv[1:])
