"""The tables of official files: well formed, for known corpora, of what was asked and nothing else."""

import re
from urllib.parse import urlsplit

import pytest

from isogloss.core.errors import ConfigError, DataError
from isogloss.core.languages import check_language
from isogloss.data import CORPORA
from isogloss.data.fetching import chosen, releases, with_tables

EVERY = [file for name in with_tables() for file in releases(name).files]


def test_every_corpus_has_a_table_and_every_table_a_corpus():
    assert set(with_tables()) == set(CORPORA)


@pytest.mark.parametrize("name", with_tables())
def test_a_table_has_files_or_says_what_to_do(name):
    table = releases(name)
    assert table.files or table.by_hand
    assert set(table.default) <= set(table.parts)
    for text in (table.by_hand, *table.parts_by_hand.values()):
        assert not text or text.endswith(".")


@pytest.mark.parametrize("file", EVERY, ids=lambda file: file.place)
def test_an_entry_is_well_formed(file):
    assert urlsplit(file.url).scheme == "https"
    assert re.fullmatch("[0-9a-f]{64}|", file.sha256)
    assert file.size is None or file.size > 0
    assert bool(file.to) != bool(file.take)
    assert all(check_language(language, file.place) for language in file.languages)
    assert not file.place.startswith("/")
    assert ".." not in file.place
    assert file.sha256 or "UniversalDependencies" in file.url


def test_no_two_files_have_one_place_or_one_address():
    assert len({file.place for file in EVERY}) == len({file.url for file in EVERY}) == len(EVERY)


def test_holes_of_a_place_are_holes_of_its_member():
    for file in EVERY:
        for member, place in file.take:
            assert set(re.findall(r"\{(\w+)\}", place)) <= set(re.findall(r"\{(\w+)\}", member))


def test_a_corpus_stands_for_its_default_parts_and_a_part_for_itself():
    assert {file.part for file in chosen(["xnli"])} == {"test", "train"}
    assert {file.part for file in chosen(["xnli:test", "squad:xquad"])} == {"test", "xquad"}
    assert chosen(["xnli", "xnli:test", "xnli"]) == chosen(["xnli"])


def test_languages_leave_other_files_out():
    assert {file.to for file in chosen(["squad"], ["ru"])} == {"xquad/xquad.ru.json"}
    assert {file.languages for file in chosen(["ud:pud"], ["ru", "en"])} == {("ru",), ("en",)}


@pytest.mark.parametrize(
    ("names", "languages", "said"),
    [
        (["xnly"], [], "no corpus 'xnly'. Did you mean 'xnli'? Known: bible"),
        (["xnli:tset"], [], "no part 'tset'. Did you mean 'test'? Known: test, train, translate-train."),
        (
            ["pawsx"],
            ["dee"],
            "--language dee: nothing of pawsx is in it. Did you mean 'de'? There is: de",
        ),
        (["xnli", "ud"], ["sw"], "--language sw: nothing of ud is in it."),
        (["xnli", "ud"], ["sw", "vi", "ta"], "--language ta: nothing of xnli, ud is in it."),
    ],
)
def test_what_is_not_there_is_said_with_the_nearest(names, languages, said):
    with pytest.raises(ConfigError) as caught:
        chosen(names, languages)
    assert said in str(caught.value)


@pytest.mark.parametrize("name", ["udpos", "bible", "rawtext", "bitext:tico19", "bitext:word-alignment"])
def test_what_cannot_be_fetched_says_what_to_do(name):
    with pytest.raises(DataError, match=f"{name}: it cannot be fetched. .*data folder"):
        chosen([name])
