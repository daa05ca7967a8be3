"""How models are told languages: every kind of code, and what is said when there is none."""

import pytest

from isogloss.core.errors import ModelError
from isogloss.core.languages import NAMES
from isogloss.encoders.seq2seq import (
    FLORES,
    MBART,
    Direction,
    direction_between,
)


def between(vocabulary: list[str], source: str = "en", target: str = "sw") -> Direction:
    return direction_between({piece: n for n, piece in enumerate(vocabulary)}, source, target, "a model")


@pytest.mark.parametrize(
    ("vocabulary", "direction"),
    [
        (["x", "eng_Latn", "swh_Latn"], Direction((1,), 2)),
        (["x", "__en__", "__sw__"], Direction((1,), 2)),
        (["x", "en_XX", "sw_KE"], Direction((1,), 2)),
        (["x", ">>sw<<", ">>fr<<"], Direction((1,))),
        (["x", ">>swh<<"], Direction((1,))),
        (["x", "y"], Direction()),
    ],
)
def test_each_kind_of_vocabulary_is_told_in_its_own_way(vocabulary, direction) -> None:
    assert between(vocabulary) == direction


def test_a_language_can_be_written_as_the_model_writes_it() -> None:
    assert between(["eng_Latn", "ace_Arab"], "en", "ace_Arab") == Direction((0,), 1)


@pytest.mark.parametrize("vocabulary", [["eng_Latn", "fra_Latn"], ["__en__", "__fr__"], [">>fr<<"]])
def test_a_language_the_model_does_not_know_is_refused(vocabulary) -> None:
    with pytest.raises(ModelError, match=r"a model: this model knows no language 'sw' \(looked for"):
        between(vocabulary)


def test_every_language_with_a_name_here_has_nllbs_code() -> None:
    assert NAMES.keys() <= FLORES.keys()


def test_the_codes_are_those_of_transformers() -> None:
    from transformers.models.mbart50.tokenization_mbart50 import FAIRSEQ_LANGUAGE_CODES as MBART_CODES
    from transformers.models.nllb.tokenization_nllb import FAIRSEQ_LANGUAGE_CODES

    assert set(FLORES.values()) <= set(FAIRSEQ_LANGUAGE_CODES)
    assert {f"{language}_{place}" for language, place in MBART.items()} <= set(MBART_CODES)
