"""The direction in Gemma 3 270M: mean of what 100 labels of other languages add to a source-only tagger.

`python docs/results/shared_direction/gemma.py FILES OUT.csv SEED SOURCE LANGUAGE=MODEL ...`: FILES is the
folder of docs/results/advice/make_files.py, SOURCE the folder of the source-only model of a seed, and
LANGUAGE=MODEL the folders of its few-shot models ("annotate 100"). OUT.csv gets the accuracy of each arm.
"""

import csv
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from make_runs import difference, random_like
from torch import Tensor, nn

import isogloss
from isogloss.core.languages import language_facts

SENTENCES = 200
SOURCE = "en"
MISSING: Mapping[str, str] = {"sw": "swa", "yo": "yor"}
"""Folders of languages whose code has three letters there."""

Direction = dict[str, Tensor]


def mean_direction(directions: Sequence[Direction]) -> Direction:
    """Return the mean of directions."""
    return {
        name: torch.stack([direction[name] for direction in directions]).mean(dim=0) for name in directions[0]
    }


def read_test(folder: str, language: str) -> tuple[list[list[str]], list[tuple[str, ...]]]:
    """Return words and tags of test sentences."""
    sentences = isogloss.load_corpus(
        "masakhapos", MISSING.get(language, language), "test", data=folder, examples=SENTENCES
    )
    return [list(sentence.words) for sentence in sentences], [sentence.tags for sentence in sentences]


def score(model: isogloss.Model, network: nn.Module, test: tuple[list, list]) -> float:
    """Return the accuracy of a network in percent."""
    words, gold = test
    tags_of_sentences = replace(model, network=network).predict(words)
    pairs = [
        pair
        for tags, right in zip(tags_of_sentences, gold, strict=True)
        for pair in zip(tags, right, strict=True)
    ]
    return 100 * sum(tag == right for tag, right in pairs) / len(pairs)


def score_arms(folder: str, seed: int, source_folder: str, folders: Mapping[str, str]) -> Iterator[tuple]:
    """Yield the accuracy of each arm in each language, and of the directions in English."""
    source = isogloss.load_model(source_folder)
    start = source.network
    directions: dict[str, Direction] = {}
    names: list[str] = []
    for language, path in folders.items():
        change = difference(isogloss.load_model(path).network, start)
        names = names or [name for name, values in change.items() if values.any()]
        directions[language] = {name: change[name] for name in names}
    english = read_test(folder, SOURCE)
    yield seed, SOURCE, "source", score(source, start, english)
    families = {language: language_facts(language).family for language in folders}
    for target in folders:
        test = read_test(folder, target)
        other_languages = [language for language in folders if language != target]
        distant_languages = [name for name in other_languages if families[name] != families[target]]
        arms = {
            "others": mean_direction([directions[name] for name in other_languages]),
            "other families": mean_direction([directions[name] for name in distant_languages]),
            "own": directions[target],
        }
        arms["random"] = random_like(start, arms["others"], seed)
        yield seed, target, "source", score(source, start, test)
        for arm, direction in arms.items():
            network = isogloss.move(start, {name: direction[name] for name in names}, 1.0)
            yield seed, target, arm, score(source, network, test)
            if arm in ("others", "random"):
                yield seed, target, f"{arm}, in English", score(source, network, english)


if __name__ == "__main__":
    data, table, seed_text, base, *arguments = sys.argv[1:]
    torch.set_num_threads(1)
    is_new = not Path(table).exists()
    with Path(table).open("a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        if is_new:
            writer.writerow(("seed", "language", "arm", "score"))
        folders = dict(argument.split("=", 1) for argument in arguments)
        for row in score_arms(data, int(seed_text), base, folders):
            writer.writerow((*row[:3], round(row[3], 4)))
            file.flush()
