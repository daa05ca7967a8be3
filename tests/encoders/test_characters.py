"""A tokenizer that comes as SentencePiece's model splits text as SentencePiece does."""

import shutil

import pytest

from isogloss.core.errors import ModelError
from isogloss.encoders import load_tokenizer, save_model
from isogloss.encoders.loading import load_model
from made_up import TEXT

PROBES = [TEXT, "ｔｈｅ ｃａｔ，", "½ the ﬁ ①", "e\u0301 cafe\u0301", "the　cat\u200b sat", "...  …"]


@pytest.fixture(scope="module")
def pieces(tmp_path_factory):
    from sentencepiece import SentencePieceTrainer

    folder = tmp_path_factory.mktemp("pieces")
    (folder / "text.txt").write_text(f"{TEXT}, \n" * 30)
    names = {"unk_piece": "[UNK]", "pad_piece": "[PAD]", "bos_piece": "[CLS]", "eos_piece": "[SEP]"}
    numbers = {"pad_id": 0, "bos_id": 1, "eos_id": 2, "unk_id": 3}
    SentencePieceTrainer.train(
        input=str(folder / "text.txt"),
        model_prefix=str(folder / "spm"),
        vocab_size=44,
        minloglevel=2,
        **names,
        **numbers,
    )
    return folder / "spm.model"


@pytest.fixture
def folder(deberta_v2_folder, pieces, tmp_path):
    """As mDeBERTa-v3 is on the hub: spm.model and no tokenizer.json."""
    folder = tmp_path / "mdeberta"
    shutil.copytree(deberta_v2_folder, folder)
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": false, "vocab_type": "spm"}')
    shutil.copy(pieces, folder)
    return folder


def test_text_is_split_as_by_sentencepiece(folder, pieces):
    from sentencepiece import SentencePieceProcessor

    tokenizer, reference = load_tokenizer(folder), SentencePieceProcessor(str(pieces))
    for text in PROBES:
        assert tokenizer(text, add_special_tokens=False)["input_ids"] == reference.encode(text), text
    assert tokenizer.convert_ids_to_tokens([0, 1, 2, 3]) == ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]


def test_it_stays_so_once_saved(folder, tmp_path):
    tokenizer = load_tokenizer(folder)
    save_model(load_model(folder), tokenizer, tmp_path / "saved")
    again = load_tokenizer(tmp_path / "saved")
    assert (tmp_path / "saved" / "tokenizer.json").is_file()
    assert again.backend_tokenizer.to_str() == tokenizer.backend_tokenizer.to_str()


def test_tokenizers_without_such_a_table_stay_as_they_are(deberta_v2_folder, xlm_roberta_folder):
    for folder in (deberta_v2_folder, xlm_roberta_folder):
        assert "Precompiled" not in load_tokenizer(folder).backend_tokenizer.to_str()


def test_a_damaged_model_is_an_error_of_one_line(folder):
    (folder / "spm.model").write_bytes(b"no model")
    with pytest.raises(ModelError) as caught:
        load_tokenizer(folder)
    assert str(folder) in str(caught.value) and "\n" not in str(caught.value)
