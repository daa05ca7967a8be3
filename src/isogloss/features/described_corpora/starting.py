"""The first corpus and recipe of an experiment, as ``isogloss init`` writes them.

The corpus has a description, one labelled file, split, and text of target languages; the recipe has comments
on what can be changed.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from glob import escape
from pathlib import Path
from typing import NamedTuple

from isogloss.core.atomic_files import atomic_folder
from isogloss.core.errors import ConfigError, DataError
from isogloss.core.identity import derive
from isogloss.core.languages import canonical_language, check_language
from isogloss.data.corpora.catalogue import CORPORA
from isogloss.data.corpora.own import SUFFIX
from isogloss.data.corpus import SPLITS, Split
from isogloss.data.examples import Example, LabelledText, TaggedSentence, TextLine, is_labelled
from isogloss.data.files import some
from isogloss.data.formats.corpus_kinds import UNKNOWN, parts_of
from isogloss.data.formats.formats import OF_SPANS, WORDS_COLUMN, ExampleColumns, find_marks
from isogloss.data.formats.reading import Predicts
from isogloss.data.projection.example_texts import texts_of
from isogloss.features.described_corpora.contents import labels_of, with_labels
from isogloss.features.described_corpora.corpus import DescribedCorpus
from isogloss.features.described_corpora.descriptions import describe_corpus
from isogloss.features.described_corpora.file_layouts import OFFSET_FORMATS, languages_of, layout_of
from isogloss.recipes.recipe_text import to_toml

LEFT_OUT = "left-out.txt"
"""The file with the rows that are in no split, and why."""

MAX_ERRORS_SHOWN = 5
"""Rows left out that are printed."""


@dataclass(frozen=True, kw_only=True)
class LabelledFile:
    """A labelled file, the text of target languages, and how it is read and split."""

    path: Path
    """The file, or a description of it as training data."""
    source: str
    texts: Mapping[str, Path]
    """A file for each target language, with labels or without."""
    text: str = ""
    label: str = ""
    """Columns (``layout_of``)."""
    column: str = ""
    """Column of the languages of rows, where the file has several: ``texts`` then name it again."""
    spelled: Mapping[str, str] = field(default_factory=dict)
    """Languages as that column has them."""
    weights: Sequence[int] = (80, 10, 10)
    """Shares of train, dev and test."""
    seed: int = 0


def with_languages(file: LabelledFile, targets: Mapping[str, str]) -> LabelledFile:
    """Return a file with its source language and its targets: files of text, or rows of the file itself.

    The source is English where the file has it and none is named, else the most frequent language.
    """
    column, spellings = languages_of(file.path, file.column) if file.column or not targets else ("", {})
    source = file.source or ("en" if "en" in spellings else next(iter(spellings), "en"))
    texts = {canonical_language(language): Path(path) for language, path in targets.items() if path}
    if spellings:
        codes = map(canonical_language, targets or spellings)
        texts = {language: file.path for language in codes if language in spellings and language != source}
    if not texts or len(texts) < len(targets) or source in texts or (spellings and source not in spellings):
        raise ConfigError(
            f"--from: found targets {', '.join(targets) or 'none'}; expected languages other than the source "
            f"({source}), once each, with a file of text each (--target sw=swahili.txt), or a file of "
            f"several languages and its column of them (--language-column)."
        )
    for language in (source, *texts):
        check_language(language, "--source" if language == source else "--target")
    return replace(file, source=source, texts=texts, column=column, spelled=spellings)


class _FilePart(NamedTuple):
    """The examples of a file by split, and the errors of its rows."""

    path: Path
    language: str
    layout: str
    splits: Mapping[Split, list[Example]]
    errors: Sequence[str]
    notes: Sequence[str]
    """Remarks on how the file is read."""
    predicts: Predicts

    @property
    def examples(self) -> list[Example]:
        return [example for examples in self.splits.values() for example in examples]

    def remarks(self, folder: Path) -> Iterator[str]:
        """Yield the layout, labels and sizes of the file, for the terminal."""
        labels = Counter(label for example in self.examples for label in labels_of(example, self.predicts))
        counts = some(f"{label} {count:,}" for label, count in labels.most_common()) if labels else "none"
        yield f"{self.path}: {self.layout}, language {self.language}. Labels: {counts}."
        yield from (f"  {note}" for note in (*self.notes, *_repeats(self.examples)))
        if self.errors:
            yield f"  Rows left out, which {folder / LEFT_OUT} lists: {len(self.errors):,}."
            yield from (f"    {error}" for error in self.errors[:MAX_ERRORS_SHOWN])
        sizes = ", ".join(f"{split} {len(examples):,}" for split, examples in self.splits.items())
        yield f"  In {folder}: {sizes}."


class WrittenCorpus(NamedTuple):
    """The description that was written, and remarks for the terminal."""

    description: Path
    unlabelled: tuple[str, ...]
    """Target languages without labels."""
    remarks: tuple[str, ...]
    is_new: bool
    """Whether this call made the folder. If not, an earlier call that was killed made the same one."""


def write_corpus(file: LabelledFile, parent: Path) -> WrittenCorpus:
    """Write the splits and their description into a folder. Rows that fit no split are in LEFT_OUT.

    A folder with exactly these files is used as it is. Any other folder of this name is an error.
    """
    name = re.sub(r"[^\w-]+", "-", file.path.name.partition(".")[0]).strip("-") or "corpus"
    name += "-own" * (name in CORPORA)
    folder = parent / name
    corpus = _source_corpus(file)
    parts = [_part(file, corpus, corpus, file.source, file.path)]
    new_labels = dict[str, None]()
    for language, path in file.texts.items():
        target = _target_corpus(file, corpus, language, path)
        new_labels.update(dict.fromkeys(label for label in target.labels if label not in corpus.labels))
        parts.append(_part(file, target, corpus, language, path))
    description = folder / f"{name}{SUFFIX}"
    contents = {
        f"{part.language}.{split}.jsonl": _join_lines(_line(example, corpus.labels) for example in examples)
        for part in parts
        for split, examples in part.splits.items()
    }
    contents[description.name] = _join_lines(_description(file, corpus, list(new_labels)).splitlines())
    if errors := [error for part in parts for error in part.errors]:
        contents[LEFT_OUT] = _join_lines(errors)
    is_new = not folder.exists()
    if is_new:
        with atomic_folder(folder.parent, folder.name) as temporary:
            for file_name, content in contents.items():
                (temporary / file_name).write_bytes(content)
    elif not _has_exactly(folder, contents):
        raise ConfigError(
            f"{folder}: this exists with other files, and data is never replaced. Move it away, or rename "
            f"{file.path.name}."
        )
    return WrittenCorpus(
        description=description,
        unlabelled=tuple(
            part.language
            for part in parts
            if not any(is_labelled(part_example) for part_example in part.examples)
        ),
        remarks=tuple(remark for part in parts for remark in part.remarks(folder)),
        is_new=is_new,
    )


def _has_exactly(folder: Path, contents: Mapping[str, bytes]) -> bool:
    """Return whether a folder has these files with these contents and nothing else."""
    if not folder.is_dir():
        return False
    files = {path.name: path for path in folder.iterdir()}
    if files.keys() != contents.keys():
        return False
    return all(path.is_file() and path.read_bytes() == contents[name] for name, path in files.items())


def _source_corpus(file: LabelledFile) -> DescribedCorpus:
    if file.path.suffix == SUFFIX:
        return describe_corpus(file.path)
    return with_labels(_corpus(file, file.source, file.path, "train"), None)


def _target_corpus(file: LabelledFile, corpus: DescribedCorpus, language: str, path: Path) -> DescribedCorpus:
    target = _corpus(file, language, path, "dev")
    if corpus.has_offsets and target.format in OFFSET_FORMATS:
        target = replace(target, kind="tagging", columns=OF_SPANS, has_offsets=True)
    if target.kind != corpus.kind and (target.kind != "raw" or corpus.kind not in ("text", "tagging")):
        raise ConfigError(
            f"{path}: found {target.kind} ({target.format}); expected {corpus.kind}, as {file.path} has. "
            f"Give a file with the same columns; its label may be missing."
        )
    return replace(target, labels=(*corpus.labels, *_find_unseen_labels(target, corpus)))


def _find_unseen_labels(target: DescribedCorpus, corpus: DescribedCorpus) -> list[str]:
    """Return the labels of a target that its source lacks: they are scored and never learned."""
    if target.kind not in ("tagging", "text", "pair") or corpus.predicts not in ("label", "labels"):
        return []
    with suppress(DataError):  # It is among the errors of the rows.
        labels = with_labels(replace(target, labels=()), None).labels
        return [label for label in labels if label not in corpus.labels]
    return []


def _corpus(file: LabelledFile, language: str, path: Path, split: Split) -> DescribedCorpus:
    """Return a file as a corpus of one split."""
    if not path.is_file():
        raise ConfigError(f"{path}: no such file. Give a file of text in {language}.")
    conditions = {split: {file.column: "{language}"}} if file.column else {}
    return DescribedCorpus(
        name=path.name,
        paths={split: escape(path.name)},
        languages={language: file.spelled.get(language, language)},
        where=conditions,
        folder=str(path.parent),
        **layout_of(path, file.text, file.label, is_labelled=split == "train")._asdict(),
    )


def _part(
    file: LabelledFile, corpus: DescribedCorpus, source: DescribedCorpus, language: str, path: Path
) -> _FilePart:
    """Read a file and split it.

    A target's file is dev if it has no labels, or else half dev and half test.
    """
    is_source = language == file.source
    kind, labels = source.kind, source.labels
    read: tuple[str, Split] = (language, "train" if is_source else "dev")
    attempts = list(corpus.attempts(None, *read))
    split_words = find_marks().split_words if corpus.has_offsets else str.split
    examples = [
        _convert_line(kind, example, split_words)
        for example in attempts
        if not isinstance(example, DataError)
    ]
    errors = [str(error) for error in attempts if isinstance(error, DataError)]
    names = SPLITS
    if not is_source:
        has_labels = any(is_labelled(labelled_example) for labelled_example in examples)
        names = SPLITS[1:] if has_labels else SPLITS[1:2]
    weights = file.weights if is_source else [1] * len(names)
    splits = dict(zip(names, split_examples(examples, weights, seed=file.seed), strict=True))
    if empty_splits := [split for split, part in splits.items() if not part]:
        hint = f" First error: {errors[0]}" if errors else ""
        raise DataError(
            f"{path}: {len(examples):,} rows that fit, and none for {empty_splits[0]}; expected some for "
            f"each split. Give a larger file, or other shares (--split).{hint}"
        )
    table = ExampleColumns(format=corpus.format, columns=corpus.columns)
    columns = ", ".join(
        f"{part} in {' or '.join(map(repr, table.columns_of(part)))}" for part in corpus.columns
    )
    layout = f"{corpus.format}, {columns}"
    if corpus.format == "lines":
        layout = "lines of text"
    elif corpus.columns.get("words") == WORDS_COLUMN:
        layout = f"{corpus.format}, spans in texts"
    notes = [*corpus.remarks(None, *read), *_describe_unlearned(examples, labels, corpus.predicts)]
    return _FilePart(path, language, layout, splits, errors, notes, corpus.predicts)


def _describe_unlearned(examples: Sequence[Example], labels: Sequence[str], predicts: Predicts) -> list[str]:
    """Return the remark that counts labels that the source lacks. Empty without any."""
    counts = Counter(label for example in examples for label in labels_of(example, predicts, spans=False))
    unlearned_counts = [
        f"{label} {count:,}" for label, count in counts.most_common() if labels and label not in labels
    ]
    return [
        f"Labels that the source lacks, which are scored and never learned: {some(unlearned_counts)}."
    ] * bool(unlearned_counts)


def _convert_line(kind: str, example: Example, split_words: Callable[[str], Sequence[str]]) -> Example:
    """Convert a line of text to an unlabelled example. Other examples stay the same."""
    if isinstance(example, TextLine) and kind == "text":
        return LabelledText(id=example.id, text=example.text, label=UNKNOWN)
    if isinstance(example, TextLine):
        return TaggedSentence(id=example.id, words=tuple(split_words(example.text)), tags=())
    return example


def _repeats(examples: Sequence[Example]) -> list[str]:
    """Return the remark that counts rows with the text of a different row. Empty without any."""
    texts = [tuple(texts_of(example)) for example in examples]
    labels = [getattr(example, "label", "") or getattr(example, "tags", "") for example in examples]
    distinct_texts = len(set(texts))
    distinct_count = len(set(zip(texts, labels, strict=True)))
    counts = f"{len(texts) - distinct_texts:,} ({distinct_count - distinct_texts:,} with another label)"
    return [f"Rows that repeat a text, all in its split: {counts}."] if len(texts) > distinct_texts else []


def _line(example: Example, labels: Sequence[str]) -> str:
    """Return an example as JSON, with its id or the number of its row in the file it came from."""
    parts = parts_of(example, labels)
    if not is_labelled(example):
        parts = {name: part for name, part in parts.items() if name not in ("label", "labels", "answers")}
    return json.dumps({"id": example.id, **parts}, ensure_ascii=False)


def _description(file: LabelledFile, corpus: DescribedCorpus, new_labels: Sequence[str]) -> str:
    labels = [*corpus.labels, *new_labels]
    more = [part for part in ("question", "prompt") if corpus.kind == "choice" and part in corpus.columns]
    is_stated = corpus.listed or corpus.spelled or corpus.kind == "choice"
    inventory = {"labels": labels} if is_stated and labels and corpus.kind != "tagging" else {}
    return to_toml(
        {
            "kind": corpus.kind,
            "predicts": corpus.predicts,
            "files": "{language}.{split}.jsonl",
            "languages": [file.source, *file.texts],
            **inventory,
            "columns": {part: part for part in ("id", *more)},
            "about": f"{file.path.name}, split by isogloss init with seed {file.seed}.",
        }
    )


def _join_lines(lines: Iterable[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode("utf-8")


def split_examples(examples: Sequence[Example], weights: Sequence[int], *, seed: int) -> list[list[Example]]:
    """Divide examples into a list for each weight, proportional to the weights, in their order.

    Depends on seed, texts and labels, not on the order of the examples; equal texts stay together, and the
    first text of each label is in the first split.
    """
    groups: dict[str, list[int]] = {}
    for index, example in enumerate(examples):
        groups.setdefault("\t".join(texts_of(example)), []).append(index)
    ordered_groups = sorted(
        (min(_stratum(examples[index]) for index in indices), derive(seed, "split", text), indices)
        for text, indices in groups.items()
    )
    debts, strata, split_of = [0] * len(weights), set[str](), dict[int, int]()
    for stratum, _, indices in ordered_groups:
        debts = [count + weight * len(indices) for count, weight in zip(debts, weights, strict=True)]
        split = debts.index(max(debts)) if stratum in strata else 0
        strata.add(stratum)
        debts[split] -= sum(weights) * len(indices)
        split_of |= dict.fromkeys(indices, split)
    return [
        [example for index, example in enumerate(examples) if split_of[index] == split]
        for split in range(len(weights))
    ]


def _stratum(example: Example) -> str:
    label = getattr(example, "label", None)
    return str(label) if isinstance(label, str | int) else ""


@dataclass(frozen=True, kw_only=True)
class Answers:
    """The content of a new recipe. The defaults need no data."""

    corpus: str = "wikiann"
    """A corpus with labels, or a TOML file that describes answers."""
    task: str = ""
    """A task of the corpus. Not needed if the corpus has only one."""
    source: str = "qaa"
    """The language that is trained on."""
    targets: Sequence[str] = ("qab", "qad")
    """The languages that are transferred to."""
    encoder: str = "shipped"
    """The encoder: shipped, a folder, or a name on the Hugging Face hub."""
    methods: Sequence[str] = ("source-only",)
    """Methods of fine-tuning."""
    split: str = "test"
    """The split that models are scored on."""
    seeds: int = 3
    """Number of seeds, counted from 0."""
    unlabelled: Sequence[str] = ()
    """Targets without labels, whose quality is to be estimated."""


def first_recipe(answers: Answers) -> str:
    """Return a recipe with comments, which is not planned yet."""

    def field(name: str, value: object) -> str:
        return to_toml({name: value}).strip()

    task = f"{field('task', answers.task)}\n" if answers.task else ""
    source, targets = answers.source, ", ".join(answers.targets)
    measures = [("label-free", "dev")] if answers.unlabelled else []
    measures += [("scores", answers.split)]
    measures += [("transfer-gap", answers.split)] if set(answers.targets) - set(answers.unlabelled) else []
    measure_tables = "\n\n".join(f"[[measure]]\n{field('name', n)}\n{field('split', s)}" for n, s in measures)
    methods = "\n\n".join(f"[[grid.method]]\n{field('name', name)}" for name in answers.methods)
    return f"""\
# isogloss run FILE --dry-run prints the plan, isogloss run FILE makes it, --scale small first tries it.
# All fields: docs/recipe.md; what can be named: isogloss list corpora|tasks|methods|diagnostics|encoders.
{field("title", f"How well does {answers.corpus} transfer from {source} to {targets}?")}
{field("encoder", answers.encoder)}  # or a folder, or a name on the hub: "xlm-roberta-base"

[grid]  # the product of all lists
{field("corpus", answers.corpus)}
{task}{field("source", source)}  # "en+ar" trains on both at once
{field("targets", list(answers.targets))}
{field("seeds", list(range(answers.seeds)))}  # three or more, or nothing can be said about others
optimization = {{ epochs = 5 }}  # also learning_rate, batch_size …; a list makes one run for each value

{methods}

{measure_tables}

[scale.small]
"grid.seeds" = [0]
"grid.examples" = 200
"grid.dev_examples" = 100
"grid.optimization" = {{ epochs = 1 }}
"""
