"""Splits of datasets of the Hugging Face hub that contain corpora of the catalogue (``hub.toml``)."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any, Literal, NamedTuple

from isogloss.core.languages import is_built_in, language_name
from isogloss.data.corpora.catalogue import CORPORA
from isogloss.data.corpora.texts_and_trees import DEFAULTS, Ud
from isogloss.data.corpus import Corpus, Split

ALL: Mapping[Split, str] = {"train": "train", "dev": "validation", "test": "test"}
"""Usual names of our splits on the hub."""

ON_HUB: Mapping[str, str] = {str(split): name for split, name in ALL.items()}
"""The same mapping, for lookups by any text."""

HUB_SPLITS: Mapping[str, Split] = {name: split for split, name in ALL.items() if name != split}
"""Our splits by names on the hub, where these differ."""

EVAL_RESULTS = ".eval_results"
"""Folder of a model's repository from which the hub reads its scores, one YAML file per dataset."""


class HubSplit(NamedTuple):
    """One split of one language of a dataset that contains a corpus of the catalogue."""

    corpus: Corpus
    repository: str
    config: str
    language: str
    split: Split
    hub_split: str
    treebank: str
    """Treebank named in the table, or "" for the default treebank of the language."""
    kind: Literal["pair", "tagging", "span", "trees"]
    spelled: Mapping[str, str]
    """Our labels by their spelling on the hub, where it differs."""
    ids_by_language: bool
    """Whether a file has all languages, and ids begin with the English name of the language (TyDi QA)."""


@lru_cache(maxsize=1)
def hub_splits() -> dict[str, HubSplit]:
    """Return all splits of the hub by the corpus's path of that language and split."""
    table = tomllib.loads((files("isogloss.data") / "hub.toml").read_text(encoding="utf-8"))
    splits = (
        split
        for entry in table["dataset"]
        if entry["corpus"] in CORPORA
        for language in (*entry["languages"].split(), *entry.get("configs", ()))
        for split in _splits_of(entry, language)
    )
    return {split.corpus.path(split.language, split.split): split for split in splits}


def hub_split(corpus: str, language: str, split: str, treebank: str = "") -> HubSplit | None:
    """Return the split of the hub on which a score was measured, or None if the hub lacks it.

    Built-in languages are never on the hub.
    """
    return None if is_built_in(language) else _splits_by_test_set().get((corpus, language, split, treebank))


def eval_result(split: HubSplit, score: float, notes: str) -> dict[str, object]:
    """Return an entry of a model's ``.eval_results`` for a score in [0, 1], stored in percent."""
    dataset = {"id": split.repository, "task_id": split.config or "default"}
    return {"dataset": dataset, "value": round(100 * score, 2), "notes": notes}


@lru_cache(maxsize=1)
def _splits_by_test_set() -> dict[tuple[str, str, str, str], HubSplit]:
    return {
        (split.corpus.name, split.language, split.split, split.treebank): split
        for split in hub_splits().values()
    }


def _splits_of(entry: Mapping[str, Any], language: str) -> Iterator[HubSplit]:
    """Yield the splits of a language in an entry of hub.toml, which documents its fields."""
    treebank = entry.get("treebank") or DEFAULTS[language] if entry["kind"] == "trees" else ""
    corpus = Ud(treebanks=((language, treebank),)) if treebank else CORPORA[entry["corpus"]]
    repository, _, config = entry["address"].partition(":")
    names = {"language": entry.get("configs", {}).get(language, language), "name": language_name(language)}
    for questions in entry.get("questions", "").split() or [""]:
        for split, hub_split in entry.get("splits", ALL).items():
            yield HubSplit(
                corpus=corpus.choose(questions) if questions else corpus,
                repository=repository,
                config=config.format(**names, questions=questions, treebank=treebank.lower()),
                language=language,
                split=split,
                hub_split=hub_split,
                treebank=entry.get("treebank", ""),
                kind=entry["kind"],
                spelled=entry.get("spelled", {}),
                ids_by_language=entry.get("ids_by_language", False),
            )
