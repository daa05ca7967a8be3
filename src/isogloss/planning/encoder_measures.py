"""From a [[measure]] table to the measurements of encoders, and of those within models: on bitext or text."""

from collections.abc import Iterator
from dataclasses import replace

from isogloss.core.errors import ConfigError, ModelError, check_named, located
from isogloss.data.projection.parallel_examples import check_parallel
from isogloss.data.sources import combined_fingerprint
from isogloss.planning.grid import Cell
from isogloss.planning.measures import (
    MeasureRequest,
    check_languages,
    chosen_models,
    measurement,
    on_examples,
    treebanks_read,
)
from isogloss.runs.alignments import AlignmentRequest, alignments
from isogloss.runs.encoder_runs import Encoder, Pretrain
from isogloss.runs.encoders import has_masked_lm, reads
from isogloss.runs.runs import Measure, Run, tasks_of
from isogloss.training.evaluation import ORIGINAL_INPUTS, PAIRED


def of_encoders(request: MeasureRequest) -> Iterator[Measure]:
    """One measurement of each encoder on bitext."""
    for encoder in request.encoders:
        yield _on_bitext(request, encoder, encoder, _languages(request, encoder))


def of_states(request: MeasureRequest) -> Iterator[Measure]:
    """One measurement of each encoder, and of that within each model chosen, on bitext."""
    yield from of_encoders(request)
    for model, languages, _ in chosen_models(request):
        yield _on_bitext(request, model, model.encoder, request.choice.languages or languages)


def of_parallel(request: MeasureRequest) -> Iterator[Measure]:
    """One measurement of each encoder, and of that within each model chosen, on bitext or a test set.

    Paired inputs are for models alone, and among them for those that mix.
    """
    choice = request.choice
    with located(f"{request.where}: corpus"):
        bitext = not choice.corpus or not tasks_of(choice.corpus)
    for field in ("inputs", "treebanks") if bitext else ():
        if getattr(choice, field):
            raise ConfigError(
                f"{request.where}: {field}: found {getattr(choice, field)!r}, but corpus {choice.corpus!r} "
                f"has no labels. Leave it out, or name a parallel test set of a task."
            )
    if bitext:
        yield from of_states(request)
        return
    if choice.inputs != ORIGINAL_INPUTS:
        check_named(f"{request.where}: inputs", "kind of inputs here", (PAIRED,), choice.inputs)
    for encoder in () if choice.inputs else request.encoders:
        yield _on_test_set(request, encoder, encoder, _languages(request, encoder), None)
    for model, languages, cell in chosen_models(request):
        yield _on_test_set(request, model, model.encoder, choice.languages or languages, cell)


def _on_test_set(
    request: MeasureRequest, subject: Run, encoder: Encoder, languages: tuple[str, ...], cell: Cell | None
) -> Measure:
    """Build a measurement on the labelled examples of a parallel test set."""
    corpus, inputs = request.choice.corpus, request.choice.inputs
    check_languages(request, encoder, languages)
    with located(f"{request.where}: corpus"):
        check_parallel(
            corpus, request.split, languages, dict(treebanks_read(request, corpus, languages, cell))
        )
        if cell is not None and inputs:
            request.sources.needs(corpus, cell.task)
    return on_examples(request, (subject,), corpus, languages, cell)


def _on_bitext(
    request: MeasureRequest, subject: Run, encoder: Encoder, languages: tuple[str, ...]
) -> Measure:
    """Build a measurement on translations of the first language, aligned where words are compared."""
    corpus, diagnostic = request.choice.corpus, request.diagnostic
    kind = "comparable" if diagnostic.subject == "comparable" else "bitext"
    if not corpus:
        kinds = {"parallel": "bitext or a parallel test set", "comparable": "comparable text"}
        raise ConfigError(
            f"{request.where}: {diagnostic.name} needs {kinds.get(diagnostic.subject, kind)}: "
            f"name it in the field corpus."
        )
    first, *others = languages
    pairs = [f"{first}-{other}" for other in others]
    with located(f"{request.where}: corpus"):
        request.sources.needs(corpus, kind)
        found = measurement(request, (subject,), languages, corpus, pairs)
        if len(found.splits) > 1:
            choices = [replace(request.choice, split=split) for split in found.splits]
            each = [replace(request, choice=choice) for choice in choices]
            data = [measurement(one, (subject,), languages, corpus, pairs).data for one in each]
            found = replace(found, data=combined_fingerprint(data))
    check_languages(request, encoder, languages)
    if diagnostic.subject != "words":
        return found
    asked = AlignmentRequest(request.align, request.where, request.split)
    return replace(found, aligned=alignments(asked, request.sources, encoder, corpus, pairs))


def of_masked_lm(request: MeasureRequest) -> Iterator[Measure]:
    """One measurement of each encoder with its masked-LM head, on raw text: its own when none is named."""
    for encoder in request.encoders:
        first, name = encoder.original, request.diagnostic.name
        own = "+".join(first.text) if isinstance(first, Pretrain) else ""
        corpus = request.choice.corpus or own
        if not corpus:
            raise ConfigError(f"{request.where}: {name} needs raw text: name it in the field corpus.")
        if not has_masked_lm(encoder, request.sources.encoders):
            raise ModelError(
                f"{request.where}: {name} looks at masked-LM heads, and the encoder "
                f"{encoder.label!r} has none. Give one that was saved with its head."
            )
        languages = _languages(request, encoder, least=1)
        with located(f"{request.where}: corpus"):
            request.sources.needs(corpus, "text")
            found = measurement(request, (encoder,), languages, corpus, languages)
        yield found


def _languages(request: MeasureRequest, encoder: Encoder, *, least: int = 2) -> tuple[str, ...]:
    """Return the languages an encoder is measured in: those named, its own, or the grid's it reads."""
    first, here = encoder.original, request.sources.encoders
    own = first.languages_read if isinstance(first, Pretrain) else ()
    of_grid = dict.fromkeys(code for cell in request.cells for code in (*cell.source, *cell.targets))
    readable = tuple(code for code in of_grid if reads(encoder, code, here))
    languages = request.choice.languages or own or readable
    if len(languages) < least:
        wants, number = ("reads languages", "one") if least == 1 else ("compares languages", "two")
        raise ConfigError(
            f"{request.where}: languages: {request.diagnostic.name} {wants}, and the recipe names "
            f"{len(languages)}. Name {number} or more."
        )
    return languages
