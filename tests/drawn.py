"""Valid examples of every kind, drawn with what is hard about real text, and which of them a corpus holds."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import strategies as st

from isogloss.core.errors import InputError
from isogloss.data.corpora.catalogue import CORPORA
from isogloss.data.corpus import SPLITS, Corpus, Split, nonempty
from isogloss.data.examples import (
    ComparableText,
    Example,
    ParsedSentence,
    Question,
    SentencePair,
    TaggedSentence,
    TextLine,
    Translation,
)
from isogloss.data.files import DiskFolder
from isogloss.data.formats.conllu import OLD_UPOS, UPOS

LABELS = {"nli": {"entailment", "neutral", "contradiction"}, "paraphrase": {"0", "1"}}

HARD = [
    "\u200d",  # zero width joiner
    "\u200c",  # zero width non-joiner
    "e\u0301",  # NFD
    "\u00e9",  # NFC
    "\u200f",  # right-to-left mark
    "\u202e",  # right-to-left override
    "\u2028",  # line separator
    "\u0085",  # next line
    "\ufeff",  # byte order mark
    "\u00a0",  # no-break space
    "\x00",
    "\x0c",
    "\x1c",
    "🧑🏽‍🔬",  # five code points, one sign
    "क्षि",
    "שלום",
    '"',
    "\\",
    "#",
    "|||",
    " ||| ",
    "-",
    "1",
    "sentence1",
    "premise",
    "# sent_id = 1",
]

_letters = st.characters(exclude_characters="\t\n\r", exclude_categories=["Cs"])
word = st.lists(st.one_of(_letters, st.sampled_from(HARD)), min_size=1, max_size=4).map("".join)
"""Anything but tab and line end."""
line = st.lists(st.one_of(word, st.just(" ")), min_size=1, max_size=6).map("".join).filter(str.strip)


def tagged_sentences(tags: Sequence[str]) -> st.SearchStrategy[list[Example]]:
    """Draw tagged sentences, numbered from 1."""
    sentence = st.lists(st.tuples(word, st.sampled_from(sorted(tags))), min_size=1, max_size=4)
    return st.lists(sentence, min_size=1, max_size=4).map(
        lambda samples: [
            TaggedSentence(id=str(n), words=tuple(w for w, _ in item), tags=tuple(t for _, t in item))
            for n, item in enumerate(samples, 1)
        ]
    )


@st.composite
def _tree(draw: Callable, index: int) -> ParsedSentence:
    count = draw(st.integers(1, 5))
    order = draw(st.permutations(range(1, count + 1)))
    heads = {order[0]: 0} | {
        order[place]: order[draw(st.integers(0, place - 1))] for place in range(1, count)
    }
    tags = st.sampled_from(sorted(UPOS | OLD_UPOS))
    relations = st.sampled_from(["nsubj", "obl:arg", "dep"])
    return ParsedSentence(
        id=draw(st.sampled_from(["s", "weblog-", "#", "é "])) + str(index),
        words=tuple(draw(word) for _ in range(count)),
        tags=tuple(draw(tags) for _ in range(count)),
        heads=tuple(heads[n] for n in range(1, count + 1)),
        relations=tuple(draw(relations) if heads[n] else "root" for n in range(1, count + 1)),
    )


trees = st.integers(1, 3).flatmap(lambda count: st.tuples(*(_tree(n) for n in range(count)))).map(list)


def pairs(labels: set[str]) -> st.SearchStrategy[list[Example]]:
    """Draw labelled pairs, numbered from 1."""
    texts = st.one_of(line, st.sampled_from(["premise", "sentence1", "id", "label"]))
    return st.lists(st.tuples(texts, texts, st.sampled_from(sorted(labels))), min_size=1, max_size=4).map(
        lambda samples: [
            SentencePair(id=str(n), first=first_part, second=second, label=label)
            for n, (first_part, second, label) in enumerate(samples, 1)
        ]
    )


text_lines = st.lists(st.lists(line, min_size=1, max_size=3), min_size=1, max_size=3).map(
    lambda documents: [
        TextLine(id=f"{d}.{n}", text=text, document=d)
        for d, texts in enumerate(documents)
        for n, text in enumerate(texts)
    ]
)


@st.composite
def verses(draw: Callable) -> list[TextLine]:
    """Draw verses whose documents are their books."""
    references = draw(
        st.lists(
            st.tuples(st.sampled_from(["GEN", "EXO", "2JN"]), st.integers(1, 50)),
            min_size=1,
            max_size=8,
            unique=True,
        )
    )
    books = list(dict.fromkeys(book for book, _ in references))
    return [
        TextLine(id=f"{book} 1:{verse}", text=draw(line), document=books.index(book))
        for book, verse in references
    ]


@st.composite
def _translation(draw: Callable, index: int) -> Translation:
    pair = Translation(id=f"GEN 1:{index}", first=draw(line), second=draw(line))
    first_matches, second = (re.findall("[^ \t]+", text) for text in (pair.first, pair.second))
    places = [(i, j) for i in range(len(first_matches)) for j in range(len(second))]
    if draw(st.booleans()):
        return pair
    links = st.lists(st.sampled_from(places), unique=True, max_size=4).map(tuple)
    return replace(pair, links=draw(links), possible=draw(links))


translations = (
    st.integers(1, 8).flatmap(lambda n: st.tuples(*(_translation(value) for value in range(n)))).map(list)
)


@st.composite
def _comparable(draw: Callable, index: int) -> ComparableText:
    first_sample, second = draw(st.sampled_from([(line, line), (line, st.just("")), (st.just(""), line)]))
    return ComparableText(id=f"s {index}", first=draw(first_sample), second=draw(second))


comparables = (
    st.integers(1, 8).flatmap(lambda n: st.tuples(*(_comparable(value) for value in range(n)))).map(list)
)


@st.composite
def _question(draw: Callable, index: int) -> Question:
    passage = "".join(draw(st.lists(st.one_of(line, st.sampled_from("\t\n\r")), min_size=1, max_size=4)))
    answers = []
    for _ in range(draw(st.integers(1, 2))):
        start = draw(st.integers(0, len(passage) - 1))
        answers.append((start, passage[start : draw(st.integers(start + 1, len(passage)))]))
    return Question(id=f"q{index}", passage=passage, question=draw(line), answers=tuple(answers))


questions = (
    st.integers(1, 3).flatmap(lambda n: st.tuples(*(_question(value) for value in range(n)))).map(list)
)

KINDS: dict[str, tuple[st.SearchStrategy[list[Example]], list[Example]]] = {
    "sentences with universal tags": (
        tagged_sentences(sorted(UPOS)),
        [TaggedSentence(id="1", words=("a", "b"), tags=("ADP", "X"))],
    ),
    "sentences with entities": (
        tagged_sentences(CORPORA["wikiann"].labels),
        [TaggedSentence(id="1", words=("a", "b"), tags=("O", "B-LOC"))],
    ),
    "trees": (
        trees,
        [
            ParsedSentence(
                id="s1", words=("a", "b"), tags=("ADP", "X"), heads=(2, 0), relations=("dep", "root")
            ),
            ParsedSentence(id="s2", words=("c",), tags=("X",), heads=(0,), relations=("root",)),
        ],
    ),
    "inferences": (
        pairs(LABELS["nli"]),
        [
            SentencePair(id="1", first="a b", second="c", label="neutral"),
            SentencePair(id="2", first="a", second="d", label="entailment"),
        ],
    ),
    "paraphrases": (
        pairs(LABELS["paraphrase"]),
        [
            SentencePair(id="1", first="a b", second="c", label="1"),
            SentencePair(id="2", first="a", second="d", label="0"),
        ],
    ),
    "verses": (verses(), [TextLine(id=f"GEN 1:{n}", text=f"v {n}") for n in range(1, 30)]),
    "lines": (
        text_lines,
        [TextLine(id="0", text="a"), TextLine(id="1", text="b", document=1)],
    ),
    "translations": (
        translations,
        [
            Translation(id="GEN 1:1", first="a b", second="c d", links=((0, 0), (1, 1)), possible=((0, 1),)),
            Translation(id="GEN 1:2", first="e", second="f"),
            *(Translation(id=f"GEN 1:{n}", first="a", second="b") for n in range(3, 30)),
        ],
    ),
    "comparable texts": (
        comparables,
        [
            ComparableText(id="a b", first="a", second="b"),
            ComparableText(id="c", first="c", second=""),
            ComparableText(id="d", first="", second="d"),
        ],
    ),
    "questions": (
        questions,
        [
            Question(id="q1", passage="é one two", question="who?", answers=((2, "one"), (6, "two"))),
            Question(id="q2", passage="é one two", question="what?", answers=((0, "é"),)),
        ],
    ),
}
"""Strategies for examples, with one fixed sample of each."""
STRATEGIES = {kind: strategy for kind, (strategy, _) in KINDS.items()}
SAMPLES = {kind: sample for kind, (_, sample) in KINDS.items()}


@dataclass(frozen=True)
class Held:
    """A kind of examples that a corpus holds, and where it keeps them."""

    corpus: Corpus
    kind: str
    language: str
    splits: tuple[Split, ...]
    """Those that one file holds: the Bible's verses know their splits, other files are one."""

    @property
    def path(self) -> str:
        return self.corpus.path(self.language, self.splits[0])

    def write(self, examples: Sequence[Example]) -> str:
        return "".join(text + "\n" for text in self.corpus.write(examples, self.language))

    def read_back(self, text: str) -> list[Example]:
        """Read what is written, from all splits of the one file."""
        with TemporaryDirectory() as place:
            path = Path(place, self.path)
            path.parent.mkdir(parents=True)
            path.write_bytes(text.encode())
            return [item for split in self.splits for item in self._split(DiskFolder(Path(place)), split)]

    def _split(self, folder: DiskFolder, split: Split) -> list[Example]:
        if len(self.splits) == 1:
            return list(self.corpus.read(folder, self.language, split))
        try:
            return list(self.corpus.read(folder, self.language, split))
        except InputError as error:  # Few verses need not be of all three splits.
            if not _is_of_an_empty_split(error):
                raise
            return []


def _is_of_an_empty_split(error: InputError) -> bool:
    file = str(error).partition(":1:")[0]
    try:
        return bool(list(nonempty(iter(()), file)))
    except InputError as expected_error:
        return str(error) == str(expected_error)


def find_kind(corpus: Corpus) -> Held | None:
    """Find what a corpus holds: the first kind whose sample it writes and gives back."""
    for language in ("en", "en-sw"):
        for kind, (_, sample) in KINDS.items():
            for splits in _splits(corpus, language):
                result = Held(corpus, kind, language, splits)
                try:
                    if keep_parts(result.read_back(result.write(sample))) == keep_parts(sample):
                        return result
                except InputError:
                    continue
    return None


def keep_parts(examples: Sequence[Example]) -> list[Example]:
    """Return the parts of examples that every format keeps, in the order of ids if the format keeps ids.

    Pairs and lines get numbers as ids. Documents are renumbered (a verse's document is its book). The corpus
    determines the language of a question. Trees keep their lines.
    """
    documents: dict[int, int] = {}
    for example in examples:
        if isinstance(example, TextLine):
            documents.setdefault(example.document, len(documents))
    return sorted((_keep_parts_of(item, documents) for item in examples), key=lambda item: item.id)


def _keep_parts_of(example: Example, documents: dict[int, int]) -> Example:
    match example:
        case SentencePair():
            return replace(example, id="")
        case TextLine():
            if re.match("(GEN|EXO|2JN) ", example.id):
                return replace(example, document=0)
            return replace(example, id="", document=documents[example.document])
        case Question():
            return replace(example, language="")
        case ParsedSentence():
            return replace(example, lines=())
        case _:
            return example


def _splits(corpus: Corpus, language: str) -> list[tuple[Split, ...]]:
    try:
        paths = {split: corpus.path(language, split) for split in SPLITS}
    except InputError:
        return []
    return [SPLITS] if len(set(paths.values())) == 1 else [(split,) for split in SPLITS]
