"""Descriptions of corpora, in TOML or Python: read, checked and completed by labels."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

from isogloss.core.errors import ConfigError, DataError, add_location, check_named, unknown_name
from isogloss.core.languages import canonical_language, is_language_code
from isogloss.core.tag_schemes import SCHEMES, WORDS
from isogloss.core.untrusted import read_regular
from isogloss.data.corpora.catalogue import CORPORA
from isogloss.data.corpus import SPLITS, About, Split, find_spellings
from isogloss.data.data_sources import HUB, data_source, find_data_source, give_advice
from isogloss.data.files import DiskFolder
from isogloss.data.formats.conllu import NAMES, is_column
from isogloss.data.formats.corpus_kinds import KINDS, find_suffixes, list_columns
from isogloss.data.formats.formats import FORMATS, OF_SPANS, OFFSETS, Columns, PartColumns
from isogloss.data.formats.kinds import LINES_OF_WORDS, predicts_of
from isogloss.data.formats.reading import Predicts
from isogloss.data.formats.tables import SENTENCE
from isogloss.data.hub_splits import ALL, HUB_SPLITS
from isogloss.features.described_corpora.contents import folders_of, with_labels
from isogloss.features.described_corpora.corpus import (
    BadRows,
    DescribedCorpus,
)
from isogloss.features.described_corpora.file_layouts import OFFSET_FORMATS
from isogloss.features.described_corpora.labelled_lines import COLUMNS as LINE_COLUMNS
from isogloss.features.described_corpora.labelled_lines import LABEL
from isogloss.features.described_corpora.shipped_corpora import SHIPPED
from isogloss.metrics.texts import WITH_OWN_RULES
from isogloss.recipes.checking import build_checked, refuse_empty_or_twice
from isogloss.recipes.recipe_text import from_toml

DEFAULT = "default"
"""Name of a dataset's only configuration on the hub."""

ID = "id"
"""The column of an example's id. Default: its number in the file."""


@dataclass(frozen=True, kw_only=True)
class Description:
    """The fields of a description."""

    kind: str
    """tagging (a label for each word), text or pair (one label), choice (one of several options is right),
    span (the answer to a question is a span of a text), bitext, raw (only text)."""
    files: str | dict[str, str] = ""
    """Path of the files, relative to the description or the data folder: {language}, {split}; or one for
    each of train, dev and test. One path without {split} is training data, unless ``where`` has it."""
    hub: str = ""
    """A dataset of the Hugging Face hub instead of files: owner/name@COMMIT. The commit of a branch
    (owner/name, owner/name@BRANCH) is looked up once and then remains the same."""
    config: str = DEFAULT
    """Configuration of that dataset, with {language}."""
    name: str = ""
    """Name in runs and reports. Default: the name of the file."""
    format: str = ""
    """conll, conllu, tsv, csv, jsonl, json (one list of objects), parquet, squad (SQuAD's JSON), brat (.ann
    with .txt), webanno (TSV 3), or lines (of raw text, or bitext with a file for each language). Default: by
    the suffix."""
    label_files: str | dict[str, str] = ""
    """Path of the labels of texts, where texts and labels are lines of two files. Where each file has one
    label, files contains {label}."""
    columns: dict[str, str | int | tuple[str | int, ...]] = field(default_factory=dict)
    """Column of each part. A column is a name in the header or in CoNLL-U (XPOS, or a key of MISC or FEATS as
    in MISC:NER), a key, or a number from 0 (-1: the last). A list of columns has several options, contexts
    or parts of an id, or many labels in a column each."""
    separator: str = ","
    """The character between the cells of csv."""
    predicts: str = "label"
    """Kind of labels. For a text or pair: label (one), labels (any number, only for a text), or number. For
    words: label, or lemma (always for the column LEMMA of CoNLL-U)."""
    between: str = ","
    """Separator of many labels in one cell."""
    labels: tuple[str, ...] | dict[str, str] = ()
    """The inventory, or each spelling with its label. Default: read from the training data. For choices, the
    names of the first option, the second and so on. Default: 0, 1 …."""
    splits: dict[str, str] = field(default_factory=dict)
    """Replacements of {split}, if the files are not named train, dev or test. For a dataset of the hub, its
    splits, if they are not train, validation and test."""
    where: dict[str, str] = field(default_factory=dict)
    """Columns and their content in the rows that are read: {language}, {split} or a word."""
    languages: tuple[str, ...] | dict[str, str] = ()
    """Languages, or each with its replacement of {language}. Default: all that have files."""
    skip: tuple[str, ...] = ()
    """Spellings of labels whose rows are skipped. "" stands for no label, and for questions without an
    answer."""
    bad_rows: str = "refuse"
    """skip: invalid rows are skipped and counted. refuse: they are an error."""
    own_rules: tuple[str, ...] = ()
    """Languages in which answers to questions are compared by the rules of MLQA's script: their own articles,
    all punctuation, and each Chinese character as a word. Default: by SQuAD's script in every language."""
    comments: str | None = None
    """Prefix of comment lines anywhere in a conll file ("": none). Default: decided from each file."""
    scheme: str = ""
    """Scheme of tags: BIO, IOB1, IOE1, IOE2, IOBES, BILOU, BMES, BMEWO, brackets (CoNLL-2012) or words (no
    spans). Default: decided from each file. Spans are read as BIO."""
    annotated: str = ""
    """offsets: rows of jsonl, json or parquet have a text, and spans that are marked by offsets of characters
    (doccano, Label Studio, Prodigy, spaCy, datasets). Default: rows have words and labels."""
    about: str = ""
    """Content and authors."""
    url: str = ""
    """Home page."""
    licence: str = ""
    """Licence of the files."""


def describe_corpus(path: Path, data: str = "", *, assume: bool = False) -> DescribedCorpus:
    """Read a description, and read missing labels from the training data.

    With ``assume`` and without a data folder, files may be missing. Then the labels are not read.
    """
    with add_location(path.stem if path.parent == SHIPPED else str(path)):
        return _build_corpus(_read(path), path, data, assume=assume)


def _check_description(spec: Description, name: str) -> Description:
    """Return a description with our names of splits and the commit of its dataset, after the first checks."""
    check_named("kind", "kind of corpus", KINDS, spec.kind)
    if name in CORPORA or not name.replace("-", "").replace("_", "").isalnum():
        raise ConfigError(
            f"name: {name!r} is taken, or invalid. Give letters, digits and hyphens (name = …)."
        )
    _check_labels(spec)
    check_named("bad_rows", "way with rows that do not fit", get_args(BadRows), spec.bad_rows)
    check_named("scheme", "scheme of tags", ("", *SCHEMES), spec.scheme)
    return replace(
        spec,
        hub=find_data_source(HUB).pin_commit(spec.hub) if spec.hub else "",
        files=_rename_splits(spec.files) if isinstance(spec.files, dict) else spec.files,
        splits=_rename_splits(spec.splits),
    )


def _build_corpus(spec: Description, path: Path, data: str, *, assume: bool) -> DescribedCorpus:
    name = spec.name or path.stem
    spec = _check_description(spec, name)
    kind = spec.kind
    files = _files(spec)
    label_files = _label_files(spec, files)
    has_lines = bool(label_files) or any(LABEL in path for path in files.values())
    if has_lines:
        _check_lines(spec)
    form = "jsonl" if has_lines else _format(spec, files)
    columns = LINE_COLUMNS if has_lines else _columns(spec, kind, form)
    predicts = predicts_of(form, columns, spec.predicts)  # type: ignore[arg-type]
    _check_rules(spec, predicts)
    patterns = [path.replace("{language}", "*").replace(LABEL, "*") for path in files.values()]
    absent = assume and not (data or spec.hub or DiskFolder(path.parent).find(patterns))
    corpus = DescribedCorpus(
        name=name,
        kind=kind,
        paths=files,
        format=form,
        columns=columns,
        separator=None if spec.separator == "," else spec.separator,
        predicts=predicts,
        between=spec.between,
        labels=tuple(dict.fromkeys(spec.labels.values() if isinstance(spec.labels, dict) else spec.labels)),
        listed=() if isinstance(spec.labels, dict) else tuple(dict.fromkeys(spec.labels)),
        spelled=spec.labels if isinstance(spec.labels, dict) else {},
        languages=({} if absent and not spec.languages else _languages(spec, name, files, path.parent, data)),
        where=_where(spec, files, form),
        skip=spec.skip,
        bad_rows=spec.bad_rows,  # type: ignore[arg-type]
        own_rules=_own_rules(spec),
        comments=spec.comments,
        scheme=WORDS if predicts == "lemma" else spec.scheme,
        hub=spec.hub,
        label_paths=label_files,
        has_offsets=bool(spec.annotated),
        folder=str(path.parent),
        assumed=absent,
        about=About(spec.about, spec.url, spec.licence),
    )
    has_inventory = kind in ("tagging", "text", "pair") and predicts != "number"
    return with_labels(corpus, data_source(data)) if has_inventory else corpus


def _rename_splits(table: Mapping[str, str]) -> dict[str, str]:
    """Return a table by split with dev for validation."""
    return {HUB_SPLITS.get(split, split): value for split, value in table.items()}


def _check_labels(spec: Description) -> None:
    tasks = KINDS[spec.kind].tasks
    check_named("predicts", f"kind of label for {spec.kind}", tasks, spec.predicts)
    if spec.kind == "choice" and isinstance(spec.labels, dict):
        raise ConfigError(
            "labels: found a table; expected a list with the names of the first option, the second "
            'and so on (labels = ["A", "B"]).'
        )
    columns, names = spec.columns.get("label"), spec.labels
    if isinstance(columns, tuple) and names and (isinstance(names, dict) or len(names) != len(columns)):
        counts = "a table" if isinstance(names, dict) else f"{len(names)} for {len(columns)} columns"
        raise ConfigError(
            f"labels: found {counts}; expected a list with the label of each column, in their order, "
            "or none where columns have the names of labels."
        )
    if spec.predicts == "labels" and not spec.between:
        raise ConfigError("between: this is empty; expected the separator of labels, such as ;.")
    if spec.labels and spec.predicts == "number":
        raise ConfigError("labels: a number has none. Remove them.")


def _check_rules(spec: Description, predicts: Predicts) -> None:
    for field_, value in (("labels", spec.labels), ("scheme", spec.scheme), ("skip", spec.skip)):
        if value and predicts == "lemma":
            raise ConfigError(
                f"{field_}: the labels of lemmas are rules that follow from the training data. Remove it."
            )


def _read(path: Path) -> Description:
    try:
        text = read_regular(path).decode()
    except OSError as error:
        raise ConfigError("no such description of a corpus. Give the path of a TOML file.") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"invalid TOML ({error}). Fix this line and run again.") from error
    return build_checked(Description, from_toml(text))


def _files(spec: Description) -> dict[Split, str]:
    if spec.hub:
        return _hub_splits(spec)
    if not spec.files:
        raise ConfigError('files: this is empty; expected the path of the files (files = "…"), or hub = "…".')
    paths = spec.files if isinstance(spec.files, dict) else dict.fromkeys(_splits(spec), spec.files)
    check_named("files", "split", SPLITS, *paths, *spec.splits)
    files: dict[Split, str] = {
        split: paths[split].replace("{split}", spec.splits.get(split, split))
        for split in SPLITS
        if split in paths and (not spec.splits or split in spec.splits or isinstance(spec.files, dict))
    }
    if not files:
        raise ConfigError(
            f"splits: found {', '.join(spec.splits)}, and files without {{split}} are of train "
            f"alone. Write {{split}} in files, a path for each split, or remove splits."
        )
    for path in files.values():
        if Path(path).is_absolute():
            raise ConfigError(
                f"files: {path!r} is an absolute path. Give one relative to the folder of the description or "
                "the data folder (--data)."
            )
    return files


def _label_files(spec: Description, files: Mapping[Split, str]) -> dict[Split, str]:
    """Return the path of the labels of each split, if they are in separate files."""
    if not spec.label_files:
        return {}
    paths = spec.label_files
    paths_of_splits = _rename_splits(paths) if isinstance(paths, dict) else dict.fromkeys(files, paths)
    if unknown_splits := [split for split in paths_of_splits if split not in files]:
        raise ConfigError(
            f"label_files: {', '.join(unknown_splits)}: there are no texts of this split. Name its files, "
            f"too."
        )
    return {
        split: paths_of_splits[split].replace("{split}", spec.splits.get(split, split))
        for split in files
        if split in paths_of_splits
    }


def _check_lines(spec: Description) -> None:
    """Raise ConfigError if lines of texts with separate labels do not fit the rest of a description."""
    field_ = "label_files" if spec.label_files else "files"
    if spec.kind != "text":
        raise ConfigError(f'{field_}: found {spec.kind}; expected kind = "text" for lines of texts.')
    if spec.label_files and any(LABEL in path for path in _list_paths(spec.files)):
        raise ConfigError(f"label_files: files have the label in their path ({LABEL}). Remove one of them.")
    if not spec.label_files and not spec.labels:
        raise ConfigError(f'labels: this is empty; expected the labels in place of {LABEL} (labels = ["…"]).')
    if spec.columns or spec.format not in ("", "lines"):
        raise ConfigError(f"{field_}: every line is a text. Remove columns and format.")


def _list_paths(paths: str | Mapping[str, str]) -> list[str]:
    return [paths] if isinstance(paths, str) else list(paths.values())


def _own_rules(spec: Description) -> tuple[str, ...]:
    """Return the languages with own rules.

    Raises ConfigError for other languages and for other kinds of corpora.
    """
    if spec.own_rules and spec.kind != "span":
        raise ConfigError(
            f"own_rules: found {spec.kind}; expected span: only answers to questions have rules. Remove it."
        )
    codes = tuple(canonical_language(language) for language in spec.own_rules)
    check_named("own_rules", "language with rules of MLQA", WITH_OWN_RULES, *codes)
    return codes


def _hub_splits(spec: Description) -> dict[Split, str]:
    """Return, for each of our splits, the configuration and split of a dataset of the hub."""
    for name, value in (("files", spec.files), ("format", spec.format)):
        if value:
            raise ConfigError(f"{name}: this comes from the dataset of the hub. Remove it.")
    if not spec.languages:
        raise ConfigError(
            "languages: those of a dataset of the hub cannot be listed. Write them "
            '(languages = ["sw", "ha"], or with replacements of {language}: { sw = "swa" }).'
        )
    check_named("splits", "split", SPLITS, *spec.splits)
    names: Mapping[Any, str] = spec.splits or ALL
    return {split: f"{spec.config}/{names[split]}" for split in SPLITS if split in names}


def _splits(spec: Description) -> tuple[Split, ...]:
    """Return the splits of a single path: all, or only training where it is the same for all."""
    patterns = (spec.files, *spec.where.values())
    return SPLITS if any("{split}" in pattern for pattern in patterns) else ("train",)


def _where(spec: Description, files: Mapping[Split, str], form: str) -> dict[Split, dict[str, str]]:
    """Return the cells that select a split's rows, by column. Empty for splits with separate files."""
    if spec.where and form in ("conll", "conllu", "lines", "squad"):
        raise ConfigError(
            f"where: rows of {form} have no columns to select them by. Give each split and language "
            "separate files."
        )
    return {
        split: {
            column: text.replace("{split}", spec.splits.get(split, split))
            for column, text in spec.where.items()
        }
        for split in files
        if spec.where
    }


def _format(spec: Description, files: Mapping[Split, str]) -> str:
    if spec.hub:
        return "jsonl"
    if spec.format:
        check_named("format", "format", FORMATS, spec.format)
        return spec.format
    path = next(iter(files.values())).removesuffix(".gz").removesuffix(".xz")
    suffixes = find_suffixes(spec.kind)
    if Path(path).suffix not in suffixes:
        raise ConfigError(f"format: {path!r} has no known suffix. Write one of {', '.join(FORMATS)}.")
    return suffixes[Path(path).suffix]


def _columns(spec: Description, kind: str, form: str) -> Columns:
    """Return the column of each part of an example: as described, else the usual one of the format."""
    usual = list_columns(kind, form)
    several: tuple[str, ...] = (*KINDS[kind].several, ID)
    if spec.predicts == "labels":
        several = ("label", *several)
    _check_format(kind, form)
    parts = [*usual[form], *KINDS[kind].more, ID] if FORMATS[form].read_examples is None else []
    for part, column in spec.columns.items():
        check_named("columns", "part of an example", parts, part)
        if isinstance(column, tuple) and (part not in several or not column):
            raise ConfigError(
                f"columns: {part} has {len(column)} columns; expected one. A list of one or "
                f"more is for {', '.join(several)}."
            )
    if len(spec.separator) != 1:
        raise ConfigError(f"separator: found {spec.separator!r}; expected one character.")
    _check_annotated(spec, kind, form)
    if spec.annotated:
        ids = {part: column for part, column in spec.columns.items() if part == ID}
        return {**OF_SPANS, **ids}
    lemma_column = {"label": "LEMMA"} if spec.predicts == "lemma" and form == "conllu" else {}
    columns: dict[str, PartColumns] = {**usual[form], **lemma_column, **spec.columns}
    if SENTENCE in spec.columns or (kind == "tagging" and "word" in spec.columns and form in ("csv", "tsv")):
        _check_lines_of_words(spec, form)
        return {part: column for part, column in spec.columns.items() if part in (*LINES_OF_WORDS, ID)}
    if "annotated" in columns:
        columns = {part: column for part, column in columns.items() if part not in ("words", "labels")}
    _check_columns(columns, form)
    return columns


def _check_format(kind: str, form: str) -> None:
    if kind == "text" and form == "lines":
        raise ConfigError(
            f"format: lines of texts have no labels. Write label_files, or files with {LABEL} for one label "
            f"each."
        )
    check_named("format", f"format of {kind}", list_columns(kind, form), form)


def _check_lines_of_words(spec: Description, form: str) -> None:
    """Raise ConfigError unless a table with a line for each word has a column of each part."""
    lacking = [part for part in LINES_OF_WORDS if part not in spec.columns]
    if lacking or form not in ("csv", "tsv"):
        raise ConfigError(
            f"columns: found {', '.join(spec.columns)} in {form}; expected {', '.join(LINES_OF_WORDS)} in "
            f"csv or tsv, for a line for each word."
        )
    if spec.where:
        raise ConfigError(
            "where: lines of words cannot be selected. Give each split and language separate files."
        )


def _check_annotated(spec: Description, kind: str, form: str) -> None:
    """Raise ConfigError where spans cannot be marked by offsets."""
    if not spec.annotated:
        return
    check_named("annotated", "way to mark spans", (OFFSETS,), spec.annotated)
    if kind != "tagging" or form not in OFFSET_FORMATS:
        raise ConfigError(
            f"annotated: found {kind} in {form}; expected tagging in {', '.join(OFFSET_FORMATS)}. Remove it."
        )
    if unread := [part for part in spec.columns if part != ID]:
        raise ConfigError(
            f"columns: {', '.join(unread)}: with offsets, texts and spans are found by their usual keys. "
            f"Remove it."
        )


def _check_columns(columns: Columns, form: str) -> None:
    if form == "conll" and not all(isinstance(column, int) for column in columns.values()):
        raise ConfigError("columns: those of conll have no names. Number them from 0 (-1: the last).")
    for column in columns.values() if form == "conllu" else ():
        if not is_column(column):  # type: ignore[arg-type]
            raise unknown_name("columns", "column of CoNLL-U", str(column), NAMES)


def _languages(
    spec: Description, name: str, files: Mapping[Split, str], folder: Path, data: str
) -> dict[str, str]:
    """Return the spelling in paths of each language, as described or, where none is, as files have it."""
    languages = (
        spec.languages
        if isinstance(spec.languages, dict)
        else {language: language for language in spec.languages}
    )
    is_shipped = folder == SHIPPED
    if not languages and is_shipped and data == HUB:
        languages = dict(find_data_source(HUB).find_spellings(name))
    if not languages:
        spellings = (
            language
            for root in folders_of(folder, data_source(data))
            for language in find_spellings(root, [path.replace(LABEL, "*") for path in files.values()])
            if all(is_language_code(part) for part in canonical_language(language).split("-"))
        )
        languages = {language: language for language in spellings}
    if not languages and is_shipped:
        lacking = (
            f"none of its files is in {data}" if data else "its files are in a data folder, and none is given"
        )
        raise DataError(f"{lacking}. {give_advice(name)}")
    if not languages:
        raise ConfigError(
            f"files: {', '.join(files.values())}: no such file in any language. Correct it, give --data, or "
            f'write the replacement of {{language}} (languages = {{ sw = "swahili" }}).'
        )
    refuse_empty_or_twice([canonical_language(language) for language in languages], "languages")
    return {canonical_language(language): spelling for language, spelling in languages.items()}
