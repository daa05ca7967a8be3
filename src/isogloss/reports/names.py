"""Display names of systems and encoders, from the facts that differ among those shown together."""

import json
import math
import unicodedata
from collections.abc import Callable, Hashable, Iterable, Mapping
from hashlib import sha256
from typing import Any

import pandas as pd

from isogloss.core.languages import language_name
from isogloss.reports.frames import list_columns, list_rows

INPUTS = {"": "", "paired": " · paired", "translated": " · translated"}
"""Suffixes of a system's name for the form of its inputs."""

OF_A_WAY = ("method.", "auxiliary.", "peft", "optimization.", "after.", "teacher.", "average.", "translator")
NOT_NAMED = ("optimization.limit", "optimization.overlap", "examples_read")
"""Prefixes of the columns about a model's training, and columns that names omit."""

NONE = "none"
"""Value of a field that disables a part of training. Names without it are shorter, so it is omitted."""

LONGEST_SLUG = 90

Facts = Mapping[str, Any]


def name_systems(rows: pd.DataFrame, labels: Mapping[str, str]) -> pd.DataFrame:
    """Add three names to the rows: ``system`` (method and inputs), ``encoder.label`` and ``name``.

    ``labels`` are the recipe's names of encoders, by id, and of methods, by way of training. ``name`` is the
    system, after the encoder if encoders differ. Different systems have different names.
    """
    if rows.empty:
        return rows.assign(system="", **{"encoder.label": "", "name": ""})
    ways = way_names(rows, labels)
    encoders = encoder_names(rows, labels)
    none = pd.Series("", index=rows.index)
    # The translator of training data also translated the inputs.
    readers = rows.get("inputs.translator", none).where(rows["translator"] == "", "")
    inputs = rows.get("inputs", none).map(lambda form: INPUTS.get(form, f" · {form}"))
    system = rows["way"].map(ways) + inputs + readers.map(_readers(readers))
    label = rows["encoder"].map(encoders)
    if len(set(encoders.values())) > 1:
        name = (label + " / " + system).where(rows["way"] != "", label)
    else:
        name = system.where(system != "", label)
    return rows.assign(system=system, **{"encoder.label": label, "name": name})


def way_names(rows: pd.DataFrame, labels: Mapping[str, str]) -> dict[str, str]:
    """Name each way of training: by the recipe's name, else by its method.

    Ways of one name are distinguished by the fields that are not the commonest.
    """
    names: dict[str, str] = {}
    ways = rows.drop_duplicates("way")
    method_names = [labels.get(way, method) for way, method in zip(ways["way"], ways["method"], strict=True)]
    for method, group in ways.assign(label=method_names).groupby("label", sort=False):
        fields = [
            name
            for name in list_columns(group)
            if name.startswith(OF_A_WAY) and not _is_redundant(group, name)
        ]
        for way, fields_text in _distinguish(group.set_index("way")[fields]).items():
            names[way] = f"{method} ({fields_text})" if fields_text else str(method)
    return names


def _is_redundant(group: pd.DataFrame, name: str) -> bool:
    """Return whether names leave a column out, as the names of an average's models imply it."""
    redundant = (
        name.startswith("average.of.") and group.groupby("average.of")[name].nunique(dropna=False).le(1).all()
    )
    return bool(redundant) or name in NOT_NAMED or name.endswith(".way")


def encoder_names(rows: pd.DataFrame, labels: Mapping[str, str]) -> dict[str, str]:
    """Name each encoder by the recipe's label, else its folder or pretraining, followed by its adjustment."""
    runs = zip(rows["encoder"], rows["encoder.run"], strict=True)
    encoder_labels = {encoder: labels[run] for encoder, run in runs if run in labels}
    encoders = rows.drop_duplicates("encoder")
    bases = {
        str(row["encoder"]): encoder_labels.get(row["encoder"]) or _base_name(row, labels)
        for row in list_rows(encoders)
    }
    adjusted_rows = encoders[(encoders["encoder.adjusted"] != "") & ~encoders["encoder"].isin(encoder_labels)]
    for adjustment, group in adjusted_rows.groupby("encoder.adjusted", sort=False):
        fields = [name for name in list_columns(group) if name.startswith("encoder.adjusted.")]
        description_rows = group.set_index("encoder")[
            ["encoder.size", "encoder.pairs", "encoder.depth", *fields]
        ]
        for encoder, text in _distinguish(description_rows, all_fields=True).items():
            bases[encoder] += f", {adjustment}" + (f" ({text})" if text else "")
    duplicates = [name for name in bases.values() if list(bases.values()).count(name) > 1]
    return {key: f"{name} {key[:4]}" if name in duplicates else name for key, name in bases.items()}


def original_names(rows: pd.DataFrame, labels: Mapping[str, str]) -> dict[str, str]:
    """Name each encoder as it was before it was adjusted."""
    run = rows["encoder.run"].mask(rows["encoder.adjusted"] != "", "")
    originals = rows.assign(encoder=rows["encoder.original"])
    originals["encoder.run"] = run
    originals["encoder.adjusted"] = ""
    return encoder_names(originals.sort_values("encoder.run"), labels)


def _base_name(row: Facts, labels: Mapping[str, str]) -> str:
    if row["encoder.kind"] != "pretrain":
        return str(row["encoder.name"])
    modules = f", {row['encoder.modules']} modules" if row["encoder.modules"] else ""
    shape = f"{row.get('encoder.layers', 0):g}x{row.get('encoder.dim', 0):g}"
    base_name = row["encoder.name"] or f"{row.get('encoder.family')} {shape}"
    further = " further" if isinstance(row.get("encoder.start"), str) else ""
    return labels.get(row["encoder.original"], f"{base_name}{further} on {row['encoder.languages']}{modules}")


def _distinguish(parts: pd.DataFrame, *, all_fields: bool = False) -> dict[str, str]:
    """Return each part's fields that differ from the commonest. All differing fields if these coincide."""
    part_texts = parts.map(_text)
    differ = part_texts.loc[:, part_texts.nunique() > 1]
    counts = {name: differ[name].value_counts() for name in differ}
    common = {name: differ[name].mode()[0] for name in differ if counts[name].iloc[0] > 1 and not all_fields}
    texts = {
        str(key): ", ".join(
            f"{_short(name)}={text}"
            for name, text in row.items()
            if text != common.get(name) and not _is_of_absent_part(name, row) and (all_fields or text != NONE)
        )
        for key, row in differ.iterrows()
    }
    return (
        texts
        if all_fields or len(set(texts.values())) == len(texts)
        else _distinguish(parts, all_fields=True)
    )


def _is_of_absent_part(name: Hashable, row: "pd.Series[str]") -> bool:
    """Return whether a field belongs to a part that the row lacks."""
    part, _, field = str(name).partition(".")
    return bool(field) and row.get(part) == NONE


def _short(name: object) -> str:
    parts = str(name).split(".")
    first_part = parts[0]
    last_part = parts[-1]
    return f"{first_part} {last_part}" if first_part in ("after", "teacher") else last_part


def _text(value: Any) -> str:
    if pd.isna(value):
        return NONE
    return f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


def _readers(readers: pd.Series) -> dict[str, str]:
    """Name the translators of inputs by the fields that differ. Empty for a single translator."""
    several = [reader for reader in readers.unique() if reader]
    parts = pd.DataFrame([json.loads(reader) for reader in several], index=several)
    texts = _distinguish(parts, all_fields=True) if len(several) > 1 else {}
    return {**dict.fromkeys(readers, ""), **{key: f" by {text}" for key, text in texts.items()}}


def distinguishing_names(rows: pd.DataFrame, columns: Iterable[str]) -> list[str]:
    """Name each row by the columns that differ among all rows, or by all columns if none differs."""
    texts = rows[list(columns)].astype(object)
    texts = texts.where(texts.notna(), "").astype(str)
    differ = texts.loc[:, texts.nunique() > 1]
    text_columns = differ if len(differ.columns) else texts
    return [
        ", ".join(part for part in parts if part) for parts in text_columns.itertuples(index=False, name=None)
    ]


def percent(value: float, low: float = math.nan, high: float = math.nan) -> str:
    """Write a score from 0 to 1 in percent, with its interval if it has one. A dash for nan."""
    if math.isnan(value):
        return "–"
    interval = "" if math.isnan(low) else f" [{percent(low)}, {percent(high)}]"
    return f"{100 * value:.1f}".replace("-", "−") + interval


def plus_minus(mean: float, std: float, *, scale: float = 100, digits: int = 1) -> str:
    """Write mean ± standard deviation. A single seed has no deviation, and nan is a dash."""
    if math.isnan(mean):
        return "–"
    text = f"{scale * mean:.{digits}f}"
    return (text if math.isnan(std) else f"{text} ± {scale * std:.{digits}f}").replace("-", "−")


def count(n: int, noun: str, nouns: str = "") -> str:
    """Write "1 seed", "3 seeds"."""
    return f"{n:,} {noun if n == 1 else nouns or noun + 's'}"


def and_list(parts: Iterable[str]) -> str:
    """Write "a", "a and b", "a, b and c"."""
    *earlier_parts, last_part = list(parts) or [""]
    return f"{', '.join(earlier_parts)} and {last_part}" if earlier_parts else last_part


def list_languages(codes: Iterable[str]) -> str:
    """Write the names of languages as ``and_list`` does."""
    return and_list(language(language_code) for language_code in codes)


def language(language_code: str) -> str:
    """Write a language with its English name, if any: "English (en)"."""
    name = language_name(language_code)
    return language_code if name == language_code else f"{name} ({language_code})"


def test_set_name(test_set: Mapping[str, str]) -> str:
    """Return "corpus treebank task" and the mixture of the inputs, as far as a test set has them."""
    return " ".join(filter(None, map(test_set.get, ("corpus", "treebank", "task", "mixed"))))


def _is_slug_letter(letter: str) -> bool:
    return letter not in " _./-"


def slug(*parts: object) -> str:
    """Return a file name of lowercase letters, digits and dashes, with a digest where that loses letters."""
    text = "-".join(str(part) for part in parts if str(part))
    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    name = _join_with_dashes(ascii_text, str.isalnum)
    if len(name) <= LONGEST_SLUG and name == _join_with_dashes(text.lower(), _is_slug_letter):
        return name
    return f"{name[:LONGEST_SLUG]}-{sha256(text.encode()).hexdigest()[:6]}".strip("-")


def _join_with_dashes(text: str, keep: Callable[[str], bool]) -> str:
    return "-".join(
        part for part in "".join(letter if keep(letter) else "-" for letter in text).split("-") if part
    )
