"""Statements of the SOURCE.md of each real corpus, with their readers: one check per file or language.

No count is written here: each is found in the text of SOURCE.md.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import cast

from isogloss.core.errors import DataError
from isogloss.core.languages import NAMES, codes_of_three_letters
from isogloss.data.corpora.catalogue import CORPORA
from isogloss.features.parallel_text.bitext import Bitext
from isogloss.data.corpora.labelled import LabelledCorpus
from isogloss.data.corpus import SPLITS, Corpus, Split
from isogloss.data.examples import Example, ParsedSentence, TaggedSentence, TextLine
from isogloss.data.files import DiskFolder
from isogloss.data.corpora.texts_and_trees import Ud


def pairs_or_questions(examples: Sequence[Example]) -> str:
    return str(len(examples))


def sentences_and_words(examples: Sequence[Example]) -> str:
    words = sum(
        len(sentence.words) for sentence in examples if isinstance(sentence, TaggedSentence | ParsedSentence)
    )
    return f"{len(examples)} / {words}"


def documents_and_lines(examples: Sequence[Example]) -> str:
    return f"{len({line.document for line in examples if isinstance(line, TextLine)})} / {len(examples)}"


@dataclass(frozen=True, kw_only=True)
class Check:
    """Something to read, and the count that SOURCE.md states; empty where it states none."""

    place: str
    """Folder below the data folder."""
    corpus: Corpus
    language: str
    splits: tuple[Split, ...]
    stated: str
    count: Callable[[Sequence[Example]], str] = pairs_or_questions
    of: str = ""
    """Treebank, or layout, where the folder has several."""
    named: bool = True
    """Whether SOURCE.md names the language, not only counts the languages."""
    path: str = ""
    """Part of the path of the only files to be read, where others come before them."""

    @property
    def split(self) -> str:
        return self.splits[0] if len(self.splits) == 1 else "all"

    def is_there(self, folder: DiskFolder) -> bool:
        try:
            return bool(self.corpus.files(folder, self.language, self.splits[0]))
        except DataError:
            return False


def places(folder: DiskFolder) -> list[str]:
    """Give the folders that are there and have a SOURCE.md to be compared with."""
    return [directory for directory in CHECKS if Path(folder.path, directory, "SOURCE.md").is_file()]


def checks(folder: DiskFolder, directory: str) -> list[Check]:
    """Give all checks of one folder, whether their files are there or not."""
    return list(
        CHECKS[directory](directory, Path(folder.path, directory, "SOURCE.md").read_text(encoding="utf-8"))
    )


def table(text: str) -> list[list[str]]:
    """Give the cells of the rows of all tables of a Markdown text."""
    lines = (line for line in text.splitlines() if line.startswith("|"))
    return [[part.strip() for part in line.strip("|").split("|")] for line in lines]


def find(pattern: str, text: str) -> tuple[str, ...]:
    """Give the groups of the one place that a pattern matches, numbers without their commas."""
    (match,) = re.finditer(pattern, text)
    return tuple(group.replace(",", "") for group in match.groups())


def _treebanks(directory: str, text: str) -> Iterator[Check]:
    for treebank, name, *cells in table(text):
        match = re.fullmatch(r"([a-z]+)(?:_\w+)?-ud-(\w+)\.conllu", name)
        if match:
            yield Check(
                place=directory,
                corpus=Ud(treebanks=((match[1], f"{directory}/{treebank}"),)),
                language=match[1],
                splits=tuple(split for split in SPLITS if split == match[2]),
                stated=f"{cells[0]} / {cells[1]}",
                count=sentences_and_words,
                of=treebank,
            )


def _universal_tags(corpus: str, directory: str, text: str) -> Iterator[Check]:
    for language, *cells in table(text):
        for split, count in zip(SPLITS, cells, strict=True):
            if re.fullmatch(r"\d+ / \d+", count):
                yield _check(directory, corpus, language, split, count, sentences_and_words)


def _panx(directory: str, text: str) -> Iterator[Check]:
    for language, counts in re.findall(r"\b([a-z]{2}) (\d+(?:/\d+)+)", text):
        for split, count in zip(SPLITS, counts.split("/"), strict=False):
            yield _check(directory, "wikiann", language, split, count)


def _xnli(directory: str, text: str) -> Iterator[Check]:
    dev, test = find(r"(\d+) and (\d+) pairs a language", text)
    again = find(r"xtreme-format/: .* for ([a-z ]+)\.", text)[0].split()
    languages = ["ar", "bg", "de", "el", "en", "es", "fr", "hi", "ru", "sw", "th", "tr", "ur", "vi", "zh"]
    for split, count in (("dev", dev), ("test", test)):
        yield from (_check(directory, "xnli", language, split, count) for language in languages)
        for language in again:
            yield _check(directory, "xnli", language, split, count, of="xtreme-format", path="xtreme-format/")


def _english_inference(directory: str, text: str) -> Iterator[Check]:
    counts = {row[0]: re.findall(r"\d+", row[-1]) for row in table(text)}
    for name, start, splits in (
        ("snli", "snli_", SPLITS[1:]),
        ("cad-nli", "cad_", SPLITS),
        ("sick", "sick", SPLITS),
    ):
        (numbers_of_splits,) = (numbers for cell, numbers in counts.items() if cell.startswith(start))
        yield from (
            _check(directory, name, "en", split, count)
            for split, count in zip(splits, numbers_of_splits, strict=True)
        )


def _mrpc(directory: str, text: str) -> Iterator[Check]:
    counts = find(r"(\d+) train / (\d+) val / (\d+) test", text)
    yield from (_check(directory, "mrpc", "en", split, n) for split, n in zip(SPLITS, counts, strict=True))


def _pawsx(directory: str, text: str) -> Iterator[Check]:
    (dev,) = find(r"dev (\d+) each", text)
    (tests,) = find(r"; test (.*): rows where", text)
    for count, languages in re.findall(r"(\d+) \(([a-z, ]+?)(?::[^)]*)?\)", tests):
        for language in re.findall(r"[a-z]{2}", languages):
            yield _check(directory, "pawsx", language, "dev", dev)
            yield _check(directory, "pawsx", language, "test", count)


def _squad(directory: str, text: str) -> Iterator[Check]:
    (train,) = find(r"paragraphs, ([\d,]+) questions", text)
    (dev,) = find(r"dev-v1\.1\.rebuilt\.json: [\d,]+ / [\d,]+ / ([\d,]+)", text)
    yield _check(directory, "squad", "en", "train", train)
    yield _check(directory, "squad", "en", "dev", dev)


def _xquad(directory: str, text: str) -> Iterator[Check]:
    languages, count = find(r"languages \(([a-z ]+)\).* (\d+) questions each", text)
    yield from (_check(directory, "squad", language, "test", count) for language in languages.split())


def _mlqa(directory: str, text: str) -> Iterator[Check]:
    (counts,) = find(r"Same-language counts: (.*);", text)
    passage_counts = dict(re.findall(r"([a-z]{2}) (\d+)", counts))
    mlqa = cast(LabelledCorpus, CORPORA["mlqa"])
    for passages in mlqa.own_rules:
        for questions in mlqa.own_rules:
            yield Check(
                place=directory,
                corpus=replace(mlqa, collection="" if questions == passages else questions),
                language=passages,
                splits=("dev",),
                stated=passage_counts[passages] if questions == passages else "",
                of=f"questions {questions}",
            )


def _tydiqa(directory: str, text: str) -> Iterator[Check]:
    dev, train = find(r"dev \(.*?\): ([a-z0-9, ]+)\. train: ([a-z0-9, ]+)\.", text)
    for split, counts in (("dev", dev), ("train", train)):
        for language, count in re.findall(r"([a-z]{2}) (\d+)", counts):
            yield _check(directory, "tydiqa", language, split, count)


def _bible(directory: str, text: str) -> Iterator[Check]:
    for languages, counts, *_ in table(text):
        numbers = re.findall(r"\d+", counts)
        for language, count in zip(re.findall(r"\b[a-z]{2}\b", languages), numbers, strict=False):
            yield Check(
                place=directory, corpus=CORPORA["bible"], language=language, splits=SPLITS, stated=count
            )


def _tico(directory: str, text: str) -> Iterator[Check]:
    codes, count = find(r"\(id, en, ([a-z, ]+)\); (\d+) rows", text)
    for language in codes.split():
        yield _bitext(directory, f"en-{language}", count)


def _tatoeba(directory: str, text: str) -> Iterator[Check]:
    pairs, exceptions = find(r"(\d+) pairs each but (.*)\.", text)
    fewer = dict(re.findall(r"([a-z]{3}) (\d+)", exceptions))
    for language in (language_code for language_code in NAMES if language_code != "en"):
        counts = [
            fewer[language_code]
            for language_code in codes_of_three_letters(language)
            if language_code in fewer
        ]
        yield replace(_bitext(directory, f"{language}-en", (*counts, pairs)[0]), named=bool(counts))


def _alignments(directory: str, text: str) -> Iterator[Check]:
    for first_match, second, count in re.findall(r"\b([a-z]{2})([a-z]{2}) \((\d+)\)", text):
        yield _bitext(directory, f"{first_match}-{second}", count)


def _rawtext(directory: str, text: str) -> Iterator[Check]:
    sums: dict[str, list[int]] = {}
    for language, _name, _source, _licence, documents, lines, *_ in (r for r in table(text) if len(r) == 9):
        if language in NAMES:
            totals = sums.setdefault(language, [0, 0])
            totals[0] += int(documents)
            totals[1] += int(lines)
    for language, (documents, lines) in sums.items():
        count = f"{documents} / {lines}"
        yield _check(directory, "rawtext", language, "train", count, documents_and_lines)


def _check(
    directory: str,
    corpus: str,
    language: str,
    split: Split,
    stated_count: str,
    count: Callable[[Sequence[Example]], str] = pairs_or_questions,
    **more: str,
) -> Check:
    return Check(
        place=directory,
        corpus=CORPORA[corpus],
        language=language,
        splits=(split,),
        stated=stated_count,
        count=count,
        **more,
    )


def _bitext(directory: str, pair: str, stated_count: str) -> Check:
    return Check(
        place=directory,
        corpus=Bitext(collection=directory),
        language=pair,
        splits=("test",),
        stated=stated_count,
    )


CHECKS: dict[str, Callable[[str, str], Iterator[Check]]] = {
    "ud": _treebanks,
    "ud-extra": _treebanks,
    "ud-legacy": _treebanks,
    "ud-pud": _treebanks,
    "udpos-xtreme": partial(_universal_tags, "udpos"),
    "masakhapos": partial(_universal_tags, "masakhapos"),
    "panx": _panx,
    "xnli": _xnli,
    "nli-train-en": _english_inference,
    "mrpc": _mrpc,
    "pawsx": _pawsx,
    "squad": _squad,
    "xquad": _xquad,
    "mlqa": _mlqa,
    "tydiqa-goldp": _tydiqa,
    "bible": _bible,
    "tico19": _tico,
    "tatoeba": _tatoeba,
    "word-alignment": _alignments,
    "rawtext": _rawtext,
}
"""The folders of the real corpora, and how their SOURCE.md states its counts."""
