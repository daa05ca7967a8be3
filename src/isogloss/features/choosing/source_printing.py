"""Print source languages ranked for a target: by facts and trigrams, or by the states of an encoder."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import isnan

from isogloss.cli.display import Display, emit, show_line
from isogloss.cli.options import OutputOptions
from isogloss.core.errors import ConfigError, DataError
from isogloss.core.languages import languages_named
from isogloss.core.records import or_none
from isogloss.data.corpora.own import register_corpus
from isogloss.data.corpus import SPLITS
from isogloss.data.examples import Example
from isogloss.data.projection.example_texts import texts_of
from isogloss.data.sources import Sources
from isogloss.features.choosing.printing import EITHER
from isogloss.features.choosing.source_choice import SourceCandidate, describe_doubt, rank_sources
from isogloss.reports.names import language, percent

TEXTS = 1000
"""Texts per language whose trigrams are compared."""

ENCODED_TEXTS = 100
"""Texts per language whose states are compared. A hundred sentences have some two thousand words."""

FACTS = ("same family", "same script", "same word order", "trigrams in common")
"""Heads of the columns of facts."""


@dataclass(frozen=True)
class SourceChoice:
    """The candidates, the targets, and what is compared: texts of a corpus, and states of an encoder."""

    sources: Sequence[str]
    targets: Sequence[str]
    corpus: str = ""
    data: str = ""
    encoder: str = ""


def print_sources(choice: SourceChoice, address: str | None, *, output: OutputOptions) -> None:
    """Print the source languages ranked for each target, the best first, with the facts behind the ranking.

    Raises ConfigError with a folder of runs, without targets, or for an encoder without a corpus.
    """
    if address is not None or not choice.targets or not choice.sources:
        raise ConfigError(EITHER)
    if choice.encoder and not choice.corpus:
        raise ConfigError(
            f"--encoder {choice.encoder}: states are of texts, and --corpus is missing. Name a corpus of the "
            f"task, as in --corpus wikiann."
        )
    source_codes = languages_named(choice.sources)
    target_codes = languages_named(choice.targets)
    codes = list(dict.fromkeys((*source_codes, *target_codes))) if choice.corpus else []
    corpus = register_corpus(choice.corpus, choice.data)
    examples = {
        language_code: _read_examples(Sources(choice.data), corpus, language_code) for language_code in codes
    }
    texts = {
        language_code: [" ".join(texts_of(example)) for example in of_language]
        for language_code, of_language in examples.items()
    }
    rankings = {target: rank_sources(target, source_codes, texts) for target in target_codes}
    if choice.encoder:
        _print_by_states(choice.encoder, rankings, examples, output=output)
    else:
        _print_by_rule(rankings, output=output)


def _print_by_rule(rankings: dict[str, list[SourceCandidate]], *, output: OutputOptions) -> None:
    for target, ranking in rankings.items():
        doubt = describe_doubt(ranking)
        rows = [{"target": target, **candidate._asdict(), "doubt": doubt or None} for candidate in ranking]
        if output.as_json:
            for row in rows:
                emit({name: or_none(value) for name, value in row.items()})
            continue
        choice = f"don't know, as {doubt}" if doubt else "the rule's choice first"
        show_line(f"Source languages for {language(target)}, {choice}")
        Display().table(
            ("source", *FACTS, "rule"),
            [
                (
                    language(candidate.language),
                    *_describe_facts(candidate),
                    f"{candidate.rule:+.2f}" if candidate.is_known else "–",
                )
                for candidate in ranking
            ],
        )


def _print_by_states(
    encoder: str,
    rankings: dict[str, list[SourceCandidate]],
    examples: dict[str, list[Example]],
    *,
    output: OutputOptions,
) -> None:
    """Print the candidates by their share of the target's nearest neighbours (NN-Rank)."""
    from isogloss.features.choosing.nearest_sources import (
        explain_doubt,
        rank_sources_by_states,
        states_of_examples,
    )
    from isogloss.functional.models import load_encoder

    with output.progress as display:
        model, tokenizer = load_encoder(encoder)
        states = {
            language_code: states_of_examples(
                model, tokenizer, of_language[:ENCODED_TEXTS], language_code, on_progress=display.on_progress
            )
            for language_code, of_language in examples.items()
        }
    for target, by_rule in rankings.items():
        facts = {candidate.language: candidate for candidate in by_rule}
        ranking = rank_sources_by_states(
            states[target], {language_code: states[language_code] for language_code in facts}
        )
        doubt = explain_doubt(ranking)
        if output.as_json:
            for candidate in ranking:
                row = {"target": target, **facts[candidate.language]._asdict(), "neighbours": candidate.share}
                row |= {"behind": candidate.behind, "error": candidate.error, "doubt": doubt or None}
                emit({name: or_none(value) for name, value in row.items()})
            continue
        choice = f"don't know, as {doubt}" if doubt else "the nearest first"
        show_line(f"Source languages for {language(target)}, {choice}")
        Display().table(
            ("source", "nearest neighbours", *FACTS),
            [
                (
                    language(candidate.language),
                    percent(candidate.share),
                    *_describe_facts(facts[candidate.language]),
                )
                for candidate in ranking
            ],
        )


def _describe_facts(candidate: SourceCandidate) -> tuple[str, ...]:
    facts = (candidate.family, candidate.script, candidate.order)
    return (*(_yes_or_no(fact) for fact in facts), percent(candidate.trigrams))


def _read_examples(sources: Sources, corpus: str, language: str) -> list[Example]:
    for split in SPLITS:
        with suppress(DataError):
            return sources.examples(corpus, language, split, examples=TEXTS)
    raise DataError(
        f"{corpus}: no split of language {language!r} was found. Remove the language, or --corpus."
    )


def _yes_or_no(fact: float) -> str:
    if isnan(fact):
        return "–"
    return "yes" if fact else "no"
