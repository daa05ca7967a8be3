"""Facts of models and encoders from their runs as recorded: flat columns, nothing parsed from names."""

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from isogloss.core.errors import plain
from isogloss.core.identity import identity
from isogloss.core.records import DataRead
from isogloss.core.rows import wrong_value
from isogloss.core.untrusted import convert_json

IGNORED = (
    *("seed", "data", "conflict", "checkpoint_every", "precision"),
    *("version", "package", "kind", "fields"),
)
"""Fields that do not distinguish systems: replication, fingerprints, monitoring, and computation."""

FACTS = (
    *("kind", "task", "source", "target", "seed", "method", "way", "translator", "after.method"),
    *("average.of", "encoder", "auxiliary", "auxiliary.method"),
    *(f"encoder.{name}" for name in ("run", "seed", "kind", "name", "languages", "method", "modules")),
    *(f"encoder.{name}" for name in ("adjusted", "pairs", "size", "original")),
    *(f"read.{name}" for name in ("labels", "dev", "translations", "bitext", "taught", "plain")),
    "reference",
)
"""Facts that every frame has as columns; others (``method.mse`` …) depend on the runs."""

NUMBERS = ("seed", "encoder.seed", "encoder.size")
"""Facts that are whole numbers. All other facts are texts."""

ENCODERS = ("pretrain", "pretrained", "adjust")

Content = Mapping[str, Any]
"""A run, or a part of one, as recorded."""

Facts = dict[str, Any]
"""Facts by name, as columns of a frame."""

NO_MODELS: Mapping[str, Facts] = {}

ZERO_SHOT = "zero-shot"
ON_TRANSLATIONS = "on translations"
"""The fact ``reference`` of models that others are compared with. These models are trained with only the loss
of their task, on labelled examples in the source language, with or without their translations. Empty for all
others."""

ENCODER_FACTS = {"kind": "encoder", "method": "", "way": "", "task": ""}
"""Facts of an encoder that models inherit."""


@dataclass(frozen=True)
class ModelFacts:
    """The facts of models and encoders in runs, found once for each object: equal parts are one."""

    _models: dict[int, tuple[Content, Mapping[str, Facts]]] = field(default_factory=dict)
    """Facts of each part by its address, with the part itself to keep the address valid."""
    _encoders: dict[int, tuple[Content, Facts]] = field(default_factory=dict)

    def facts_of_part(self, part: Content, key: str = "") -> Mapping[str, Facts]:
        """Return the facts of every model and encoder in a part, by id, starting with the part (by ``key``).

        Raises TypeError for facts of an unexpected type.
        """
        if id(part) not in self._models:
            self._models[id(part)] = part, dict(self._read(part, key)) or NO_MODELS
        return self._models[id(part)][1]

    def _read(self, part: Any, key: str = "") -> Iterator[tuple[str, Facts]]:
        if isinstance(part, Mapping) and part.get("kind") in ("fine-tune", *ENCODERS):
            facts = model_facts(part, self._cached_encoder_facts(part))
            _check_types(facts)
            yield key or identity(part), facts
        for value in part.values() if isinstance(part, Mapping) else part:
            if isinstance(value, Mapping):
                yield from self.facts_of_part(value).items()
            elif isinstance(value, list | tuple):
                yield from self._read(value)

    def _cached_encoder_facts(self, run: Content) -> Facts:
        encoder = run if run["kind"] in ENCODERS else fields_of(run)["encoder"]
        if id(encoder) not in self._encoders:
            self._encoders[id(encoder)] = encoder, _encoder_facts(encoder)
        return self._encoders[id(encoder)][1]


def model_facts(run: Content, encoder: Facts | None = None) -> Facts:
    """Return the facts of a fine-tuned model or an encoder from its run, as flat columns.

    ``encoder`` are the facts of its encoder, if known.
    """
    if run.get("kind") in ENCODERS:
        return {**ENCODER_FACTS, **(encoder or _encoder_facts(run))}
    fields = fields_of(run)
    start = fields.get("start")
    facts = {
        **{"kind": "model", "task": fields.get("task"), "seed": fields.get("seed")},
        "source": "+".join(fields.get("source") or ()) or (model_facts(start)["source"] if start else ""),
        "target": "+".join(fields.get("target") or ()),
        **_way(run),
        **(encoder or _encoder_facts(fields["encoder"])),
    }
    return add_data_read(facts, derive_data_read(run))


def add_data_read(facts: Facts, read: DataRead) -> Facts:
    """Return the facts of a model with what it read, and whether others are compared with it."""
    languages = {
        f"read.{name}": "+".join(getattr(read, name)) for name in ("labels", "dev", "translations", "bitext")
    }
    if read.unlabelled:
        languages["read.unlabelled"] = "+".join(read.unlabelled)
    flags = {f"read.{name}": "yes" if getattr(read, name) else "" for name in ("taught", "plain")}
    return {**facts, **languages, **flags, "reference": _reference(facts, read)}


def _reference(facts: Facts, read: DataRead) -> str:
    made_of_others = facts.get("after.method") or facts.get("average.of")
    source = set(facts["source"].split("+"))
    # An epoch that the optimization lets other languages choose is the same for all methods.
    dev = () if facts.get("optimization.dev") else read.dev
    if not read.plain or made_of_others or read.bitext or not {*read.labels, *dev} <= source:
        return ""
    if read.translations:
        return ON_TRANSLATIONS
    return ZERO_SHOT if read.labels else ""


SIDES_LABELLED = {
    **dict.fromkeys(
        ("source-only", "oracle-stopping", "translate-train", "consistency", "x-mixup"), "source"
    ),
    **dict.fromkeys(("target-only", "few-shot"), "target"),
    **dict.fromkeys(("given", "average"), ""),
}
SIDES_OF_DEV = {**SIDES_LABELLED, "oracle-stopping": "target"}
TRANSLATED = ("translate-train", "consistency", "x-mixup")
WITHOUT_OWN_LOSS = (
    *("source-only", "oracle-stopping", "target-only", "bilingual", "few-shot"),
    "translate-train",
)
"""Data that the methods of isogloss read, used only by ``derive_data_read``."""


def derive_data_read(run: Content) -> DataRead:
    """Derive what a model read from the name of its method, for records of versions that did not store it.

    A method of a plug-in is taken to have read all labels of its languages.
    """
    fields = fields_of(run)
    kind = fields["method"]["kind"]
    method = fields_of(fields["method"])
    source, target = (tuple(fields.get(name) or ()) for name in ("source", "target"))
    sides = {"source": source, "target": target, "": (), "all": (*source, *target)}
    dev = SIDES_OF_DEV.get(kind, "all")
    if kind == "few-shot":
        dev = method.get("dev", dev)
    dev = fields_of(fields["optimization"]).get("dev") or dev
    pairs = [
        f"{source_language}-{second}" for source_language in source for second in target if kind in TRANSLATED
    ]
    read_here = DataRead(
        labels=sides[SIDES_LABELLED.get(kind, "all")],
        dev=sides.get(dev, ()),
        translations=tuple(pairs),
        bitext=tuple(fields_of(part)["languages"] for part in fields.get("aligned") or ()),
    )
    parts = [part for part in fields.get("parts") or () if part["kind"] == "fine-tune"]
    models = [fields.get("start"), fields.get("teacher"), *parts]
    all_read = [read_here, *(derive_data_read(model) for model in models if model)]
    languages = {
        name: tuple(
            dict.fromkeys(language_code for read in all_read for language_code in getattr(read, name))
        )
        for name in ("labels", "dev", "translations", "bitext")
    }
    has_teacher = method.get("labels") == "teacher" if kind == "translate-train" else not method.get("labels")
    return DataRead(
        **languages,
        plain=kind in WITHOUT_OWN_LOSS and not fields.get("auxiliary"),
        taught=bool(fields.get("teacher")) and kind in TRANSLATED and has_teacher,
    )


PLAIN = "source-only"
"""The teacher that the plan gives to all methods that name none."""


def _way(run: Content) -> Facts:
    """Return the training of a model: method, optimization, translator, start, and their id (``way``)."""
    fields = fields_of(run)
    facts = _part(fields["method"], "method") | _flat(fields["optimization"], "optimization")
    if auxiliary := fields.get("auxiliary"):
        facts |= {**_part(auxiliary, "auxiliary"), "auxiliary.method": facts["method"]}
        facts["method"] = method_of(fields)
    if fields.get("peft"):
        facts |= _part(fields["peft"], "peft")
    if fields.get("examples"):
        # A separate name, because rows also have examples, which are the scored ones.
        facts["optimization.examples"] = fields["examples"]
    facts |= _translator(fields.get("translated"))
    if fields.get("parts"):
        facts |= _parts_facts(fields)
    if fields.get("start"):
        facts |= {f"after.{name}": value for name, value in _way(fields["start"]).items()}
    teacher = _way(fields["teacher"]) if fields.get("teacher") else {"method": PLAIN}
    if teacher["method"] != PLAIN:
        facts |= {f"teacher.{name}": value for name, value in teacher.items()}
    return {**facts, "way": identity(facts)}


def method_of(fields: Content) -> str:
    """Return the names of a training's method and its auxiliary loss. "" without a method."""
    parts = (fields.get("method"), fields.get("auxiliary"))
    return " + ".join(str(part["kind"]) for part in parts if part)


def _parts_facts(fields: Content) -> Facts:
    """Return the parts of an average: each way of training and each encoder once, with its total weight."""
    weights = fields_of(fields["method"]).get("weights") or [None] * len(fields["parts"])
    ways = dict[str, Facts]()
    totals = dict[str, float]()
    names = list[str]()
    for part, weight in zip(fields["parts"], weights, strict=True):
        facts = {"way": identity(_seedless(part))} if part["kind"] in ENCODERS else _way(part)
        key = facts["way"]
        if key not in ways:
            names.append(facts.get("method") or "+".join(fields_of(part).get("languages") or (part["kind"],)))
        ways[key], totals[key] = facts, totals.get(key, 0.0) + (weight or 0.0)
    part_facts = {
        f"average.of.{n}.{name}": fact for n, way in enumerate(ways.values()) for name, fact in way.items()
    }
    weight_facts = (
        {"method.weights": " ".join(f"{total:g}" for total in totals.values())} if weights[0] else {}
    )
    return {
        "average.of": "+".join(names),
        "average.of.size": len(fields["parts"]),
        **weight_facts,
        **part_facts,
    }


def _translator(translation_runs: Sequence[Content] | None) -> Facts:
    """Return the kind of translator of some translations, its fields, and its models.

    Back-translations also list the translator of the translations they start from, which may have a different
    model.
    """
    translations = [fields_of(run) for run in translation_runs or ()]
    if not translations:
        return {}
    models = [part["model"] for part in translations if part.get("model") and not part.get("start")]
    sources = dict.fromkeys(str(fields_of(model).get("source") or identity(model)) for model in models)
    facts = _part(translations[0]["translator"], "translator")
    if models:
        facts["translator.model"] = "+".join(sources)
    return facts


def _encoder_facts(run: Content) -> Facts:
    """Return an encoder's facts. ``encoder`` is an id that all its seeds share."""
    base = run
    adjustments = []
    while base["kind"] == "adjust":
        adjustments.append(fields_of(base))
        base = fields_of(base)["encoder"]
    fields = fields_of(base)
    facts: Facts = {
        "encoder": identity(_seedless(run)),
        "encoder.run": identity(run),
        "encoder.seed": fields.get("seed"),
        "encoder.kind": base["kind"],
        "encoder.original": identity(_seedless(base)),
        "encoder.name": plain(PurePath(str(fields.get("source", ""))).name),
    }
    if base["kind"] == "pretrain":
        facts |= {f"encoder.{name}": "+".join(fields.get(name) or ()) for name in ("languages", "text")}
        facts |= _part(fields["method"], "encoder.method") | _flat(
            fields_of(_first(base)).get("architecture") or {}, "encoder"
        )
        facts |= _flat(fields.get("replay") or {}, "encoder.replay")
        facts |= _flat(fields.get("vocabulary") or {}, "encoder.new")
        if fields.get("start"):
            facts |= _start_facts(fields["start"])
        modules = fields_of(fields.get("modules") or {})
        facts |= {"encoder.modules": modules.get("kind", ""), **_flat(modules, "encoder.modules")}
        facts |= {"encoder.lines": json.dumps(fields["lines"]) if fields.get("lines") else ""}
    for last_adjustment in adjustments[:1]:
        alignment_runs = [fields_of(run) for run in last_adjustment["aligned"]]
        facts |= _part(last_adjustment["method"], "encoder.adjusted")
        facts |= {"encoder.pairs": "+".join(bitext["languages"] for bitext in alignment_runs)}
        size = last_adjustment.get("sampled") or alignment_runs[0].get("examples") or None
        facts |= {"encoder.size": size, "encoder.depth": len(adjustments)}
    return facts


def _start_facts(start: Content) -> Facts:
    """Return the start of an encoder that was trained further: its id, and the name of the first encoder."""
    source = str(fields_of(_first(start)).get("source", ""))
    return {"encoder.start": identity(_seedless(start)), "encoder.name": plain(PurePath(source).name)}


def _first(encoder: Content) -> Content:
    """Return the first encoder of the chain that ends in this one."""
    start = fields_of(encoder).get("start") or fields_of(encoder).get("encoder")
    return _first(start) if start else encoder


@dataclass(frozen=True)
class Read:
    """The fields of runs that tables read besides facts."""

    corpus: str = ""
    languages: str | list[str] = ""
    aligner: dict[str, object] | None = None
    translator: dict[str, object] | None = None


def check_inputs(run: Content) -> None:
    """Raise ValueError or TypeError unless what tables read of a run has the right types."""
    convert_json(Read, fields_of(run))
    tested_inputs(run, frozenset())


def _check_types(facts: Facts) -> None:
    kinds = {name: int if name in NUMBERS else str for name in FACTS if facts.get(name) is not None}
    wrong = [
        f"{name} is {facts[name]!r:.40}" for name, kind in kinds.items() if type(facts[name]) is not kind
    ]
    if why := (*wrong, wrong_value("", [facts]))[0]:
        raise TypeError(why)


def tested_inputs(run: Content, combinations: Set[tuple[str, str, str]]) -> tuple[str, ...]:
    """Return the inputs of a measurement, as listed in ``TESTED``.

    A treebank named for all languages does not count where other runs combine it with others.
    """
    fields = fields_of(run)
    banks = treebanks_of(run)
    bank_names = {bank for _, _, bank in banks}
    bank = bank_names.pop() if len(bank_names) == 1 and not banks <= combinations else ""
    translator = _translator(fields.get("translated"))
    read = (fields.get("corpus", ""), fields.get("inputs") or "", bank)
    return *(str(text or "") for text in read), json.dumps(translator, sort_keys=True) if translator else ""


def treebanks_of(run: Content) -> set[tuple[str, str, str]]:
    """Return corpus, language and treebank of a measurement's inputs. "" for an unnamed treebank."""
    fields = fields_of(run)
    banks = dict(fields.get("treebanks") or ())
    return {
        (str(fields.get("corpus", "")), language_code, banks.get(language_code, ""))
        for language_code in fields.get("languages") or ()
    }


def fields_of(part: Content) -> Content:
    """Return the fields of a part of a run, nested or not (``core.identity``)."""
    fields = part.get("fields")
    return fields if isinstance(fields, Mapping) else part


def _part(part: Content, name: str) -> Facts:
    return {name: part["kind"], **_flat(part, name)}


def _flat(part: Content, prefix: str) -> Facts:
    """Return a part's plain fields as columns. Lists become texts."""
    return {
        f"{prefix}.{name}": " ".join(str(item) for item in value) if isinstance(value, list) else value
        for name, value in fields_of(part).items()
        if name not in IGNORED and not isinstance(value, Mapping)
    }


def _seedless(part: object) -> object:
    if isinstance(part, Mapping):
        return {name: _seedless(value) for name, value in part.items() if name not in ("seed", "conflict")}
    return [_seedless(element) for element in part] if isinstance(part, list) else part
