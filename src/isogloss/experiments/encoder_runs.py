"""From a recipe to the encoders it works on: those it names, those it pretrains, and those it adjusts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain

from isogloss.core.errors import ConfigError, unknown_name
from isogloss.core.languages import check_language
from isogloss.core.run_parts import keys_of, values_of
from isogloss.core.runs import Adjust, Architecture, Encoder, Pretrain, Pretrained
from isogloss.data.sources import Sources, combined_fingerprint
from isogloss.encoders import FAMILIES
from isogloss.encoders.language_modules import check_modules
from isogloss.experiments.alignments import Asked, alignments
from isogloss.experiments.encoders import check_read, encoder_label, mapped_languages, pretrained
from isogloss.experiments.pretraining_text import has_dev
from isogloss.experiments.recipe import (
    AdjustTable,
    EncoderTable,
    PretrainTable,
    Recipe,
    Table,
    checked,
    located,
    refuse_empty_or_twice,
    refuse_unknown,
)
from isogloss.methods import ADJUSTMENTS, PRETRAINING
from isogloss.training.precision import check_precision

ORIGINAL = "original"
"""What recipes call encoders that were not adjusted."""


def encoders(recipe: Recipe, sources: Sources, where: str) -> dict[Encoder, str]:
    """Build the recipe's encoders, each with the label that methods choose it by."""
    entries = encoder_entries(recipe)
    originals = [_encoders(entry, sources, where) for entry in entries]
    refuse_empty_or_twice([encoder_label(one) for some in originals for one in some], f"{where}: encoder")
    labelled = zip(originals, _labels(entries, where), strict=True)
    found: dict[Encoder, str] = {encoder: label for some, label in labelled for encoder in some}
    for place, table in enumerate(recipe.adjust):
        here = f"{where}: adjust[{place}]"
        adjusted, labels = _adjusted(table, found, recipe, sources, here), set(found.values())
        for encoder, label in adjusted.items():
            if encoder in found or label in labels:
                raise ConfigError(
                    f"{here}: {label!r} is there already. Change something, or give it a label of its own."
                )
        found |= adjusted
    return found


def _adjusted(
    table: Table, there: Mapping[Encoder, str], recipe: Recipe, sources: Sources, where: str
) -> dict[Encoder, str]:
    """Build the encoders one [[adjust]] table asks for: one for each it starts from and each size."""
    name = table.get("name")
    if name not in ADJUSTMENTS:
        raise unknown_name(where, "way to adjust an encoder", str(name), ADJUSTMENTS)
    kind = ADJUSTMENTS[name]
    own, about = (set(keys_of(part)) for part in (kind, AdjustTable))
    refuse_unknown(table, own | about, f"adjustment {name}", where)
    choice: AdjustTable = checked(AdjustTable, {key: table[key] for key in about & set(table)}, where)
    method = checked(kind, {key: table[key] for key in own & set(table)}, where)
    check_precision(values_of(method)["precision"], f"{where}: precision")
    if choice.start not in there.values():
        raise unknown_name(f"{where}: start", "encoder of this recipe", choice.start, set(there.values()))
    sizes = choice.examples if isinstance(choice.examples, tuple) else (choice.examples,)
    refuse_empty_or_twice(sizes, f"{where}: examples")
    refuse_empty_or_twice(choice.pairs, f"{where}: pairs")
    found: dict[Encoder, str] = {}
    for encoder in [one for one, label in there.items() if label == choice.start]:
        if mapped_languages(encoder, sources.encoders) is not None:
            raise ConfigError(
                f"{where}: start: {choice.start!r} maps each language's states, and what changes it would "
                f"leave its maps behind. Start from the encoder without maps, and map last."
            )
        codes = chain.from_iterable(pair.split("-") for pair in choice.pairs)
        check_read(encoder, codes, sources.encoders, f"{where}: pairs: encoder {choice.start!r}")
        for size in sizes:
            asked = Asked(recipe.align, where)
            aligned = alignments(asked, sources, encoder, choice.bitext, choice.pairs)
            label = choice.label or str(name)
            adjust = Adjust(
                encoder=encoder,
                method=method,
                aligned=tuple(replace(one, examples=size) for one in aligned),
                seed=choice.seed,
            )
            found[adjust] = f"{label} {size}" if len(sizes) > 1 else label
    return found


def _labels(entries: Sequence[str | EncoderTable], where: str) -> list[str]:
    """Return what the encoders are called; a label that is given is the encoder's own."""
    labels = [ORIGINAL if isinstance(entry, str) else entry.label or ORIGINAL for entry in entries]
    for place, entry in enumerate(entries):
        if not isinstance(entry, str) and entry.label and labels.count(entry.label) > 1:
            raise ConfigError(
                f"{where}: encoder[{place}]: {entry.label!r} is the label of another encoder too. Give each "
                f"its own."
            )
    return labels


def encoder_entries(recipe: Recipe) -> tuple[str | EncoderTable, ...]:
    """List what a recipe says of its encoders."""
    return recipe.encoder if isinstance(recipe.encoder, tuple) else (recipe.encoder,)


def _encoders(entry: str | EncoderTable, sources: Sources, where: str) -> list[Encoder]:
    """Build what one entry asks for: an encoder for each seed."""
    if isinstance(entry, str):
        return [_pretrained(entry, where)]
    if bool(entry.pretrain) == bool(entry.pretrained):
        raise ConfigError(
            f"{where}: encoder: give either pretrain (make one) or pretrained (a folder or name)."
        )
    if entry.pretrain is None:
        return [_pretrained(entry.pretrained, where)]
    seeds = entry.pretrain.seed if isinstance(entry.pretrain.seed, tuple) else (entry.pretrain.seed,)
    refuse_empty_or_twice(seeds, f"{where}: encoder.pretrain.seed")
    made = _pretrain(entry.pretrain, sources, f"{where}: encoder.pretrain")
    return [replace(made, seed=seed) for seed in seeds]


def _pretrained(source: str, where: str) -> Pretrained:
    with located(f"{where}: encoder"):
        return pretrained(source)


def _pretrain(table: PretrainTable, sources: Sources, where: str) -> Pretrain:
    name = table.method.get("name", "masked-language-modelling")
    if name not in PRETRAINING:
        raise unknown_name(f"{where}.method", "pretraining method", str(name), PRETRAINING)
    values = {key: value for key, value in table.method.items() if key != "name"}
    method = checked(PRETRAINING[name], values, f"{where}.method")
    check_precision(values_of(method)["precision"], f"{where}.method.precision")
    _check_architecture(table.architecture, method.block, where)
    with located(where):
        FAMILIES[table.architecture.family].shape(table.architecture, padding=0)
        method.check(table.architecture, table.modules, table.languages)
    refuse_empty_or_twice(table.text, f"{where}.text")
    refuse_empty_or_twice(table.languages, f"{where}.languages")
    for code in table.languages:
        check_language(code, f"{where}.languages")
    if table.modules is not None:
        with located(where):
            check_modules(table.modules, table.languages, dim=table.architecture.dim)
    if bool(table.bitext) != bool(method.translation):
        raise ConfigError(
            f"{where}: bitext ({table.bitext!r}) and method.translation ({method.translation}) belong "
            f"together. Give both or neither."
        )
    for code in table.lines:
        if code not in table.languages:
            raise unknown_name(f"{where}.lines", "language of this encoder", code, table.languages)
    return Pretrain(
        text=table.text,
        languages=table.languages,
        architecture=table.architecture,
        method=method,
        bitext=table.bitext,
        lines=tuple(sorted(table.lines.items())) or None,
        modules=table.modules,
        data=combined_fingerprint(
            _files_read(table, sources, where, held_out=method.evaluate_every is not None)
        ),
    )


def _files_read(table: PretrainTable, sources: Sources, where: str, *, held_out: bool) -> list[str]:
    """Return the fingerprints of all text and bitext that a pretraining reads, held-out text too if asked."""
    first, *others = table.languages
    wanted = [("text", corpus, "text", code) for corpus in table.text for code in table.languages]
    if table.bitext:
        wanted += [("bitext", table.bitext, "bitext", f"{first}-{other}") for other in others]
    files = [_fingerprint(sources, corpus, kind, code, f"{where}.{f}") for f, corpus, kind, code in wanted]
    if held_out:
        texts = [(corpus, code) for _, corpus, kind, code in wanted if kind == "text"]
        with_dev = [(corpus, code) for corpus, code in texts if has_dev(sources, corpus, code)]
        files += [sources.fingerprint(corpus, code, "dev") for corpus, code in with_dev]
    return files


def _fingerprint(sources: Sources, corpus: str, kind: str, language: str, where: str) -> str:
    """Return the fingerprint of a training split; the corpus must hold text, or bitext."""
    with located(where):
        sources.needs(corpus, kind)
        return sources.fingerprint(corpus, language, "train")


def _check_architecture(shape: Architecture, block: int, where: str) -> None:
    if shape.family not in FAMILIES:
        raise unknown_name(f"{where}.architecture.family", "encoder family", shape.family, FAMILIES)
    if shape.dim % shape.heads:
        raise ConfigError(
            f"{where}.architecture: {shape.heads} heads do not divide dim {shape.dim}. "
            f"Choose dim as a multiple of heads."
        )
    if block > shape.positions:
        raise ConfigError(
            f"{where}.method.block: rows of {block} subwords do not fit into {shape.positions} positions. "
            f"Lower block or raise architecture.positions."
        )
