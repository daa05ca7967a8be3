"""Laws that hold for every corpus: it is listed, and no file makes it fail but with a DataError."""

import importlib
import shutil
from dataclasses import is_dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import isogloss.data
from isogloss.core.errors import DataError
from isogloss.data import CORPORA
from isogloss.data.bitext import Bitext
from isogloss.data.files import DiskFolder
from isogloss.data.joined import Joined
from isogloss.data.squad import Squad
from isogloss.data.ud import Ud

CASES = [
    ("ud/UD_English-EWT/en_ewt-ud-train.conllu", Ud(), "en", "train"),
    ("panx/train-en.tsv", CORPORA["wikiann"], "en", "train"),
    ("wikiann/sw/train", CORPORA["wikiann"], "sw", "train"),
    ("udpos/train-en.tsv", CORPORA["udpos"], "en", "train"),
    ("xnli/xnli.dev.tsv", CORPORA["xnli"], "sw", "dev"),
    ("xnli/dev-kn.tsv", CORPORA["xnli"], "kn", "dev"),
    ("xnli/multinli.train.en.tsv", CORPORA["xnli"], "en", "train"),
    ("pawsx/x-final/de/dev_2k.tsv", CORPORA["pawsx"], "de", "dev"),
    ("rawtext/sw/a.txt", CORPORA["rawtext"], "sw", "train"),
    ("bible/tiny.tsv", CORPORA["bible"], "sw", "train"),
    ("bible/tiny.tsv", Bitext(collection="bible"), "en-sw", "dev"),
    ("bitext/train.en-fr.fr", Bitext(), "en-fr", "train"),
    ("bitext/train.en-fr.align", Bitext(), "en-fr", "train"),
    ("word-alignment/enfr.src-tgt", Bitext(collection="word-alignment"), "en-fr", "test"),
    ("word-alignment/enfr.gold", Bitext(collection="word-alignment"), "fr-en", "test"),
    ("squad/train-v1.1.json", Squad(), "en", "train"),
    ("mrpc/msr_paraphrase_train.txt", CORPORA["mrpc"], "en", "train"),
    ("mrpc/test.tsv", CORPORA["mrpc"], "en", "test"),
    ("snli_1.0/snli_1.0_train.txt", CORPORA["snli"], "en", "train"),
    ("snli_1.0/snli_1.0_dev.jsonl", CORPORA["snli"], "en", "dev"),
    ("multinli_1.0/multinli_1.0_dev_matched.txt", CORPORA["multinli"], "en", "dev"),
    ("counterfactually-augmented-data/NLI/all_combined/train.tsv", CORPORA["cad-nli"], "en", "train"),
    ("sick/SICK_trial.txt", CORPORA["sick"], "en", "dev"),
    ("sick/SICK.txt", CORPORA["sick"], "en", "test"),
    ("xnli/translate-train/en-sw-translated.tsv", CORPORA["xnli"], "en-sw", "train"),
    ("xnli/translate-test/test-sw-en-translated.tsv", CORPORA["xnli"], "sw-en", "test"),
    ("pawsx/translate-train/en-de-translated.tsv", CORPORA["pawsx"], "en-de", "train"),
]


def test_every_corpus_of_the_package_is_listed():
    folder = Path(isogloss.data.__file__).parent
    modules = [importlib.import_module(f"isogloss.data.{path.stem}") for path in folder.glob("[a-z]*.py")]
    found = {
        thing
        for module in modules
        for thing in vars(module).values()
        if isinstance(thing, type)
        and is_dataclass(thing)
        and hasattr(thing, "read")
        and hasattr(thing, "licence")
    }
    found.remove(Joined)  # made of those in the table, so no entry of it
    assert found == {type(corpus) for corpus in CORPORA.values()}


def test_every_corpus_is_called_by_its_name_and_file():
    for name, corpus in CORPORA.items():
        assert corpus.name == name
        assert type(corpus).__module__ == f"isogloss.data.{name.replace('-', '_')}"
        assert corpus.tasks
        assert corpus.licence


@pytest.mark.parametrize("corpus", CORPORA.values(), ids=str)
def test_written_file_is_looked_for_where_path_says(corpus, tmp_path):
    pair = "qaa-qab" if corpus.name == "bitext" else "qaa"
    split = "dev" if corpus.name == "mlqa" else "train"
    path = tmp_path / corpus.path(pair, split)
    path.parent.mkdir(parents=True)
    path.write_text("verse\tqaa\tqab\n1\ta\tb\n")
    assert [file.name for file in corpus.files(DiskFolder(tmp_path), pair, split)] == [str(path)]


BITS = [
    *(bytes([byte]) for byte in b'\t\n\r\0-0"[{},#_ \xff\xc3'),
    "²".encode(),
    b"99999999999999999999",
    b"|||",
]

changes = st.lists(
    st.tuples(
        st.floats(0, 1),
        st.integers(0, 12),
        st.one_of(st.just(b""), st.sampled_from(BITS), st.binary(max_size=3)),
    ),
    min_size=1,
    max_size=4,
)


@pytest.fixture(scope="module")
def copy(tmp_path_factory, request):
    path = tmp_path_factory.mktemp("copy") / "data"
    shutil.copytree(Path(__file__).parent / "fixtures", path)
    return path


@pytest.mark.parametrize(("file", "corpus", "language", "split"), CASES, ids=[case[0] for case in CASES])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(changes=changes)
def test_changed_file_gives_examples_or_a_data_error_that_names_it(
    copy, file, corpus, language, split, changes
):
    whole = text = (copy / file).read_bytes()
    for where, length, instead in changes:
        start = int(where * len(text))
        text = text[:start] + instead + text[start + length :]
    (copy / file).write_bytes(text)
    try:
        examples = list(corpus.read(DiskFolder(copy), language, split))
        assert examples
        assert len({example.id for example in examples}) == len(examples)
    except DataError as error:
        assert str(copy) in str(error)
    finally:
        (copy / file).write_bytes(whole)
