"""Laws of every corpus: listed, found where written, read back as written, in linear time."""

import importlib
import time
import tracemalloc
from dataclasses import is_dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from drawn import HARD, KINDS, find_kind, keep_parts
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import isogloss.data
from each import each
from isogloss.core.errors import DataError
from isogloss.data.corpora.catalogue import CORPORA
from isogloss.data.corpora.concatenated import Concatenated
from isogloss.data.corpora.described import DescribedCorpus
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
from isogloss.data.sources import Sources


def test_every_corpus_of_the_package_is_listed():
    folder = Path(isogloss.data.__file__).parent / "corpora"
    modules = [
        importlib.import_module(f"isogloss.data.corpora.{path.stem}") for path in folder.glob("[a-z]*.py")
    ]
    found = {
        thing
        for module in modules
        for thing in vars(module).values()
        if isinstance(thing, type)
        and is_dataclass(thing)
        and hasattr(thing, "read")
        and hasattr(thing, "write")
    }
    found -= {Concatenated, DescribedCorpus}  # made of those in the table, or described: no entries of it
    assert found == {type(corpus) for corpus in CORPORA.values()}


def test_every_corpus_is_called_by_its_name_and_says_what_it_is():
    for name, corpus in CORPORA.items():
        assert corpus.name == name
        assert corpus.tasks
        assert corpus.about.licence
        assert corpus.about.text


@pytest.mark.parametrize("corpus", CORPORA.values(), ids=str)
def test_written_file_is_looked_for_where_path_says(corpus, tmp_path):
    pair = "qaa-qab" if corpus.name in ("bitext", "bucc2018") else "qaa"
    split = "dev" if corpus.name == "mlqa" else "train"
    path = tmp_path / corpus.path(pair, split)
    path.parent.mkdir(parents=True)
    path.write_text("verse\tqaa\tqab\n1\ta\tb\n")
    assert [file.name for file in corpus.files(DiskFolder(tmp_path), pair, split)] == [str(path)]


HELD = {name: find_kind(corpus) for name, corpus in CORPORA.items()}

EVERY = pytest.mark.parametrize("name", CORPORA)


@EVERY
@settings(max_examples=15, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_what_is_written_reads_back(name, data):
    one = HELD[name]
    examples = data.draw(KINDS[one.kind][0])
    assert keep_parts(one.read_back(one.write(examples))) == keep_parts(examples)


@EVERY
def test_fingerprints_follow_the_content(name, tmp_path):
    one = HELD[name]
    path = tmp_path / one.path
    path.parent.mkdir(parents=True)
    text = one.write(KINDS[one.kind][1])
    found = []
    for content in (text, text, f"{text}\n"):
        path.write_text(content, "utf-8")
        (file,) = one.corpus.files(DiskFolder(tmp_path), one.language, one.splits[0])
        found.append(file.fingerprint())
    assert found[0] == found[1] != found[2]


@EVERY
def test_a_file_without_examples_is_an_error_that_names_it(name, tmp_path):
    one = HELD[name]
    path = tmp_path / one.path
    path.parent.mkdir(parents=True)
    empty = {"bible": "verse\ten\n", **dict.fromkeys(("bitext", "bucc2018"), "id\ten\tsw\n")}.get(
        name, '{"data": []}'
    )
    path.write_text(empty if empty[0] != "{" or path.suffix == ".json" else "\n" * (name == "ud"), "utf-8")
    with pytest.raises(DataError) as caught:
        list(one.corpus.read(DiskFolder(tmp_path), one.language, one.splits[0]))
    assert f"{path}:1:" in str(caught.value)


@EVERY
def test_a_split_that_is_not_there_is_said_with_what_the_folder_holds(name, tmp_path):
    one = HELD[name]
    (tmp_path / "something.txt").touch()
    with pytest.raises(DataError) as caught:
        one.corpus.files(DiskFolder(tmp_path), one.language, one.splits[0])
    said = str(caught.value)
    assert said.startswith(f"{tmp_path}: no ") and f"{one.language!r}" in said
    assert "The folder holds: something.txt" in said


@pytest.mark.parametrize(
    ("corpus", "language", "split", "said"),
    [
        ("rawtext", "sw", "dev", "For 'sw' it has:"),
        ("bible", "ssw", "train", r"bible/\*\.tsv.*'ssw'.*'sw'.*en, fr, sw"),
        ("wikiann", "enn", "train", r"for: .*en, sw.*'en'\?.*panx/train-enn\.tsv"),
        ("wikiann", "sw", "test", "For 'sw' it has:"),
        ("squad", "en", "test", "squad.*ru"),
        ("squad", "ru", "train", "For 'ru' it has:"),
        ("xnli", "ssw", "dev", r"xnli\.dev\.tsv: .*'ssw'.*'sw'.*en, sw"),
        ("xnli", "en-ssw", "train", r"en-sw.*'en-sw'\?"),
        ("ud", "te", "train", "en, fr"),
        ("bitext", "en-fr", "dev", "bitext 'en-fr'"),
        (
            "bitext",
            "en-hi",
            "train",
            "'bitext'.* 'en-hi': tico19; .*collection = 'tico19'",
        ),
        ("bitext:tico19", "en-hi", "train", "'tico19'.*'en-hi'"),
    ],
)
def test_what_is_missing_is_said_with_what_there_is(fixtures, corpus, language, split, said):
    with pytest.raises(DataError, match=said):
        list(Sources().corpus(corpus).read(fixtures, language, split))


def with_text(example: Example, text: str) -> Example:
    match example:
        case TaggedSentence() | ParsedSentence():
            return replace(example, words=(text, *example.words[1:]))
        case TextLine():
            return replace(example, text=text)
        case Question():
            return replace(example, passage=text, answers=((0, text),))
        case _:
            return replace(example, first=text)


@pytest.mark.slow
@EVERY
def test_no_sign_is_lost_or_made_another(name):
    """Joiners, marks of direction, composed and decomposed letters and separators come back code by code."""
    one = HELD[name]
    examples = KINDS[one.kind][1]
    for text in [*(f"{sign}a" for sign in HARD), "b".join(HARD), *(f"a{sign}" for sign in HARD)]:
        changed = [with_text(examples[0], text), *examples[1:]]
        if isinstance(changed[0], Translation):
            changed[0] = replace(changed[0], links=None, possible=())
        assert keep_parts(one.read_back(one.write(changed))) == keep_parts(changed)


LINES = ["a\tb", "a\nb", "a\r", "\ud800", "a\udfffb"]

SPOILT = {
    TaggedSentence: [
        *({"words": (word, "b")} for word in [*LINES, ""]),
        {"words": ("a",)},
        {"words": (), "tags": ()},
        {"tags": ("O", "maybe")},
        {"tags": ("O", "X\t")},
    ],
    ParsedSentence: [
        *({"words": (word, "b")} for word in [*LINES, ""]),
        {"words": ("a",)},
        {"words": (), "tags": (), "heads": (), "relations": ()},
        {"tags": ("X", "NN")},
        {"relations": ("dep", "")},
        {"relations": ("dep", "a\tb")},
        *({"heads": heads} for heads in [(2, 1), (0, 0), (2, 3), (1, 0), (-1, 0), (2,)]),
        {"id": "a\nb"},
        {"id": " a"},
        {"lines": ("1\ta",)},
        {"lines": ("# text",)},
        {"lines": ("",)},
    ],
    SentencePair: [
        *({"first": text} for text in LINES),
        *({"second": text} for text in LINES),
        {"label": "maybe"},
        {"label": ""},
    ],
    TextLine: [{"text": text} for text in [*LINES, "", " "]],
    Translation: [
        *({"first": text} for text in [*LINES, "", " "]),
        *({"second": text} for text in [*LINES, "", " "]),
        {"id": ""},
        {"id": "GEN 1:2"},
        {"links": ((0, 2),)},
        {"links": ((-1, 0),)},
        {"links": (), "possible": ((9, 9),)},
        {"links": None, "possible": ((0, 0),)},
    ],
    ComparableText: [
        *({"first": text} for text in [*LINES, " "]),
        *({"second": text} for text in [*LINES, " "]),
        {"first": "", "second": ""},
        {"id": ""},
        {"id": "c"},
    ],
    Question: [
        {"passage": "é \ud800 one two"},
        {"question": "\udc00"},
        {"id": "\udc00"},
        {"id": "q2"},
        {"answers": ()},
        {"answers": ((3, "one"),)},
        {"answers": ((-3, "two"),)},
        {"answers": ((2, ""),)},
        {"answers": ((99, "one"),)},
    ],
}
"""Changes to a sample's first example that no file of its kind can hold."""

CHANGES = [(name, change) for name, one in HELD.items() for change in SPOILT[type(KINDS[one.kind][1][0])]]


@pytest.mark.parametrize(("name", "change"), CHANGES, ids=lambda value: ascii(value)[:60])
def test_what_a_format_cannot_hold_is_not_written(name, change):
    one = HELD[name]
    first, *others = KINDS[one.kind][1]
    with pytest.raises(DataError) as caught:
        one.write([replace(first, **change), *others])
    assert "cannot write" in str(caught.value)
    assert str(caught.value).encode()


@EVERY
def test_another_kind_of_example_is_not_written(name):
    one = HELD[name]
    samples = [sample for _, (sample, *_) in KINDS.values()]
    for other in each(sample for sample in samples if type(sample) is not type(KINDS[one.kind][1][0])):
        with pytest.raises(DataError, match="write"):
            one.write([other])


MUCH = 60_000

FLOODS = [
    "a",
    " ",
    "\t",
    "\n",
    "\r",
    "[",
    '{"a":',
    '"',
    "#",
    "|||",
    " ||| ",
    "0-0 ",
    "1-2",
    "9",
    "\u0301",
]


@pytest.mark.slow
@EVERY
def test_reading_takes_linear_time(name):
    """A step that is quadratic in the length of a line would take minutes here."""
    one = replace(HELD[name], splits=HELD[name].splits[:1])
    sound = one.write(KINDS[one.kind][1])
    head = sound.partition("\n")[0] + "\n"
    started = time.process_time()
    for flood in [*(short * MUCH for short in FLOODS), "# sent_id =" + " " * MUCH]:
        for text in (flood, head + flood, sound + flood):
            try:
                one.read_back(text)
            except DataError:
                continue
    assert time.process_time() - started < 30


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rawtext", "wikiann", "udpos", "xnli", "cad-nli", "bible", "bitext", "ud"])
def test_reading_takes_no_more_memory_for_more_lines(name):
    """Examples are given one by one; what may grow are the ids where each must be its own."""
    one = HELD[name]
    examples = list(_many(KINDS[one.kind][1]))
    small, large = (_peak(one, examples[: len(examples) // part]) for part in (8, 1))
    assert large < small + 150 * len(examples) * (name in ("bible", "bitext", "ud")) + 50_000


def _many(sample: list[Example]) -> list[Example]:
    return [
        replace(one, id=f"GEN {number}:{one.id}") for number in range(4000 // len(sample)) for one in sample
    ]


def _peak(one, examples) -> int:
    with TemporaryDirectory() as place:
        path = Path(place, one.path)
        path.parent.mkdir(parents=True)
        path.write_text(one.write(examples), "utf-8")
        tracemalloc.start()
        try:
            assert sum(1 for _ in one.corpus.read(DiskFolder(Path(place)), one.language, one.splits[0]))
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
