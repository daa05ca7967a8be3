"""From a [[measure]] table to the measurements of encoders, and of those within models: on bitext or text."""

from collections.abc import Iterator

from isogloss.core.errors import ConfigError, ModelError, unknown_name
from isogloss.core.run_graph import original
from isogloss.core.runs import Encoder, FineTune, Measure, Pretrain, Translate
from isogloss.data.corpora import is_translation
from isogloss.data.parallel_examples import check_parallel
from isogloss.data.sources import Sources, Treebanks, combined_fingerprint
from isogloss.experiments.alignments import Asked, alignments
from isogloss.experiments.encoders import encoder_label, has_masked_lm, reads
from isogloss.experiments.grid import Cell
from isogloss.experiments.measured_models import (
    Chosen,
    models_chosen,
    named_treebanks,
    refuse_unread,
    translations_made,
)
from isogloss.experiments.recipe import located, refuse_empty_or_twice
from isogloss.tasks import TASKS
from isogloss.training.inputs import ORIGINAL_INPUTS, PAIRED, codes_read


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


def over_parallel(
    chosen: Chosen, built: list[Encoder], grid: list[Cell], sources: Sources
) -> Iterator[Measure]:
    """One measurement of each encoder, and of that within each model chosen, on bitext or a test set.

    Beside their translations examples are read by models alone, and by those that mix.
    """
    choice = chosen.choice
    with located(f"{chosen.where}: corpus"):
        bitext = not choice.corpus or TASKS.keys().isdisjoint(sources.corpus(choice.corpus).tasks)
    for field in ("inputs", "treebanks") if bitext else ():
        if getattr(choice, field):
            raise ConfigError(
                f"{chosen.where}: {field}: found {getattr(choice, field)!r}, but corpus {choice.corpus!r} "
                f"has no labels. Leave it out, or name a parallel test set of a task."
            )
    if bitext:
        yield from over_states(chosen, built, grid, sources)
        return
    if choice.inputs not in (ORIGINAL_INPUTS, PAIRED):
        raise unknown_name(f"{chosen.where}: inputs", "kind of inputs here", choice.inputs, (PAIRED,))
    for encoder in () if choice.inputs else built:
        languages = _languages(chosen, encoder, grid, sources)
        yield _on_examples(chosen, encoder, languages, None, sources)
    for model, languages, cell in models_chosen(chosen, grid):
        yield _on_examples(chosen, model, choice.languages or languages, cell, sources)


def _on_examples(
    chosen: Chosen,
    subject: Encoder | FineTune,
    languages: tuple[str, ...],
    cell: Cell | None,
    sources: Sources,
) -> Measure:
    """One measurement on the labelled examples of a parallel test set."""
    choice = chosen.choice
    of_cell = cell.treebanks if cell is not None and choice.corpus == cell.corpus else ()
    treebanks = named_treebanks(chosen, languages) or of_cell
    encoder = subject.encoder if isinstance(subject, FineTune) else subject
    refuse_unread(chosen, encoder, languages, sources)
    with located(f"{chosen.where}: corpus"):
        check_parallel(choice.corpus, chosen.split, languages, dict(treebanks))
    codes, made = _codes_and_made(chosen, languages, cell, treebanks, sources)
    with located(chosen.where):
        files = [sources.fingerprint(choice.corpus, one, chosen.split, treebanks=treebanks) for one in codes]
    return Measure(
        diagnostic=chosen.diagnostic,
        subjects=(subject,),
        languages=languages,
        corpus=choice.corpus,
        split=chosen.split,
        inputs=choice.inputs or None,
        translated=made or None,
        treebanks=tuple(pair for pair in treebanks if pair[0] in languages),
        examples=choice.examples,
        data=combined_fingerprint(files),
    )


def _codes_and_made(
    chosen: Chosen, languages: tuple[str, ...], cell: Cell | None, treebanks: Treebanks, sources: Sources
) -> tuple[list[str], tuple[Translate, ...]]:
    """Return the languages, and pairs of them, that are read from files, and the translations made."""
    inputs, corpus = chosen.choice.inputs, chosen.choice.corpus
    if cell is None or not inputs:
        return [*languages], ()
    with located(f"{chosen.where}: corpus"):
        sources.needs(corpus, cell.task)
    codes = [code for language in languages for code in codes_read(inputs, language, cell.source)]
    translated = [code for code in codes if is_translation(code)]
    made = translations_made(chosen, corpus, translated, cell, treebanks, sources)
    return [code for code in codes if code not in {one.languages for one in made}], made


def _on_bitext(
    chosen: Chosen, subject: Encoder | FineTune, languages: tuple[str, ...], sources: Sources
) -> Measure:
    """One measurement on translations of the first language; their words are aligned where it asks for it."""
    corpus = chosen.choice.corpus
    if not corpus:
        or_more = " or a parallel test set" if chosen.diagnostic.subject == "parallel" else ""
        raise ConfigError(
            f"{chosen.where}: {chosen.diagnostic.name} needs bitext{or_more}: name it in the field corpus."
        )
    first, *others = languages
    pairs = [f"{first}-{other}" for other in others]
    with located(f"{chosen.where}: corpus"):
        sources.needs(corpus, "bitext")
        files = [sources.fingerprint(corpus, pair, chosen.split) for pair in pairs]
    aligned = None
    encoder = subject.encoder if isinstance(subject, FineTune) else subject
    refuse_unread(chosen, encoder, languages, sources)
    if chosen.diagnostic.subject == "words":
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
        data=combined_fingerprint(files),
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
            data=combined_fingerprint(files),
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
