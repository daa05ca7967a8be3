"""The built-in languages' translator as one of the table."""

from pathlib import Path

import pytest

from isogloss.core.errors import ConfigError
from isogloss.features.built_in_languages import BuiltInTranslator, translations
from isogloss.translators import TRANSLATORS
from isogloss.translators.setting import TranslateSetting


def setting(folder: Path, source: str = "qaa", target: str = "qab") -> TranslateSetting:
    return TranslateSetting(source=source, target=target, folder=folder)


@pytest.mark.parametrize("target", ["qab", "qaf"])
def test_it_translates_as_the_languages_do_with_words_and_links(target: str, tmp_path: Path) -> None:
    texts = [pair.first for pair, _ in zip(translations("qaa", target, "dev"), range(20), strict=False)]
    result = list(TRANSLATORS["built-in"](noise=0.1).translate(texts, setting(tmp_path, target=target)))
    assert [item.text for item in result] == [
        BuiltInTranslator("qaa", target, noise=0.1).translate(text) for text in texts
    ]
    for text, first_item in zip(texts, result, strict=True):
        assert "".join(first_item.words) == "".join(first_item.text.split())
        assert all(
            text[i:j].strip() and first_item.text[k:link].strip() for (i, j), (k, link) in first_item.links
        )


def test_real_languages_and_wrong_rates_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"'en'.*built-in"):
        list(TRANSLATORS["built-in"]().translate(["x"], setting(tmp_path, source="en")))
    with pytest.raises(ConfigError, match="noise is 2"):
        TRANSLATORS["built-in"](noise=2.0)


def test_an_empty_text_stays_empty(tmp_path: Path) -> None:
    (translation,) = TRANSLATORS["built-in"]().translate([" "], setting(tmp_path))
    assert translation.text == ""
