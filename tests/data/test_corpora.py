"""Laws of every corpus: listed, found where written, read back as written, in linear time."""

import importlib
import time
import tracemalloc
from dataclasses import is_dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import isogloss.data
from drawn import HARD, KINDS, SAMPLES, STRATEGIES, find_kind, keep_parts
from each import each
from isogloss.core.errors import DataError
from isogloss.core.registry import feature_entries
from isogloss.data.corpora.catalogue import CORPORA
from isogloss.data.corpora.concatenated import Concatenated
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
from isogloss.features.described_corpora.corpus import DescribedCorpus


def test_every_corpus_of_the_package_is_listed():
    folder = Path(isogloss.data.__file__).parent / "corpora"
    names = {f"isogloss.data.corpora.{path.stem}" for path in folder.glob("[a-z]*.py")}
    names |= {place.partition(":")[0] for place in feature_entries("corpora").values()}
    modules = [importlib.import_module(name) for name in names]
    result = {
        thing
        for module in modules
        for thing in vars(module).values()
        if isinstance(thing, type)
        and is_dataclass(thing)
        and hasattr(thing, "read")
        and hasattr(thing, "write")
    }
    result -= {Concatenated, DescribedCorpus}  # combinations of entries, or described: not in the table
    assert result == {type(corpus) for corpus in CORPORA.values()}


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
    run = HELD[name]
    examples = data.draw(STRATEGIES[run.kind])
    assert keep_parts(run.read_back(run.write(examples))) == keep_parts(examples)


@EVERY
def test_fingerprints_follow_the_content(name, tmp_path):
    item = HELD[name]
    path = tmp_path / item.path
    path.parent.mkdir(parents=True)
    text = item.write(SAMPLES[item.kind])
    fingerprints = []
    for content in (text, text, f"{text}\n"):
        path.write_text(content, "utf-8")
        (file,) = item.corpus.files(DiskFolder(tmp_path), item.language, item.splits[0])
        fingerprints.append(file.fingerprint())
    assert fingerprints[0] == fingerprints[1] != fingerprints[2]


@EVERY
def test_a_file_without_examples_is_an_error_that_names_it(name, tmp_path):
    file = HELD[name]
    path = tmp_path / file.path
    path.parent.mkdir(parents=True)
    empty_value = {"bible": "verse\ten\n", **dict.fromkeys(("bitext", "bucc2018"), "id\ten\tsw\n")}.get(
        name, '{"data": []}'
    )
    path.write_text(
        empty_value if empty_value[0] != "{" or path.suffix == ".json" else "\n" * (name == "ud"), "utf-8"
    )
    with pytest.raises(DataError) as error:
        list(file.corpus.read(DiskFolder(tmp_path), file.language, file.splits[0]))
    assert f"{path}:1:" in str(error.value)


@EVERY
def test_a_split_that_is_not_there_is_said_with_what_the_folder_holds(name, tmp_path):
    row = HELD[name]
    (tmp_path / "something.txt").touch()
    with pytest.raises(DataError) as error:
        row.corpus.files(DiskFolder(tmp_path), row.language, row.splits[0])
    text = str(error.value)
    assert text.startswith(f"{tmp_path}: no ") and f"{row.language!r}" in text
    assert "The folder holds: something.txt" in text


@pytest.mark.parametrize(
    ("corpus", "language", "split", "message"),
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
def test_what_is_missing_is_said_with_what_there_is(native_files, corpus, language, split, message):
    with pytest.raises(DataError, match=message):
        list(Sources().corpus(corpus).read(native_files, language, split))


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
    run = HELD[name]
    examples = SAMPLES[run.kind]
    for text in [*(f"{sign}a" for sign in HARD), "b".join(HARD), *(f"a{sign}" for sign in HARD)]:
        changed_examples = [with_text(examples[0], text), *examples[1:]]
        if isinstance(changed_examples[0], Translation):
            changed_examples[0] = replace(changed_examples[0], links=None, possible=())
        assert keep_parts(run.read_back(run.write(changed_examples))) == keep_parts(changed_examples)


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

CHANGES = [(name, change) for name, run in HELD.items() for change in SPOILT[type(SAMPLES[run.kind][0])]]


@pytest.mark.parametrize(("name", "change"), CHANGES, ids=lambda value: ascii(value)[:60])
def test_what_a_format_cannot_hold_is_not_written(name, change):
    run = HELD[name]
    first_kind, *other_kinds = SAMPLES[run.kind]
    with pytest.raises(DataError) as error:
        run.write([replace(first_kind, **change), *other_kinds])
    assert "cannot write" in str(error.value)
    assert str(error.value).encode()


@EVERY
def test_another_kind_of_example_is_not_written(name):
    run = HELD[name]
    samples = [sample for _, (sample, *_) in KINDS.values()]
    for other_item in each(sample for sample in samples if type(sample) is not type(SAMPLES[run.kind][0])):
        with pytest.raises(DataError, match="write"):
            run.write([other_item])


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


@pytest.mark.nightly
@pytest.mark.slow
@EVERY
def test_reading_takes_linear_time(name):
    """A step that is quadratic in the length of a line would take minutes here."""
    run = replace(HELD[name], splits=HELD[name].splits[:1])
    sound = run.write(SAMPLES[run.kind])
    head = sound.partition("\n")[0] + "\n"
    start_time = time.process_time()
    for flood in [*(short_flood * MUCH for short_flood in FLOODS), "# sent_id =" + " " * MUCH]:
        for text in (flood, head + flood, sound + flood):
            try:
                run.read_back(text)
            except DataError:
                continue
    assert time.process_time() - start_time < 30


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("name", ["rawtext", "wikiann", "udpos", "xnli", "cad-nli", "bible", "bitext", "ud"])
def test_reading_takes_no_more_memory_for_more_lines(name):
    """Examples are given one by one. What may grow are the ids where each must be its own."""
    run = HELD[name]
    examples = list(_many(SAMPLES[run.kind]))
    small_traced_memory, large_traced_memory = (
        _peak(run, examples[: len(examples) // part]) for part in (8, 1)
    )
    assert (
        large_traced_memory
        < small_traced_memory + 150 * len(examples) * (name in ("bible", "bitext", "ud")) + 50_000
    )


def _many(sample: list[Example]) -> list[Example]:
    return [
        replace(example, id=f"GEN {index}:{example.id}")
        for index in range(4000 // len(sample))
        for example in sample
    ]


def _peak(run, examples) -> int:
    with TemporaryDirectory() as place:
        path = Path(place, run.path)
        path.parent.mkdir(parents=True)
        path.write_text(run.write(examples), "utf-8")
        tracemalloc.start()
        try:
            assert sum(1 for _ in run.corpus.read(DiskFolder(Path(place)), run.language, run.splits[0]))
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
