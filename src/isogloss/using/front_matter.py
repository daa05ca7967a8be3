"""The front matter of a model card, in the terms of the Hugging Face hub."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from isogloss.core.languages import is_built_in, language_name
from isogloss.data import CORPORA
from isogloss.data.corpora.described import KNOWN
from isogloss.data.corpus import Corpus
from isogloss.data.hub import hub_splits
from isogloss.using.fine_tuned import FineTuned
from isogloss.using.provenance import Provenance

if TYPE_CHECKING:
    from huggingface_hub import EvalResult

METRICS = {"span_f1": "f1", "word_f1": "f1", "seqeval_f1": "f1", "em": "exact_match"}
"""The hub's names of metrics that have another name here."""

OTHER = "other"
"""The hub's name for other licences, which come with a name and a link."""

_NON_COMMERCIAL = re.compile(r"\bNC\b|non-?commercial", re.IGNORECASE)
_COMMONS = re.compile(r"CC BY((?:-(?:NC|SA|ND))*) (\d\.\d)")
_ON_THE_HUB = re.compile(r"([\w.-]+(?:/[\w.-]+)?)@[0-9a-f]{40}")
"""An encoder of the hub as its model's provenance names it, with the commit."""


def front_matter(model: FineTuned) -> str:
    """Return the front matter of a model's card as YAML, which the hub's library has checked."""
    from huggingface_hub import ModelCardData

    provenance = model.provenance
    base = _ON_THE_HUB.match(provenance.encoder)
    licence, corpus = licence_of(provenance), corpus_of(provenance)
    results = list(_results(model))
    card = ModelCardData(
        base_model=base[1] if base else None,
        datasets=datasets_of(provenance) or None,
        language=[bcp_47(code) for code in provenance.languages if not is_built_in(code)] or None,
        library_name="transformers",
        license=licence,
        license_name=f"that-of-{corpus.name}" if corpus and licence == OTHER else None,
        license_link=corpus.about.url or None if corpus and licence == OTHER else None,
        metrics=list(dict.fromkeys(result.metric_type for result in results)) or None,
        model_name=provenance.title,
        pipeline_tag=model.kind.hub_tag or None,
        tags=["isogloss", "cross-lingual-transfer", provenance.task],
        eval_results=results or None,
    )
    if not results:
        card.model_name = None
    text: str = card.to_yaml()
    return text


def bcp_47(code: str) -> str:
    """Return a language's code as BCP 47 has it: zh-Hant."""
    return code.replace("_", "-")


def corpus_of(provenance: Provenance) -> Corpus | None:
    """Return the corpus a model was trained on; None where it is not known here."""
    name = provenance.corpus.partition(":")[0]
    return CORPORA.get(name) or KNOWN.get(name)


def datasets_of(provenance: Provenance) -> list[str]:
    """List the datasets of the hub that a model was trained on."""
    repositories = (
        split.repository
        for split in hub_splits().values()
        if split.corpus.name == provenance.corpus and split.language in provenance.languages
    )
    return list(dict.fromkeys(repositories))


def licence_of(provenance: Provenance) -> str | None:
    """Return the hub's name of the licence of a model's training data; None where it is not known."""
    corpus = corpus_of(provenance)
    if of_built_in(provenance) or (corpus and corpus.about.licence.startswith("Apache-2.0")):
        return "apache-2.0"
    if corpus is None or not corpus.about.licence:
        return None
    match = _COMMONS.match(corpus.about.licence)
    return f"cc-by{match[1].lower()}-{match[2]}" if match else OTHER


def non_commercial(provenance: Provenance) -> str:
    """Return a warning where a part of the training data is not for commercial use; else an empty text."""
    corpus = corpus_of(provenance)
    licence = corpus.about.licence if corpus else ""
    if corpus is None or of_built_in(provenance) or not _NON_COMMERCIAL.search(licence):
        return ""
    return f"the licence of corpus {corpus.name} ({licence}) forbids commercial use, at least of a part."


def of_built_in(provenance: Provenance) -> bool:
    """Return whether a model was trained on built-in languages; not if its languages are unknown."""
    return bool(provenance.languages) and all(map(is_built_in, provenance.languages))


def _results(model: FineTuned) -> "Iterator[EvalResult]":
    """Yield each score in the form of the hub: with its dataset, language and split."""
    from huggingface_hub import EvalResult

    for row in model.provenance.scores:
        corpus, *form = str(row["corpus"]).split()  # Treebank, form of inputs, translator.
        language = str(row["language"])
        repository = next(
            (
                split.repository
                for split in hub_splits().values()
                if (split.corpus.name, split.language) == (corpus, language)
            ),
            corpus,
        )
        metric = str(row["metric"])
        yield EvalResult(
            task_type=model.kind.hub_tag or model.task.name,
            task_name=model.task.name,
            dataset_type=repository,
            dataset_name=f"{row['corpus']}, {language_name(language)}",
            dataset_config=" ".join((bcp_47(language), *form)),
            dataset_split=str(row["split"]),
            metric_type=METRICS.get(metric, metric),
            metric_name=metric,
            metric_value=row["score"],
        )
