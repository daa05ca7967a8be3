"""Plan the run of an [encoder.pretrain] table and refuse impossible settings."""

from collections.abc import Mapping
from dataclasses import replace

from isogloss.core.errors import ConfigError, add_location, check_named
from isogloss.core.languages import canonical_language, check_language
from isogloss.core.run_parts import Architecture, Replay
from isogloss.data.sources import Sources, combined_fingerprint
from isogloss.encoders import FAMILIES
from isogloss.encoders.added.module_settings import (
    are_shared,
    check_modules,
    check_placement,
    check_same_modules,
)
from isogloss.encoders.families import check_new
from isogloss.features.pretraining.run import Pretrain
from isogloss.methods import PRETRAINING
from isogloss.planning.alignments import AlignmentRequest, alignments
from isogloss.recipes.checking import Kinds, refuse_empty_or_twice
from isogloss.recipes.recipe import PretrainTable, Table
from isogloss.runs.run import Encoder, LinkedBitext
from isogloss.training.setting import Pretraining

PRETRAINING_KINDS = Kinds(
    "pretraining method", PRETRAINING, "methods", Pretraining, default="masked-language-modelling"
)


def plan_pretraining(
    table: PretrainTable, starts: Mapping[int, Encoder | None], align: Table, sources: Sources
) -> list[Pretrain]:
    """Build the runs of a table: one for each seed, with its start if an encoder is trained further."""
    runs = {start: _plan_run(table, start, align, sources) for start in starts.values()}
    return [replace(runs[start], seed=seed) for seed, start in starts.items()]


def _plan_run(table: PretrainTable, start: Encoder | None, align: Table, sources: Sources) -> Pretrain:
    """Build the run of a table. It pretrains a new encoder, or trains ``start`` further.

    ``align`` is the recipe's [align] table.
    """
    with add_location(".method"):
        method = PRETRAINING_KINDS.read(table.method)
    refuse_empty_or_twice(table.text, ".text")
    refuse_empty_or_twice(table.languages, ".languages")
    for language in table.languages:
        check_language(language, ".languages")
    architecture = None if start else table.architecture or Architecture()
    if table.trained:
        with add_location(f".trained: {table.trained}"):
            _check_trained(table, start, method, sources.encoders)
    if architecture:
        _check_new(table, architecture, method)
    elif start:
        _check_start(table, start, method, sources.encoders)
    _check_bitext(table, method)
    check_named(".lines", "language of this encoder", table.languages, *table.lines)
    with add_location(".vocabulary"):
        alignments = _plan_alignments(table, start, align, sources)
    with add_location(".replay"):
        replay = _replay(table, method)
    run = Pretrain(
        text=table.text,
        languages=table.languages,
        start=start,
        architecture=architecture,
        method=method,
        bitext=table.bitext,
        lines=tuple(sorted(table.lines.items())) or None,
        vocabulary=table.vocabulary,
        aligned=alignments,
        replay=replay,
        modules=table.modules,
        trained=table.trained,
    )
    return replace(run, data=combined_fingerprint(_files_read(run, sources)))


def _check_bitext(table: PretrainTable, method: Pretraining) -> None:
    if bool(table.bitext) != bool(method.translation):
        raise ConfigError(
            f"bitext ({table.bitext!r}) and method.translation ({method.translation}) belong "
            "together. Give both or neither."
        )
    if table.bitext and len(table.languages) < 2:
        raise ConfigError(
            "translation LM reads sentences with their translations into the first language, and "
            f"{table.languages[0]} is the only one. Name another in languages, or leave bitext and "
            "method.translation out."
        )


def _plan_alignments(
    table: PretrainTable, start: Encoder | None, align: Table, sources: Sources
) -> tuple[LinkedBitext, ...] | None:
    """Return the alignments that initialise new embeddings.

    Raises ConfigError if nothing uses them.
    """
    vocabulary = table.vocabulary
    if vocabulary is None:
        return None
    if start is None:
        raise ConfigError(
            "new subwords are added to an encoder that exists; the size of a new one's vocabulary is "
            "architecture.vocabulary. Give a start, or remove vocabulary."
        )
    from_translations = vocabulary.embeddings == "translations"
    if from_translations != bool(vocabulary.bitext) or from_translations != bool(vocabulary.pairs):
        raise ConfigError(
            f'embeddings = "translations" and the fields bitext and pairs need each other, but found '
            f"{vocabulary.embeddings!r}, bitext {vocabulary.bitext!r} and pairs {list(vocabulary.pairs)}. "
            f"Give all or none."
        )
    refuse_empty_or_twice(vocabulary.pairs or ("none",), ".pairs")
    for pair in vocabulary.pairs:
        if pair.partition("-")[2] not in table.languages:
            raise ConfigError(
                f".pairs: {pair!r} does not end in a language whose subwords are learned; these are "
                f"{', '.join(table.languages)}. Name the language that the start knows first: en-sw."
            )
    if not from_translations:
        return None
    return alignments(AlignmentRequest(align), sources, start, vocabulary.bitext, vocabulary.pairs)


def _replay(table: PretrainTable, method: Pretraining) -> Replay | None:
    """Return the replayed text with canonical language codes.

    Raises ConfigError if it cannot be replayed.
    """
    if table.replay is None:
        return None
    replay = replace(
        table.replay, languages=tuple(canonical_language(language) for language in table.replay.languages)
    )
    refuse_empty_or_twice((*table.languages, *replay.languages), ".languages")
    for language in replay.languages:
        check_language(language, ".languages")
    if not table.start or not replay.languages:
        raise ConfigError(
            f"it is text in languages that the start knows; found the start {table.start!r} and the "
            f"languages {', '.join(replay.languages) or '(none)'}. Give both, or remove replay."
        )
    if not method.replays:
        raise ConfigError(f"{method.name} replays no text. Remove it.")
    if table.modules and not are_shared(table.modules) and not table.modules.fallback:
        raise ConfigError(
            f"each language has its own modules, and {replay.languages[0]} has none. Add it to languages, "
            "or set a fallback in modules."
        )
    return replay


def _check_new(table: PretrainTable, shape: Architecture, method: Pretraining) -> None:
    check_new(shape.family, ".architecture.family")
    if shape.dim % shape.heads:
        raise ConfigError(
            f".architecture: {shape.heads} heads do not divide dim {shape.dim}. "
            "Choose dim as a multiple of heads."
        )
    if method.training.block > shape.positions:
        raise ConfigError(
            f".method.block: rows of {method.training.block} subwords do not fit into "
            f"{shape.positions} positions. Lower block or raise architecture.positions."
        )
    FAMILIES[shape.family].shape(shape, padding=0)
    method.check(shape.family, table.modules, table.languages)
    if table.modules is not None:
        check_modules(table.modules, table.languages, dim=shape.dim)
        check_placement(table.modules, layers=shape.layers, family=shape.family)


def _check_start(
    table: PretrainTable, start: Encoder, method: Pretraining, folders: Mapping[str, str]
) -> None:
    if table.architecture is not None:
        raise ConfigError(
            f".architecture: with start = {table.start!r} architecture and tokenizer are those of the "
            "start. Remove architecture, or start to make a new encoder."
        )
    start.check_unmapped(folders, f".start: {table.start!r}")
    start_modules = start.language_modules(folders)
    facts = start.facts(folders)
    if table.modules is not None and start_modules is not None:
        with add_location(f"start {table.start!r}"):
            check_same_modules(start_modules, table.modules)
    if table.modules is None:
        codes = (*table.languages, *(table.replay.languages if table.replay else ()))
        start.check_read(codes, folders, f".languages: encoder {table.start!r}")
    if facts and method.training.block > facts.positions:
        raise ConfigError(
            f".method.block: rows of {method.training.block} subwords do not fit into the "
            f"{facts.positions} positions of {table.start!r}. Lower block."
        )
    modules = table.modules or (start_modules.modules if start_modules else None)
    method.check(facts.family if facts else "", modules, table.languages)
    method.check_mask(repr(table.start), causal=start.reads_causally(folders))
    if table.modules is not None and facts is not None:
        check_modules(table.modules, table.languages, dim=facts.dim)
        check_placement(table.modules, layers=facts.layers, family=facts.family)


def _check_trained(
    table: PretrainTable,
    start: Encoder | None,
    method: Pretraining,
    folders: Mapping[str, str],
) -> None:
    if start is None:
        raise ConfigError(
            "all else would stay as it was drawn. Give start, an encoder that was pretrained, or "
            "remove trained."
        )
    if table.trained == "layers":
        if not method.trains_layers:
            raise ConfigError(f"{method.name} trains modules, or all. Say modules, or remove it.")
    elif table.modules is None and start.language_modules(folders) is None:
        raise ConfigError(
            f'{table.start!r} has none, and none are added. Give some: modules = {{kind = "adapter"}}.'
        )
    if not start.predicts_text(folders):
        raise ConfigError(
            f"{table.start!r} was saved without a head that predicts text, and a new one would "
            "never be learned. Train all of it first (remove trained), or take another start."
        )
    if table.trained == "modules" and table.replay is not None:
        raise ConfigError(
            "what else the start knows stays as it is, and need not be replayed. Remove replay."
        )
    if table.vocabulary is not None:
        raise ConfigError(
            "the embeddings of new subwords would stay at their initial values. Train the whole encoder "
            "with the new vocabulary first, and start from that encoder."
        )


def _files_read(run: Pretrain, sources: Sources) -> list[str]:
    """Return the fingerprints of all text and bitext of a run, with held-out text if it measures some."""
    source, *targets = run.languages
    texts = [(corpus, language) for corpus in run.text for language in run.languages]
    replay_languages = run.languages_read[len(run.languages) :]
    texts += [(corpus, language) for language in replay_languages for corpus in run.corpora(language)]
    with add_location(".text"):
        files = [_fingerprint(sources, corpus, "text", language) for corpus, language in texts]
    with add_location(".bitext"):
        pairs = [f"{source}-{target}" for target in targets] if run.bitext else []
        files += [_fingerprint(sources, run.bitext, "bitext", pair) for pair in pairs]
    if run.method.holds_out:
        with_dev = [(corpus, language) for corpus, language in texts if sources.has_dev(corpus, language)]
        files += [sources.fingerprint(corpus, language, "dev") for corpus, language in with_dev]
    return files


def _fingerprint(sources: Sources, corpus: str, task: str, language: str) -> str:
    """Return the fingerprint of a training split of text or bitext."""
    sources.needs(corpus, task)
    return sources.fingerprint(corpus, language, "train")
