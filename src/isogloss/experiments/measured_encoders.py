"""From a [[measure]] table to the measurements of encoders, and of those within models: on bitext or text."""

from collections.abc import Iterator

from isogloss.core.errors import ConfigError, ModelError
from isogloss.core.run_graph import original
from isogloss.core.runs import Encoder, FineTune, Measure, Pretrain
from isogloss.data.sources import Sources, joined
from isogloss.experiments.alignments import Asked, alignments
from isogloss.experiments.chosen import Chosen, models_chosen, refuse_unread
from isogloss.experiments.encoders import encoder_label, has_masked_lm
from isogloss.experiments.grid import Cell
from isogloss.experiments.languages_read import reads
from isogloss.experiments.recipe import located, refuse_empty_or_twice


def over_encoders(
    chosen: Chosen, built: list[Encoder], grid: list[Cell], sources: Sources
) -> Iterator[Measure]:
    """One measurement of each encoder on bitext."""
    for encoder in built:
        yield _on_bitext(chosen, encoder, _languages(chosen, encoder, grid, sources), sources)


def over_states(
    chosen: Chosen, built: list[Encoder], grid: list[Cell], sources: Sources
) -> Iterator[Measure]:
    """One measurement of each encoder, and of that within each model chosen, on bitext."""
    yield from over_encoders(chosen, built, grid, sources)
    for model, languages, _ in models_chosen(chosen, grid):
        yield _on_bitext(chosen, model, chosen.choice.languages or languages, sources)


def _on_bitext(
    chosen: Chosen, subject: Encoder | FineTune, languages: tuple[str, ...], sources: Sources
) -> Measure:
    """One measurement on translations of the first language; their words are aligned where it asks for it."""
    corpus = chosen.choice.corpus
    if not corpus:
        raise ConfigError(
            f"{chosen.where}: {chosen.diagnostic.name} needs bitext: name it in the field corpus."
        )
    first, *others = languages
    pairs = [f"{first}-{other}" for other in others]
    with located(f"{chosen.where}: corpus"):
        sources.needs(corpus, "bitext")
        files = [sources.fingerprint(corpus, pair, chosen.split) for pair in pairs]
    aligned = None
    encoder = subject.encoder if isinstance(subject, FineTune) else subject
    refuse_unread(chosen, encoder, languages, sources)
    if chosen.diagnostic.over == "words":
        asked = Asked(chosen.align, chosen.where, chosen.split)
        aligned = alignments(asked, sources, encoder, corpus, pairs)
    return Measure(
        diagnostic=chosen.diagnostic,
        subjects=(subject,),
        languages=(first, *others),
        corpus=corpus,
        split=chosen.split,
        aligned=aligned,
        examples=chosen.choice.examples,
        data=joined(files),
    )


def over_text(chosen: Chosen, built: list[Encoder], grid: list[Cell], sources: Sources) -> Iterator[Measure]:
    """One measurement of each encoder with its masked-LM head, on raw text: its own when none is named."""
    for encoder in built:
        first = original(encoder)
        own = "+".join(first.text) if isinstance(first, Pretrain) else ""
        corpus, name = chosen.choice.corpus or own, chosen.diagnostic.name
        if not corpus:
            raise ConfigError(f"{chosen.where}: {name} needs raw text: name it in the field corpus.")
        if not has_masked_lm(encoder, sources.encoders):
            raise ModelError(
                f"{chosen.where}: {name} looks at masked-LM heads, and the encoder "
                f"{encoder_label(encoder)!r} has none. Give one that was saved with its head."
            )
        languages = _languages(chosen, encoder, grid, sources, least=1)
        with located(f"{chosen.where}: corpus"):
            sources.needs(corpus, "text")
            files = [sources.fingerprint(corpus, language, chosen.split) for language in languages]
        yield Measure(
            diagnostic=chosen.diagnostic,
            subjects=(encoder,),
            languages=languages,
            corpus=corpus,
            split=chosen.split,
            examples=chosen.choice.examples,
            data=joined(files),
        )


def _languages(
    chosen: Chosen, encoder: Encoder, grid: list[Cell], sources: Sources, *, least: int = 2
) -> tuple[str, ...]:
    """Return the languages an encoder is looked at in: those named, its own, or the grid's it reads."""
    first = original(encoder)
    own = first.languages if isinstance(first, Pretrain) else ()
    of_grid = tuple(dict.fromkeys(code for cell in grid for code in (*cell.source, *cell.targets)))
    readable = tuple(code for code in of_grid if reads(encoder, code, sources.encoders))
    languages = tuple(chosen.choice.languages) or own or readable
    if len(languages) < least:
        wants, number = ("reads languages", "one") if least == 1 else ("compares languages", "two")
        raise ConfigError(
            f"{chosen.where}: languages: {chosen.diagnostic.name} {wants}, and the recipe names "
            f"{len(languages)}. Name {number} or more."
        )
    refuse_empty_or_twice(languages, f"{chosen.where}: languages")
    return languages
