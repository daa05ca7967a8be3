"""Private codes that UD treebanks use for languages other than the built-in ones."""

import pytest

from isogloss.core.errors import DataError
from isogloss.data.sources import Sources
from isogloss.features import built_in_languages as languages
from says import says

SENTENCE = (
    "1\tEv\tev\tNOUN\t_\t_\t0\troot\t_\t_\n"
    "2-3\tam\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "2\tan\tan\tADP\t_\t_\t1\tcase\t_\t_\n"
    "3\tdem\tder\tDET\t_\t_\t1\tdet\t_\t_\n\n"
)


@pytest.fixture
def folder(put_files, tmp_path):
    """Treebanks in UD's layout, and text, in a folder."""
    put_files(
        {
            **{
                f"UD_Turkish_German-SAGT/qtd_sagt-ud-{language}.conllu": SENTENCE
                for language in ("dev", "test")
            },
            "UD_English-EWT/en_ewt-ud-train.conllu": SENTENCE,
        }
    )
    return str(tmp_path)


def test_every_built_in_code_is_a_built_in_language_and_no_other():
    from isogloss.core.languages import is_built_in

    codes = {f"q{a}{b}" for a in "abcdefghijklmnopqrst" for b in "abcdefghijklmnopqrstuvwxyz"}
    assert {language for language in codes if is_built_in(language)} == set(languages.LANGUAGES)


@pytest.mark.parametrize("language", ["qtd", "qfn", "qhe", "qpm", "qte", "qti", "qaj", "qtz"])
def test_a_treebank_under_a_private_code_is_read_from_the_folder(put_files, tmp_path, language):
    put_files({f"ud/UD_Two_Languages-SAGT/{language}_sagt-ud-test.conllu": SENTENCE})
    (sentence,) = Sources(str(tmp_path)).examples("ud", language, "test")
    assert sentence.words == ("Ev", "an", "dem")


def test_without_it_the_error_is_about_the_folder(folder):
    with says(DataError, "'ud'", "'sagt'", "'qtd'") as error:
        Sources(folder).examples("ud", "qtd", "train")
    assert "built-in" not in str(error.value)


def test_without_a_folder_the_error_asks_for_one():
    with says(DataError, "--data"):
        Sources().examples("ud", "qtd", "test")


def test_it_is_transferred_to_from_a_language_of_the_folder(folder, tmp_path):
    from isogloss.planning.plan import plan_recipe
    from isogloss.runs.measure import Measure

    (tmp_path / "r.toml").write_text(
        'title = "Mixed"\nencoder = "shipped"\n'
        '[grid]\ncorpus = "ud"\ntask = "upos"\nsource = "en"\ntargets = ["qtd"]\nseeds = [0]\n'
        'method = [{ name = "source-only" }]\n[[measure]]\nname = "scores"\nsplit = "test"\n'
        'languages = ["qtd"]\n'
    )
    (tmp_path / "UD_English-EWT/en_ewt-ud-dev.conllu").write_text(SENTENCE)
    runs = plan_recipe(str(tmp_path / "r.toml"), out=tmp_path / "runs", data=folder).runs
    assert [run.languages for run in runs if isinstance(run, Measure)] == [("qtd",)]


def test_a_treebank_under_the_code_of_a_built_in_language_goes_before_it_and_is_reported(put_files, tmp_path):
    put_files({"UD_Maghrebi_Arabic_French-Arabizi/qaf_arabizi-ud-train.conllu": SENTENCE})
    sources = Sources(str(tmp_path))
    (sentence,) = sources.examples("ud", "qaf", "train")
    assert sentence.words == ("Ev", "an", "dem")
    assert sources.fingerprint("ud", "qaf", "train") != Sources().fingerprint("ud", "qaf", "train")
    assert sources.remarks("ud", "qaf", "train") == (
        "ud qaf: the treebank in the data folder was read, not the built-in language.",
    )
    assert sources.examples("ud", "qab", "dev", examples=1) == Sources().examples(
        "ud", "qab", "dev", examples=1
    )
    assert sources.remarks("ud", "qab", "dev") == ()


def test_a_folder_with_exported_built_in_languages_is_no_second_one(put_files, tmp_path):
    put_files({"ud/UD_qaf-BuiltIn/qaf_builtin-ud-train.conllu": SENTENCE})
    fingerprint = Sources(str(tmp_path)).fingerprint("ud", "qaf", "train")
    assert fingerprint == Sources().fingerprint("ud", "qaf", "train")
    assert fingerprint.startswith("built-in-")
