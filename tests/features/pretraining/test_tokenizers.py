import hashlib
import os
import random
import shutil
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoConfig

from forked import Forked
from isogloss.core.errors import ConfigError, StorageError
from isogloss.encoders.learned_subwords import write_tokenizer
from isogloss.encoders.loading import load_model
from isogloss.encoders.saving import save_model
from isogloss.encoders.subwords import split_words
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.pretraining.new_tokenizers import read_tokenizer, train_tokenizer
from made_up import TEXT
from networks import refusal

FAMILIES = ["bert", "xlm-roberta", "deberta-v2", "modernbert", "roberta"]
"""Each kind of vocabulary. Distilbert has bert's, camembert xlm-roberta's."""

BYTES = {"modernbert", "roberta"}

SIZE = 500
PROBES = [
    TEXT,
    " two  spaces\tand tabs ",
    "Ünïcödé ﬁ ½ é",
    "日本 語",
    "Don't, stop!",
    "",
    "[MASK] </s>",
    "x" * 120,
]


def lines_of(seed=0, count=300):
    rng = random.Random(seed)
    syllables = [a + b for a in "bdfgklmnprstvzäß" for b in "aeiouй"]
    words = ["".join(rng.choices(syllables, k=rng.randint(1, 4))) for _ in range(300)]
    return [" ".join(rng.choices(words, k=9)).capitalize() + rng.choice(".!?…") for _ in range(count)]


@pytest.fixture(scope="module", params=FAMILIES)
def family(request):
    return request.param


@pytest.fixture(scope="module")
def trained_tokenizer(family):
    return train_tokenizer(lines_of(), family=family, size=SIZE)


def test_the_same_lines_give_the_same_vocabulary(family, trained_tokenizer):
    again = train_tokenizer(iter(lines_of()), family=family, size=SIZE)
    assert again.backend_tokenizer.to_str() == trained_tokenizer.backend_tokenizer.to_str()


PROGRAM = """
from isogloss.features.pretraining.new_tokenizers import train_tokenizer
from test_tokenizers import digests
print(*digests())
"""


def digests():
    texts = [
        train_tokenizer(lines_of(), family=item, size=SIZE).backend_tokenizer.to_str()
        for item in FAMILIES[:4]
    ]
    return [hashlib.sha256(text.encode()).hexdigest() for text in texts]


@pytest.mark.nightly
@pytest.mark.slow
def test_the_same_lines_give_the_same_vocabulary_in_every_process():
    place = os.environ | {"PYTHONPATH": ":".join(sys.path), "RAYON_NUM_THREADS": "3"}
    other_item = Forked([sys.executable, "-c", PROGRAM], env=place, stdout=subprocess.PIPE)
    assert other_item.communicate()[0].split() == digests()


def test_the_vocabulary_has_the_size_asked_for_special_subwords_first_and_covers_its_text(
    family, trained_tokenizer
):
    assert len(trained_tokenizer) == SIZE
    assert sorted(trained_tokenizer.get_vocab().values()) == list(range(SIZE))
    bert = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    roberta = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    assert trained_tokenizer.convert_ids_to_tokens(range(5)) == (roberta if "roberta" in family else bert)
    assert sorted(trained_tokenizer.all_special_ids) == list(range(5))
    assert not any(
        trained_tokenizer.unk_token_id in trained_tokenizer(line)["input_ids"] for line in lines_of()
    )
    assert train_tokenizer(lines_of(1), family=family, size=SIZE).get_vocab() != trained_tokenizer.get_vocab()


def test_every_letter_may_also_continue_a_word():
    """So words with different capitals from the text are still known."""
    tokenizer = train_tokenizer(["Ab", "Ab", "cd", "cd", "文 a!"], family="bert", size=60)
    vocabulary = tokenizer.get_vocab()
    assert {"##A", "##b", "##c", "##d"} < vocabulary.keys()
    assert not {"##文", "##!", "## "} & vocabulary.keys()
    assert tokenizer.unk_token_id not in tokenizer("cAbd")["input_ids"]


def test_frequent_words_become_one_subword(trained_tokenizer):
    from collections import Counter

    counts = Counter(word for line in lines_of() for word in line.lower().rstrip(".!?…").split())
    common = [word for word, _ in counts.most_common(10)]
    rare = [word for word in counts if counts[word] == min(counts.values())]

    def length(words):
        return sum(len(trained_tokenizer.tokenize(word)) for word in words) / len(words)

    assert length(common) < length(rare)
    letters = sum(len(line.replace(" ", "")) for line in lines_of(2))
    assert sum(len(trained_tokenizer.tokenize(line)) for line in lines_of(2)) < 0.75 * letters


def test_a_saved_tokenizer_is_the_same_once_loaded(family, trained_tokenizer, tmp_path):
    """Fine-tuning sees the same subwords as pretraining."""
    trained_tokenizer.save_pretrained(tmp_path)
    AutoConfig.for_model(family).save_pretrained(tmp_path)
    loaded_tokenizer = load_tokenizer(tmp_path)
    assert type(loaded_tokenizer) is type(trained_tokenizer)
    assert loaded_tokenizer.backend_tokenizer.to_str() == trained_tokenizer.backend_tokenizer.to_str()
    for text in [*lines_of()[:40], *PROBES]:
        assert loaded_tokenizer(text)["input_ids"] == trained_tokenizer(text)["input_ids"]
        assert loaded_tokenizer(text, "zwei")["input_ids"] == trained_tokenizer(text, "zwei")["input_ids"]


def test_a_kept_tokenizer_is_the_same_once_read(family, trained_tokenizer, tmp_path):
    write_tokenizer(trained_tokenizer, tmp_path / "x" / "tokenizer.json")
    again = read_tokenizer(tmp_path / "x" / "tokenizer.json", family=family)
    assert again.backend_tokenizer.to_str() == trained_tokenizer.backend_tokenizer.to_str()
    assert [again(text).data for text in PROBES] == [trained_tokenizer(text).data for text in PROBES]


@pytest.mark.parametrize("text", ["", "{}", '{"model": {"vocab": 3}}', '{"model": {}}', "[]"])
def test_a_damaged_one_is_an_error_that_says_what_to_do(family, tmp_path, text):
    (tmp_path / "tokenizer.json").write_text(text)
    with pytest.raises(StorageError, match=r"tokenizer\.json:"):
        read_tokenizer(tmp_path / "tokenizer.json", family=family)


@pytest.mark.slow
@settings(max_examples=25)
@given(st.lists(st.text(max_size=20), max_size=12), st.integers(1, 80), st.sampled_from(FAMILIES))
def test_a_vocabulary_is_never_larger_than_asked_for(lines, size, family):
    try:
        tokenizer = train_tokenizer(lines, family=family, size=size)
    except ConfigError as error:
        assert f"{size} subwords" in str(error)
        return
    assert len(tokenizer) <= size
    ids = [index for line in lines for index in tokenizer(line, add_special_tokens=False)["input_ids"]]
    assert all(0 <= index < len(tokenizer) for index in ids)


def test_an_unknown_family_is_an_error_with_the_nearest():
    with pytest.raises(ConfigError, match=r"encoder family 'xlm-r'.*bert, camembert, deberta-v2"):
        train_tokenizer(["a"], family="xlm-r", size=10)


@pytest.mark.parametrize("family", ["distilbert", "camembert"])
def test_a_family_that_shares_a_kind_of_vocabulary_saves_and_loads(family, tmp_path):
    trained_model = train_tokenizer(lines_of(), family=family, size=SIZE)
    trained_model.save_pretrained(tmp_path)
    AutoConfig.for_model(family).save_pretrained(tmp_path)
    loaded_tokenizer = load_tokenizer(tmp_path)
    assert loaded_tokenizer.backend_tokenizer.to_str() == trained_model.backend_tokenizer.to_str()
    assert "token_type_ids" not in trained_model("a", "b") and "token_type_ids" not in loaded_tokenizer(
        "a", "b"
    )


SCRIPTS = ("Das ist über", "и всё это", "日本 語 です", "यह हिन्दी है", "هذا نص عربي", "ไทย ภาษา", "café naïve")


@pytest.mark.parametrize("family", ["modernbert", "roberta"])
def test_bytes_know_every_script(family):
    trained_model = train_tokenizer(lines_of(), family=family, size=SIZE)
    for text in [*SCRIPTS, "👍🏽 𐍈"]:
        ids = trained_model(text)["input_ids"]
        assert trained_model.unk_token_id not in ids
        assert trained_model.decode(ids, skip_special_tokens=True).strip() == text


@pytest.fixture(scope="module")
def trained_on_scripts(family):
    return train_tokenizer([*lines_of(), *SCRIPTS * 3], family=family, size=SIZE)


@pytest.mark.each_value
@pytest.mark.parametrize("text", SCRIPTS)
def test_words_are_split_as_in_running_text_in_every_script(trained_on_scripts, text):
    (split,) = split_words([text.split()], trained_on_scripts)
    assert list(split.subwords) == trained_on_scripts(text, add_special_tokens=False)["input_ids"]
    assert set(split.words) == set(range(len(text.split())))


# SentencePiece's table of characters

CHARACTERS = [TEXT, "ｔｈｅ ｃａｔ，", "½ the ﬁ ①", "e\u0301 cafe\u0301", "the　cat\u200b sat", "...  …"]


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
def spm_folder(deberta_v2_folder, pieces, tmp_path):
    """As mDeBERTa-v3 is on the hub: spm.model and no tokenizer.json."""
    folder = tmp_path / "mdeberta"
    shutil.copytree(deberta_v2_folder, folder)
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": false, "vocab_type": "spm"}')
    shutil.copy(pieces, folder)
    return folder


@pytest.mark.slow
def test_text_is_split_as_by_sentencepiece(spm_folder, pieces):
    from sentencepiece import SentencePieceProcessor

    tokenizer = load_tokenizer(spm_folder)
    reference = SentencePieceProcessor(str(pieces))
    for text in CHARACTERS:
        assert tokenizer(text, add_special_tokens=False)["input_ids"] == reference.encode(text), text
    assert tokenizer.convert_ids_to_tokens([0, 1, 2, 3]) == ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]


def test_it_stays_so_once_saved(spm_folder, tmp_path):
    tokenizer = load_tokenizer(spm_folder)
    save_model(load_model(spm_folder), tokenizer, tmp_path / "saved")
    again = load_tokenizer(tmp_path / "saved")
    assert (tmp_path / "saved" / "tokenizer.json").is_file()
    assert again.backend_tokenizer.to_str() == tokenizer.backend_tokenizer.to_str()


def test_tokenizers_without_such_a_table_stay_as_they_are(deberta_v2_folder, xlm_roberta_folder):
    for folder in (deberta_v2_folder, xlm_roberta_folder):
        assert "Precompiled" not in load_tokenizer(folder).backend_tokenizer.to_str()


def test_a_damaged_sentencepiece_model_is_named(spm_folder):
    (spm_folder / "spm.model").write_bytes(b"no model")
    assert str(spm_folder) in refusal(load_tokenizer, spm_folder)
