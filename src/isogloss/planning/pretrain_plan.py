"""[encoder.pretrain]: from its table to the run; what cannot be trained like this is refused."""

from collections.abc import Mapping
from dataclasses import replace

from isogloss.core.errors import ConfigError, check_named, located
from isogloss.core.languages import canonical_language, check_language
from isogloss.core.run_parts import Architecture, Replay, precision_of
from isogloss.data.sources import Sources, combined_fingerprint
from isogloss.encoders import FAMILIES
from isogloss.encoders.added.language_modules import SHARED_ADAPTER, check_modules, check_same_modules
from isogloss.encoders.families import check_new
from isogloss.methods import PRETRAINING, Pretraining
from isogloss.methods.masked_next_token import MaskedNextToken
from isogloss.methods.meta_learning import MetaLearning
from isogloss.recipes.checking import Added, names, part_of, plug_in, refuse_empty_or_twice, refuse_unknown
from isogloss.recipes.recipe import PretrainTable, Table
from isogloss.runs.alignments import AlignmentRequest, alignments
from isogloss.runs.encoder_runs import Align, Encoder, Pretrain
from isogloss.runs.encoders import (
    check_read,
    facts_of,
    mapped_languages,
    modules_of,
    predicts_text,
    reads_causally,
)
from isogloss.training.precision import PRECISIONS


def planned_pretraining(
    table: PretrainTable, start: Encoder | None, align: Table, sources: Sources, where: str
) -> Pretrain:
    """Build the run of a table, of a new encoder or one that is trained further.

    ``align`` is the recipe's table of how words are aligned.
    """
    default = "masked-language-modelling"
    added: Added = ("methods", Pretraining)
    kind = plug_in(
        table.method, PRETRAINING, "pretraining method", f"{where}.method", default=default, added=added
    )
    refuse_unknown(table.method, {"name", *names(kind)}, f"pretraining method {kind.name}", f"{where}.method")
    method = part_of(table.method, kind, f"{where}.method")
    check_named(f"{where}.method.precision", "precision", PRECISIONS, precision_of(method))
    refuse_empty_or_twice(table.text, f"{where}.text")
    refuse_empty_or_twice(table.languages, f"{where}.languages")
    for code in table.languages:
        check_language(code, f"{where}.languages")
    architecture = None if start else table.architecture or Architecture()
    if table.trained:
        _check_trained(table, start, method, sources.encoders, where)
    if architecture:
        _check_new(table, architecture, method, where)
    elif start:
        _check_start(table, start, method, sources.encoders, where)
    _check_bitext(table, method, where)
    check_named(f"{where}.lines", "language of this encoder", table.languages, *table.lines)
    run = Pretrain(
        text=table.text,
        languages=table.languages,
        start=start,
        architecture=architecture,
        method=method,
        bitext=table.bitext,
        lines=tuple(sorted(table.lines.items())) or None,
        vocabulary=table.vocabulary,
        aligned=_aligned(table, start, align, sources, f"{where}.vocabulary"),
        replay=_replay(table, method, where),
        modules=table.modules,
        trained=table.trained,
    )
    return replace(run, data=combined_fingerprint(_files_read(run, sources, where)))


def _check_bitext(table: PretrainTable, method: Pretraining, where: str) -> None:
    if bool(table.bitext) != bool(method.translation):
        raise ConfigError(
            f"{where}: bitext ({table.bitext!r}) and method.translation ({method.translation}) belong "
            f"together. Give both or neither."
        )
    if table.bitext and len(table.languages) < 2:
        raise ConfigError(
            f"{where}: translation LM reads sentences with their translations into the first language, and "
            f"{table.languages[0]} is the only one. Name another in languages, or leave bitext and "
            f"method.translation out."
        )


def _aligned(
    table: PretrainTable, start: Encoder | None, align: Table, sources: Sources, where: str
) -> tuple[Align, ...] | None:
    """Return the alignments that new embeddings are made from; ConfigError where there is no use for them."""
    new = table.vocabulary
    if new is None:
        return None
    if start is None:
        raise ConfigError(
            f"{where}: new subwords are added to an encoder that exists; how many a new one has is said in "
            f"architecture.vocabulary. Give a start, or leave vocabulary out."
        )
    wanted = new.embeddings == "translations"
    if wanted != bool(new.bitext) or wanted != bool(new.pairs):
        raise ConfigError(
            f'{where}: embeddings = "translations" and the fields bitext and pairs belong together; found '
            f"{new.embeddings!r}, bitext {new.bitext!r} and pairs {list(new.pairs)}. Give all or none."
        )
    refuse_empty_or_twice(new.pairs or ("none",), f"{where}.pairs")
    for pair in new.pairs:
        if pair.partition("-")[2] not in table.languages:
            raise ConfigError(
                f"{where}.pairs: {pair!r} does not end in a language whose subwords are learned; these are "
                f"{', '.join(table.languages)}. Name the language that the start knows first: en-sw."
            )
    if not wanted:
        return None
    return alignments(AlignmentRequest(align, where), sources, start, new.bitext, new.pairs)


def _replay(table: PretrainTable, method: Pretraining, where: str) -> Replay | None:
    """Return what is replayed, its languages as they are called here; ConfigError where it cannot be."""
    if table.replay is None:
        return None
    where = f"{where}.replay"
    replay = replace(table.replay, languages=tuple(map(canonical_language, table.replay.languages)))
    refuse_empty_or_twice((*table.languages, *replay.languages), f"{where}.languages")
    for code in replay.languages:
        check_language(code, f"{where}.languages")
    if not table.start or not replay.languages:
        raise ConfigError(
            f"{where}: it is text in languages that the start knows; found the start {table.start!r} and the "
            f"languages {', '.join(replay.languages) or '(none)'}. Give both, or leave replay out."
        )
    if not method.replays:
        raise ConfigError(f"{where}: {method.name} replays no text. Leave it out.")
    if table.modules and table.modules.kind != SHARED_ADAPTER and not table.modules.fallback:
        raise ConfigError(
            f"{where}: each language's text is read by modules of its own, and {replay.languages[0]} gets "
            f"none. Name it in languages, or a fallback in modules."
        )
    return replay


def _check_new(table: PretrainTable, shape: Architecture, method: Pretraining, where: str) -> None:
    """Raise ConfigError or ModelError for a new encoder that cannot be."""
    check_new(shape.family, f"{where}.architecture.family")
    if shape.dim % shape.heads:
        raise ConfigError(
            f"{where}.architecture: {shape.heads} heads do not divide dim {shape.dim}. "
            f"Choose dim as a multiple of heads."
        )
    if method.training.block > shape.positions:
        raise ConfigError(
            f"{where}.method.block: rows of {method.training.block} subwords do not fit into "
            f"{shape.positions} positions. Lower block or raise architecture.positions."
        )
    with located(where):
        FAMILIES[shape.family].shape(shape, padding=0)
        method.check(shape.family, table.modules, table.languages)
        if table.modules is not None:
            check_modules(table.modules, table.languages, dim=shape.dim)


def _check_start(
    table: PretrainTable, start: Encoder, method: Pretraining, folders: Mapping[str, str], where: str
) -> None:
    """Raise ConfigError or ModelError for an encoder that cannot be trained further like this."""
    if table.architecture is not None:
        raise ConfigError(
            f"{where}.architecture: with start = {table.start!r} architecture and tokenizer are those of the "
            f"start. Leave architecture out, or start to make a new encoder."
        )
    if mapped_languages(start, folders) is not None:
        raise ConfigError(
            f"{where}.start: {table.start!r} maps each language's states, and what changes it would leave "
            f"its maps behind. Start from the encoder without maps, and map last."
        )
    about, facts = modules_of(start, folders), facts_of(start, folders)
    if table.modules is not None and about is not None:
        with located(f"{where}: start {table.start!r}"):
            check_same_modules(about, table.modules)
    if table.modules is None:
        codes = (*table.languages, *(table.replay.languages if table.replay else ()))
        check_read(start, codes, folders, f"{where}.languages: encoder {table.start!r}")
    if facts and method.training.block > facts.positions:
        raise ConfigError(
            f"{where}.method.block: rows of {method.training.block} subwords do not fit into the "
            f"{facts.positions} positions of {table.start!r}. Lower block."
        )
    with located(where):
        modules = table.modules or (about.how if about else None)
        method.check(facts.family if facts else "", modules, table.languages)
        if isinstance(method, MaskedNextToken):
            method.check_mask(repr(table.start), causal=reads_causally(start, folders))
        if table.modules is not None and facts is not None:
            check_modules(table.modules, table.languages, dim=facts.dim)


def _check_trained(
    table: PretrainTable,
    start: Encoder | None,
    method: Pretraining,
    folders: Mapping[str, str],
    where: str,
) -> None:
    """Raise ConfigError where all that is not trained would be as it was drawn, or nothing is trained."""
    where = f"{where}.trained: {table.trained}"
    if start is None:
        raise ConfigError(
            f"{where}: all else would stay as it was drawn. Give start, an encoder that was pretrained, or "
            f"leave trained out."
        )
    if table.trained == "layers":
        if isinstance(method, MetaLearning):
            raise ConfigError(f"{where}: {method.name} trains modules, or all. Say modules, or leave it out.")
    elif table.modules is None and modules_of(start, folders) is None:
        raise ConfigError(
            f"{where}: {table.start!r} has none, and none are added. Give some: "
            f'modules = {{kind = "adapter"}}.'
        )
    if not predicts_text(start, folders):
        raise ConfigError(
            f"{where}: {table.start!r} was saved without a head that predicts text, and a new one would "
            f"never be learned. Train all of it first (leave trained out), or take another start."
        )
    if table.trained == "modules" and table.replay is not None:
        raise ConfigError(
            f"{where}: what else the start knows stays as it is, and need not be replayed. Leave replay out."
        )
    if table.vocabulary is not None:
        raise ConfigError(
            f"{where}: the embeddings of new subwords would stay as they were made. Train all of it with the "
            f"new vocabulary first, and start from that."
        )


def _files_read(run: Pretrain, sources: Sources, where: str) -> list[str]:
    """Return the fingerprints of all text and bitext that a run reads, held-out text too if it measures."""
    first, *others = run.languages
    texts = [(corpus, code) for corpus in run.text for code in run.languages]
    replayed = run.languages_read[len(run.languages) :]
    texts += [(corpus, code) for code in replayed for corpus in run.corpora(code)]
    wanted = [("text", corpus, "text", code) for corpus, code in texts]
    if run.bitext:
        wanted += [("bitext", run.bitext, "bitext", f"{first}-{other}") for other in others]
    files = [_fingerprint(sources, corpus, kind, code, f"{where}.{f}") for f, corpus, kind, code in wanted]
    if run.method.training.evaluate_every is not None:
        with_dev = [(corpus, code) for corpus, code in texts if sources.has_dev(corpus, code)]
        files += [sources.fingerprint(corpus, code, "dev") for corpus, code in with_dev]
    return files


def _fingerprint(sources: Sources, corpus: str, kind: str, language: str, where: str) -> str:
    """Return the fingerprint of a training split; the corpus must hold text, or bitext."""
    with located(where):
        sources.needs(corpus, kind)
        return sources.fingerprint(corpus, language, "train")
