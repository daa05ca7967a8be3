"""Does fine-tuning push unrelated words apart, or words of other tags? `python apart.py RUNS > apart.csv`.

RUNS is the folder of examples/combinations.toml: source-only models of part of speech and of names, from the
shipped encoder. Words of 300 test sentences of qaa and of their translations into qad, linked by the
translator; unrelated words are those of other sentences, with the same tag as the word or with another.
Distances in the last layer, L2, and divided by the root mean square norm of all states, free of scale.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import torch

import isogloss
from isogloss.data.languages import Translator, examples
from isogloss.diagnostics.word_distance import drawn_unrelated, l2
from isogloss.encoders import load_model, load_tokenizer
from isogloss.training.states import word_states

SENTENCES, TIMES = 300, 20


def texts(corpus: str) -> tuple[list, list, list[tuple[int, int, int, str]]]:
    """Return words of both languages, and links: sentence, word, word, tag."""
    translator = Translator("qaa", "qad", noise=0.0)
    sentences = list(examples(corpus, "qaa", "test"))[:SENTENCES]
    both = [translator.translate_words(one.words) for one in sentences]
    links = [
        (number, i, j, one.tags[i].partition("-")[2] or one.tags[i])
        for number, (one, (_, pairs)) in enumerate(zip(sentences, both, strict=True))
        for i, j in sorted(pairs)
    ]
    return [one.words for one in sentences], [words for words, _ in both], links


def distances(folder: Path, corpus: str) -> dict[str, float]:
    """Return mean distances of linked words, and of unrelated ones of the same and of another tag."""
    first, second, links = texts(corpus)
    model, tokenizer = load_model(folder), load_tokenizer(folder)
    x, y = (word_states(model, tokenizer, side, precision="float32") for side in (first, second))
    one = torch.stack([x[number][0, i] for number, i, _, _ in links])
    other = torch.stack([y[number][0, j] for number, _, j, _ in links])
    sentence = np.array([number for number, _, _, _ in links])
    near, far = drawn_unrelated(sentence, TIMES, np.random.Generator(np.random.PCG64(0)))
    tags = np.array([tag for _, _, _, tag in links])
    same = torch.from_numpy(tags[near] == tags[far])
    apart = l2(one[near], other[far])
    found = {
        "linked": l2(one, other).mean(),
        "same tag": apart[same].mean(),
        "other tag": apart[~same].mean(),
    }
    scale = torch.cat((one, other)).square().sum(dim=1).mean().sqrt()
    return {name: float(value) for name, value in found.items()} | {"norm": float(scale)}


def main(runs: str) -> None:
    """Print a row for the encoder and for each model."""
    store = isogloss.read(runs)
    rows = []
    for task, corpus in (("upos", "ud"), ("ner", "wikiann")):
        scores = store.frame("scores")
        own = scores[
            (scores["task"] == task) & (scores["method"] == "source-only") & (scores["auxiliary"] == "")
        ]
        own = own[(own["encoder.adjusted"] == "") & scores["of.size"].isna()].drop_duplicates("model")
        folders = {"": isogloss.__path__[0] + "/shipped"} | dict(zip(own["seed"], own["model"], strict=True))
        for seed, name in folders.items():
            folder = Path(name) if seed == "" else Path(runs) / name / "model"
            rows.append({"task": task, "seed": seed, **distances(folder, corpus)})
    table = pd.DataFrame(rows)
    kinds = ["linked", "same tag", "other tag"]
    table = table.join(table[kinds].div(table["norm"], axis=0).add_suffix(", of the norm"))
    table.round(4).to_csv(sys.stdout, index=False)


if __name__ == "__main__":
    main(sys.argv[1])
