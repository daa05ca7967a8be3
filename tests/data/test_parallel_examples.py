"""What is parallel is said by corpus, split and treebank, not by ids that happen to be equal."""

import pytest

from isogloss.core.errors import ConfigError
from isogloss.data.parallel_examples import check_parallel
from isogloss.data.sources import Sources


@pytest.mark.parametrize(
    ("corpus", "split", "languages", "treebanks"),
    [
        ("xnli", "dev", "en de", {}),
        ("pawsx", "test", "en de ja", {}),
        ("mlqa:en", "test", "en de", {}),
        ("squad", "test", "en ru", {}),
        ("ud", "test", "en de", {"en": "PUD", "de": "ud-pud/UD_German-PUD"}),
        ("wikiann", "dev", "qaa qab", {}),
        ("ud", "test", "qaa qad", {}),
    ],
)
def test_parallel_test_sets_are_known(corpus, split, languages, treebanks):
    check_parallel(corpus, split, languages.split(), treebanks)


@pytest.mark.parametrize(
    ("corpus", "split", "languages", "treebanks"),
    [
        ("xnli", "train", "en de", {}),
        ("squad", "dev", "en de", {}),
        ("wikiann", "test", "en de", {}),
        ("xnli", "train", "qaa qab", {}),
        ("ud", "test", "en de", {}),
        ("ud", "test", "ja de", {"ja": "GSD", "de": "GSD"}),
        ("ud", "test", "en de", {"en": "PUD"}),
    ],
)
def test_others_are_refused_with_what_is_there(corpus, split, languages, treebanks):
    with pytest.raises(ConfigError, match=rf"'{corpus}': its {split} split does not say the same .* xnli"):
        check_parallel(corpus, split, languages.split(), treebanks)


def test_built_in_and_other_languages_have_nothing_in_common():
    with pytest.raises(ConfigError, match="languages en qaa: some are built in and some are not"):
        check_parallel("xnli", "test", ["en", "qaa"], {})


@pytest.mark.parametrize("corpus", ["ud", "wikiann", "xnli", "pawsx", "squad"])
def test_built_in_test_sets_have_the_same_ids_in_every_language(corpus):
    first, second = (Sources().examples(corpus, code, "dev", examples=20) for code in ("qaa", "qae"))
    assert [one.id for one in first] == [one.id for one in second]
