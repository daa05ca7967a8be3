"""The named treebank is read, else the default one, else the only one."""

import pytest

from isogloss.core.errors import ConfigError, DataError
from isogloss.core.identity import identity
from isogloss.data.corpora.texts_and_trees import Ud, find_treebank_names
from isogloss.data.examples import ParsedSentence
from says import says

SENTENCE = "1\tw\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n"


def words(corpus, folder, language, split):
    return [sentence.id for sentence in corpus.read(folder, language, split)]


def test_named_treebank_is_read_whatever_its_case(native_files):
    for name in ("Sequoia", "sequoia"):
        assert words(Ud(treebanks=(("fr", name),)), native_files, "fr", "train") == ["sequoia-1"]


def test_split_that_the_default_lacks_is_never_taken_from_another_treebank(native_files):
    with pytest.raises(DataError) as error:
        Ud().read(native_files, "fr", "train")
    assert "treebank 'GSD'" in str(error.value)
    assert "That treebank has: dev." in str(error.value)
    assert "Treebanks of 'fr' with train: sequoia." in str(error.value)
    assert 'treebanks = { fr = "sequoia" }' in str(error.value)


def test_legacy_treebank_is_read_only_by_its_folder(native_files):
    with says(DataError, "'ar'"):
        Ud().read(native_files, "ar", "dev")


@pytest.mark.parametrize("language", ["te", "tel"])
def test_language_without_default_takes_its_only_treebank(put_files, language):
    folder = put_files({f"ud/UD_Telugu-MTG/{language}_mtg-ud-test.conllu": SENTENCE})
    assert words(Ud(), folder, "te", "test") == ["1"]


def test_language_without_default_and_with_two_treebanks_must_be_told_which(put_files):
    folder = put_files({
        "ud/UD_Finnish-TDT/fi_tdt-ud-test.conllu": SENTENCE,
        "ud-pud/UD_Finnish-PUD/fi_pud-ud-test.conllu": SENTENCE,
    })  # fmt: skip
    with says(DataError, "'fi'"):
        Ud().read(folder, "fi", "test")


def test_official_release_and_a_folder_of_treebanks_are_found(put_files):
    folder = put_files({"ud-treebanks-v2.15/UD_English-EWT/en_ewt-ud-dev.conllu": SENTENCE})
    assert words(Ud(), folder, "en", "dev") == ["1"]
    folder = put_files({"UD_German-GSD/de_gsd-ud-dev.conllu": SENTENCE})
    assert words(Ud(), folder, "de", "dev") == ["1"]


def test_treebanks_there_lists_those_with_the_split(native_files):
    assert find_treebank_names(native_files, "fr", "train") == ["sequoia"]
    assert find_treebank_names(native_files, "fr", "dev") == ["gsd"]


@pytest.mark.parametrize("name", ["", "/etc", "a/../b", "a*"])
def test_treebank_name_cannot_leave_the_data_folder(name):
    with pytest.raises(ConfigError, match=r"^corpus ud, treebanks: .* 'en'"):
        Ud(treebanks=(("en", name),))


def test_treebanks_are_part_of_the_identity():
    assert identity(Ud()) != identity(Ud(treebanks=(("fr", "Sequoia"),)))


def test_treebank_that_is_a_folder_is_written_where_it_is_read(read_back):
    corpus = Ud(treebanks=(("vi", "ud-legacy/v2.5_UD_Vietnamese-VTB"),))
    assert corpus.path("vi", "dev") == "ud-legacy/v2.5_UD_Vietnamese-VTB/vi-ud-dev.conllu"
    parsed_sentence = ParsedSentence(id="1", words=("a",), tags=("X",), heads=(0,), relations=("root",))
    (back,) = read_back(corpus, [parsed_sentence], "vi", "dev")
    assert back.words == parsed_sentence.words
