"""Laws that hold for every corpus: it is listed under its name, and finds what it writes."""

import importlib
from dataclasses import is_dataclass
from pathlib import Path

import pytest

import isogloss.data
from isogloss.data import CORPORA, catalogue
from isogloss.data.concatenated import Concatenated
from isogloss.data.files import DiskFolder


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
        and hasattr(thing, "write")
    }
    found.remove(Concatenated)  # made of those in the table, so no entry of it
    assert found == {type(corpus) for corpus in CORPORA.values()}


def test_every_corpus_is_called_by_its_name_and_says_what_it_is():
    for name, corpus in CORPORA.items():
        assert corpus.name == name
        assert corpus.tasks
        assert corpus.licence
        assert corpus.about


def test_every_corpus_that_is_made_is_listed():
    made = [one for one in vars(catalogue).values() if type(one) in {type(c) for c in CORPORA.values()}]
    assert {id(one) for one in made} <= {id(corpus) for corpus in CORPORA.values()}
    assert len(made) == 12


@pytest.mark.parametrize("corpus", CORPORA.values(), ids=str)
def test_written_file_is_looked_for_where_path_says(corpus, tmp_path):
    pair = "qaa-qab" if corpus.name == "bitext" else "qaa"
    split = "dev" if corpus.name == "mlqa" else "train"
    path = tmp_path / corpus.path(pair, split)
    path.parent.mkdir(parents=True)
    path.write_text("verse\tqaa\tqab\n1\ta\tb\n")
    assert [file.name for file in corpus.files(DiskFolder(tmp_path), pair, split)] == [str(path)]
