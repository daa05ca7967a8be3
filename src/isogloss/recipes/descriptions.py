"""Corpora that a TOML file describes: read, checked, their labels found, and known by name from then on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, get_args

from isogloss.core.errors import ConfigError, check_named, located, unknown_name
from isogloss.core.languages import canonical_language, is_language_code
from isogloss.data.corpora.catalogue import CORPORA
from isogloss.data.corpora.described import BadRows, DescribedCorpus, register, shipped
from isogloss.data.corpus import SPLITS, Split, spelled_there
from isogloss.data.files import DiskFolder
from isogloss.data.formats.conllu import NAMES
from isogloss.data.formats.kinds import KINDS
from isogloss.data.formats.reading import KindName
from isogloss.data.formats.tables import Column, Columns, FileFormat
from isogloss.data.formats.tag_schemes import SCHEMES
from isogloss.data.hub import ALL, data_source
from isogloss.data.hub_rows import DEFAULT, check_dataset
from isogloss.recipes.checking import checked, refuse_empty_or_twice
from isogloss.recipes.described_labels import places_of, with_labels
from isogloss.recipes.recipe_text import from_toml

SUFFIX = ".toml"

ID = "id"
"""The column of an example's name, by which it is matched with others; its number in the file if none."""


@dataclass(frozen=True, kw_only=True)
class Description:
    """The fields of a description."""

    kind: str
    """tagging (a label for each word), text or pair (a label each), choice (one of several options is right),
    span (the answer to a question stands in a text), bitext, raw (text alone)."""
    files: str | dict[str, str] = ""
    """Path of the files beside the description, or below the data folder: {language}, {split}; or one for
    each of train, dev and test. One path without {split} is training data, unless ``where`` has it."""
    hub: str = ""
    """Instead of files: a dataset of the Hugging Face hub, owner/name@COMMIT."""
    config: str = DEFAULT
    """Configuration of that dataset, with {language}."""
    name: str = ""
    """Name in runs and reports; that of the file when left out."""
    format: str = ""
    """conll, conllu, tsv, csv, jsonl, json (one list of objects), parquet, squad (SQuAD's JSON), or lines (of
    raw text, or bitext with a file for each language); by the suffix when left out."""
    columns: dict[str, str | int | tuple[str | int, ...]] = field(default_factory=dict)
    """Where parts stand: a name in the header, of CoNLL-U (XPOS), a key, a number from 0 (-1: the last); a
    list of them for options, a context or an id in several columns, or many labels in a column each."""
    separator: str = ","
    """What stands between the cells of csv: one character."""
    predicts: str = "label"
    """Of a text or pair: label (one), labels (any number of them, of a text), or number."""
    between: str = ","
    """What stands between many labels in one cell."""
    labels: tuple[str, ...] | dict[str, str] = ()
    """The inventory, or each spelling with its label; read from the training data when left out. Of choices
    what the first option is called, the second and so on; 0, 1 … when left out."""
    splits: dict[str, str] = field(default_factory=dict)
    """What stands for {split}, where that is not train, dev or test; of a dataset of the hub its splits,
    where they are not train, validation and test."""
    where: dict[str, str] = field(default_factory=dict)
    """Columns and what stands in them in the rows that are read: {language}, {split} or a word."""
    languages: tuple[str, ...] | dict[str, str] = ()
    """Languages, or each with what stands for {language}; any that has files when left out."""
    skip: tuple[str, ...] = ()
    """Spellings of labels whose rows are left out; "" for no label, and for questions without an answer."""
    bad_rows: str = "refuse"
    """skip: rows that do not fit are left out and counted; refuse: they are an error."""
    comments: str | None = None
    """What comment lines of conll begin with, anywhere ("": none); decided from each file when left out."""
    scheme: str = ""
    """Of tags: BIO, IOB1, IOBES, BILOU, BMES, BMEWO, brackets (CoNLL-2012) or words (no spans); decided from
    each file when left out. Spans are read as BIO."""
    about: str = ""
    """What it is, who made it."""
    url: str = ""
    """Home page."""
    licence: str = ""
    """Licence of the files."""


def described(path: Path, data: str = "", *, assume: bool = False) -> DescribedCorpus:
    """Read a description; labels that it lacks are read from the training data.

    With ``assume`` files may be absent where there is no data folder: what is told is then all that is known.
    """
    with located(str(path)):
        return _described(_read(path), path, data, assume=assume)


def _described(told: Description, path: Path, data: str, *, assume: bool) -> DescribedCorpus:
    name = told.name or path.stem
    check_named("kind", "kind of corpus", KINDS, told.kind)
    if name in CORPORA or not name.replace("-", "").replace("_", "").isalnum():
        raise ConfigError(
            f"name: {name!r} is taken, or no name. Give letters, digits and hyphens (name = …)."
        )
    _check_labels(told)
    check_named("bad_rows", "way with rows that do not fit", get_args(BadRows), told.bad_rows)
    check_named("scheme", "scheme of tags", ("", *SCHEMES), told.scheme)
    kind: KindName = told.kind  # type: ignore[assignment]
    files = _files(told)
    form = _format(told, files)
    absent = assume and not data and not told.hub and not _are_here(files, path.parent)
    corpus = DescribedCorpus(
        name=name,
        kind=kind,
        paths=files,
        format=form,
        columns=_columns(told, kind, form),
        separator=None if told.separator == "," else told.separator,
        predicts=told.predicts,  # type: ignore[arg-type]
        between=told.between,
        labels=tuple(dict.fromkeys(told.labels.values() if isinstance(told.labels, dict) else told.labels)),
        spelled=told.labels if isinstance(told.labels, dict) else {},
        languages={} if absent and not told.languages else _languages(told, files, path.parent, data),
        where=_where(told, files, form),
        skip=told.skip,
        bad_rows=told.bad_rows,  # type: ignore[arg-type]
        comments=told.comments,
        scheme=told.scheme,
        hub=told.hub,
        folder=str(path.parent),
        assumed=absent,
        about=told.about,
        url=told.url,
        licence=told.licence,
    )
    return with_labels(corpus, data_source(data)) if _has_inventory(corpus) else corpus


def _check_labels(told: Description) -> None:
    """Raise ConfigError for labels that a kind of corpus does not have."""
    tasks = KINDS[told.kind].tasks  # type: ignore[index]
    check_named("predicts", f"kind of label for {told.kind}", tasks, told.predicts)
    if told.kind == "choice" and isinstance(told.labels, dict):
        raise ConfigError(
            "labels: found a table; expected a list of what the first option is called, the second "
            'and so on (labels = ["A", "B"]).'
        )
    columns, names = told.columns.get("label"), told.labels
    if isinstance(columns, tuple) and names and (isinstance(names, dict) or len(names) != len(columns)):
        found = "a table" if isinstance(names, dict) else f"{len(names)} for {len(columns)} columns"
        raise ConfigError(
            f"labels: found {found}; expected a list with the label of each column, in their order, "
            "or none where columns are called as the labels."
        )
    if told.predicts == "labels" and not told.between:
        raise ConfigError("between: nothing is there; expected what stands between labels, as ; does.")
    if told.labels and told.predicts == "number":
        raise ConfigError("labels: a number has none. Leave them out.")


def _has_inventory(corpus: DescribedCorpus) -> bool:
    return corpus.kind in ("tagging", "text", "pair") and corpus.predicts != "number"


def _read(path: Path) -> Description:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError("no such description of a corpus. Give the path of a TOML file.") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"this is no TOML ({error}). Mend the line and run again.") from error
    return checked(Description, from_toml(text))


def _files(told: Description) -> dict[Split, str]:
    if told.hub:
        return _hub_splits(told)
    if not told.files:
        raise ConfigError(
            'files: nothing is there; expected where the files are (files = "…"), or hub = "…".'
        )
    given = told.files if isinstance(told.files, dict) else dict.fromkeys(_splits(told), told.files)
    check_named("files", "split", SPLITS, *given, *told.splits)
    found: dict[Split, str] = {
        split: given[split].replace("{split}", told.splits.get(split, split))
        for split in SPLITS
        if split in given and (not told.splits or split in told.splits or isinstance(told.files, dict))
    }
    if not found:
        raise ConfigError(
            f"splits: found {', '.join(told.splits)}, and files without {{split}} are of train "
            f"alone. Write {{split}} in files, a path for each split, or leave splits out."
        )
    for path in found.values():
        if Path(path).is_absolute():
            raise ConfigError(
                f"files: {path!r} is a place on one machine. Give a path below the folder of the "
                "description, or below the data folder (--data)."
            )
    return found


def _hub_splits(told: Description) -> dict[Split, str]:
    """Return configuration and split of a dataset of the hub, by our splits."""
    check_dataset(told.hub)
    for name, given in (("files", told.files), ("format", told.format)):
        if given:
            raise ConfigError(f"{name}: a dataset of the hub says its own. Leave it out.")
    if not told.languages:
        raise ConfigError(
            "languages: those of a dataset of the hub are not looked up. Write them "
            '(languages = ["sw", "ha"], or what stands for {language}: { sw = "swa" }).'
        )
    check_named("splits", "split", SPLITS, *told.splits)
    names: Mapping[Any, str] = told.splits or ALL
    return {split: f"{told.config}/{names[split]}" for split in SPLITS if split in names}


def _splits(told: Description) -> tuple[Split, ...]:
    """Return what one path stands for: every split, or training alone, which must not be tested on."""
    parted = any("{split}" in one for one in (told.files, *told.where.values()))
    return SPLITS if parted else ("train",)


def _where(told: Description, files: Mapping[Split, str], form: FileFormat) -> dict[Split, dict[str, str]]:
    """Return which rows are those of each split; none where a split's files are its own."""
    if told.where and form in ("conll", "conllu", "lines", "squad"):
        raise ConfigError(
            f"where: rows of {form} have no columns to choose them by. Give each split and language "
            "files of its own."
        )
    return {
        split: {
            column: text.replace("{split}", told.splits.get(split, split))
            for column, text in told.where.items()
        }
        for split in files
        if told.where
    }


def _format(told: Description, files: Mapping[Split, str]) -> FileFormat:
    if told.hub:
        return "jsonl"
    if told.format:
        check_named("format", "format", get_args(FileFormat), told.format)
        return told.format  # type: ignore[return-value]
    path = next(iter(files.values())).removesuffix(".gz").removesuffix(".xz")
    suffixes = KINDS[told.kind].suffixes  # type: ignore[index]
    if Path(path).suffix not in suffixes:
        raise ConfigError(
            f"format: {path!r} has no suffix that tells it. Write one of {', '.join(get_args(FileFormat))}."
        )
    return suffixes[Path(path).suffix]


def _columns(told: Description, kind: KindName, form: FileFormat) -> Columns:
    """Return where each part of an example stands: as told, else where it usually stands in the format."""
    usual, several = KINDS[kind].columns, (*KINDS[kind].several, ID)
    if told.predicts == "labels":
        several = ("label", *several)
    check_named("format", f"format of {kind}", usual, form)
    known = [*usual[form], *KINDS[kind].more, ID] if form != "squad" else []
    for part, found in told.columns.items():
        check_named("columns", "part of an example", known, part)
        if isinstance(found, tuple) and (part not in several or not found):
            raise ConfigError(
                f"columns: {part} stands in {len(found)} columns; expected one. A list of one or "
                f"more is for {', '.join(several)}."
            )
    if len(told.separator) != 1:
        raise ConfigError(f"separator: found {told.separator!r}; expected one character.")
    columns: dict[str, Column | tuple[Column, ...]] = {**usual[form], **told.columns}
    if "annotated" in columns:
        columns = {part: column for part, column in columns.items() if part not in ("words", "labels")}
    _check_columns(columns, form)
    return columns


def _check_columns(columns: Columns, form: FileFormat) -> None:
    """Raise ConfigError for columns that a format of a line a word does not have."""
    if form == "conll" and not all(isinstance(one, int) for one in columns.values()):
        raise ConfigError("columns: those of conll have no names. Number them from 0 (-1: the last).")
    for column in columns.values() if form == "conllu" else ():
        if column not in NAMES and column not in range(-len(NAMES), len(NAMES)):
            raise unknown_name("columns", "column of CoNLL-U", str(column), NAMES)


def _languages(told: Description, files: Mapping[Split, str], folder: Path, data: str) -> dict[str, str]:
    """Return the languages that are told or, where none are, that have files."""
    given = told.languages if isinstance(told.languages, dict) else {one: one for one in told.languages}
    if not given:
        found = [
            one
            for place in places_of(folder, data_source(data))
            for one in spelled_there(place, files.values())
        ]
        given = {one: one for one in found if all(map(is_language_code, canonical_language(one).split("-")))}
    if not given:
        raise ConfigError(
            f"files: none of {', '.join(files.values())} is there for any language. Correct it, "
            f'give --data, or say what stands for {{language}} (languages = {{ sw = "swahili" }}).'
        )
    refuse_empty_or_twice([canonical_language(code) for code in given], "languages")
    return {canonical_language(code): spelled for code, spelled in given.items()}


def _are_here(files: Mapping[Split, str], folder: Path) -> bool:
    """Return whether a file of any language lies beside a description."""
    return any(DiskFolder(folder).find([path.replace("{language}", "*")]) for path in files.values())


def known_as(name: str, data: str = "", folder: Path = Path(), *, assume: bool = False) -> str:
    """Return the name of a corpus; of the path of a description, read it and make it known.

    ``folder`` is where a relative path may begin, besides the folder one is in. ``assume`` is that of
    ``described``.
    """
    path, bracket, splits = name.partition("[")
    path = str(shipped().get(path, path))
    if not path.endswith(SUFFIX):
        return name
    place = next((one for one in (folder / path, Path(path)) if one.is_file()), Path(path))
    corpus = _read_once(str(place), place.stat().st_mtime_ns if place.is_file() else 0, data, assume)
    register(corpus)
    return corpus.name + bracket + splits


@lru_cache(maxsize=64)
def _read_once(path: str, _changed: int, data: str, assume: bool) -> DescribedCorpus:
    return described(Path(path), data, assume=assume)
