"""New encoders of every family, and the language codes of translation models."""

from functools import cache

import pytest
import torch

from isogloss.core.errors import ConfigError, ModelError
from isogloss.core.languages import NAMES, canonical_language
from isogloss.core.run_parts import Architecture
from isogloss.encoders import FAMILIES
from isogloss.encoders.families import family_of
from isogloss.encoders.loading import load_masked_lm
from isogloss.encoders.saving import save_model
from isogloss.features.pretraining.new_tokenizers import train_tokenizer
from isogloss.features.pretraining.starts import new_encoder, set_dropout
from isogloss.features.translation.seq2seq_models import FLORES, MBART, DirectionCodes, direction_between
from isogloss.tasks import TASKS
from made_up import TEXT
from networks import same

SMALL = {
    "layers": 2,
    "dim": 32,
    "heads": 4,
    "feed_forward": 48,
    "vocabulary": 400,
    "positions": 40,
    "dropout": 0.1,
}


NEW = [name for name, family in FAMILIES.items() if "new-encoders" not in family.lacks]


@pytest.fixture(params=NEW)
def architecture(request):
    return Architecture(family=request.param, **SMALL)


@pytest.fixture
def tokenizer(architecture):
    return train_small_tokenizer(architecture.family)


@cache
def train_small_tokenizer(family):
    return train_tokenizer([TEXT] * 4, family=family, size=SMALL["vocabulary"])


def test_the_encoder_has_the_shape_asked_for(architecture, tokenizer):
    model = new_encoder(architecture, tokenizer, seed=0)
    assert model.config.model_type == architecture.family
    embeddings = model.get_input_embeddings().weight
    assert tuple(embeddings.shape) == (len(tokenizer), 8 if architecture.family == "rembert" else 32)
    sites = family_of(model).sites(model)
    assert len(sites) == 2
    feed_forward = model.get_submodule(sites[0].feed_forward_in)
    gated_value = 2 if architecture.family == "modernbert" else 1
    assert (feed_forward.in_features, feed_forward.out_features) == (32, 48 * gated_value)
    assert model.config.num_attention_heads == 4


def test_the_same_seed_gives_the_same_weights_and_another_seed_others(architecture, tokenizer):
    rng_state_before = torch.get_rng_state()
    item, again, other_new_encoder = (new_encoder(architecture, tokenizer, seed=seed) for seed in (0, 0, 1))
    assert same(item, again)
    assert not same(item, other_new_encoder)
    assert torch.equal(torch.get_rng_state(), rng_state_before)


def test_it_takes_texts_as_long_as_its_positions(architecture, tokenizer):
    model = new_encoder(architecture, tokenizer, seed=0)
    longest = family_of(model).longest_text(model.config)
    assert longest == architecture.positions
    with torch.inference_mode():
        assert model(torch.full((1, longest), 7)).logits.isfinite().all()
        if architecture.family not in {"deberta-v2", "eurobert", "modernbert"}:
            with pytest.raises((IndexError, RuntimeError)):
                model(torch.full((1, longest + 1), 7))


def test_special_subwords_are_the_tokenizers(architecture, tokenizer):
    config = new_encoder(architecture, tokenizer, seed=0).config
    assert config.pad_token_id == tokenizer.pad_token_id
    assert (config.bos_token_id, config.eos_token_id) == (tokenizer.cls_token_id, tokenizer.sep_token_id)


def test_pretraining_drops_nothing(architecture, tokenizer):
    model = new_encoder(architecture, tokenizer, seed=0).train()
    ids = torch.arange(5, 15).unsqueeze(0)
    assert torch.equal(model(ids).logits, model(ids).logits)


def test_dropout_is_said_for_the_next_time_it_is_loaded(architecture, tokenizer, tmp_path):
    model = new_encoder(architecture, tokenizer, seed=0)
    set_dropout(model.config, 0.25)
    save_model(model, tokenizer, tmp_path / "encoder")
    loaded_model = load_masked_lm(tmp_path / "encoder")
    parts = list(loaded_model.base_model.modules())
    rates = {part.p for part in parts if isinstance(part, torch.nn.Dropout)}
    kept_attention_dropouts = {
        part.attention_dropout for part in parts if isinstance(getattr(part, "attention_dropout", 0), float)
    }
    assert rates | kept_attention_dropouts == {0.25}
    ids = torch.arange(5, 15).unsqueeze(0)
    assert not torch.equal(loaded_model.train()(ids).logits, loaded_model(ids).logits)


@pytest.mark.each_value
@pytest.mark.parametrize("task", ["nli", "qa", "upos"])
def test_heads_drop_as_the_encoder_does(architecture, tokenizer, task, tmp_path):
    model = new_encoder(architecture, tokenizer, seed=0)
    set_dropout(model.config, 0.25)
    save_model(model, tokenizer, tmp_path / "encoder")
    parts = TASKS[task].head(tmp_path / "encoder", seed=0).modules()
    rates = {part.p for part in parts if isinstance(part, torch.nn.Dropout)}
    assert rates <= {0.25, 0.0}  # DeBERTa's pooler drops nothing.


def test_it_is_an_ordinary_hugging_face_folder(architecture, tokenizer, tmp_path):
    model = new_encoder(architecture, tokenizer, seed=0).eval()
    save_model(model, tokenizer, tmp_path / "encoder")
    loaded_model = load_masked_lm(tmp_path / "encoder", attention="eager")
    ids = torch.tensor([tokenizer(TEXT)["input_ids"][:40]])
    with torch.inference_mode():
        assert torch.equal(model(ids).logits, loaded_model(ids).logits)


def test_heads_must_divide_the_width(tokenizer, architecture):
    wrong = Architecture(**{**vars(architecture), "heads": 5})
    with pytest.raises(ConfigError, match=r"architecture: (?=.*5)(?=.*32)"):
        new_encoder(wrong, tokenizer, seed=0)


def test_heads_of_modernbert_must_be_even():
    odd = Architecture(**{**SMALL, "family": "modernbert", "dim": 36})
    with pytest.raises(ConfigError, match=r"are 9 wide.* modernbert .* dim / 64"):
        new_encoder(odd, train_small_tokenizer("modernbert"), seed=0)


def test_an_unknown_family_is_an_error_with_the_nearest():
    with pytest.raises(ConfigError, match=r"encoder family 'brt'.*'bert'"):
        new_encoder(Architecture(**{**SMALL, "family": "brt"}), train_small_tokenizer("bert"), seed=0)


# Codes of languages


def find_direction(vocabulary: list[str], source: str = "en", target: str = "sw") -> DirectionCodes:
    return direction_between({piece: n for n, piece in enumerate(vocabulary)}, source, target, "a model")


@pytest.mark.parametrize(
    ("vocabulary", "direction"),
    [
        (["x", "eng_Latn", "swh_Latn"], DirectionCodes((1,), 2)),
        (["x", "__en__", "__sw__"], DirectionCodes((1,), 2)),
        (["x", "en_XX", "sw_KE"], DirectionCodes((1,), 2)),
        (["x", ">>sw<<", ">>fr<<"], DirectionCodes((1,))),
        (["x", ">>swh<<"], DirectionCodes((1,))),
        (["x", "y"], DirectionCodes()),
    ],
)
def test_each_kind_of_vocabulary_is_told_in_its_own_way(vocabulary, direction) -> None:
    assert find_direction(vocabulary) == direction


def test_a_language_can_be_written_as_the_model_writes_it() -> None:
    assert find_direction(["eng_Latn", "ace_Arab"], "en", "ace_Arab") == DirectionCodes((0,), 1)


def test_every_language_of_nllb_is_found_however_it_is_written() -> None:
    from transformers.models.nllb.tokenization_nllb import FAIRSEQ_LANGUAGE_CODES as CODES

    for index, language in enumerate(CODES):
        assert find_direction(CODES, "en", canonical_language(language)).first == index, language
    assert all(find_direction(CODES, "en", language_code).first is not None for language_code in NAMES)
    for plain_name, language in (
        FLORES.items() | {"zh": "zho_Hans", "ko_KR": "kor_Hang", "yue": "yue_Hant"}.items()
    ):
        assert find_direction(CODES, "en", plain_name).first == CODES.index(language), plain_name
    for plain_name, language in {
        "rw": "kin_Latn",
        "tn": "tsn_Latn",
        "zh_TW": "zho_Hant",
        "pt_BR": "por_Latn",
    }.items():
        assert find_direction(CODES, "en", plain_name).first == CODES.index(language)
    with pytest.raises(ModelError, match="no language 'uz_Cyrl'"):
        find_direction(CODES, "en", "uz_Cyrl")


@pytest.mark.parametrize(
    ("vocabulary", "language", "name"),
    [
        (["__en__", "__zh__"], "zh_Hans", "__zh__"),
        (["__en__", "__sr__"], "sr_Cyrl", "__sr__"),
        (["en_XX", "zh_CN"], "zh_Hans", "zh_CN"),
        ([">>cmn<<", ">>cmn_Hant<<"], "zh_Hant", ">>cmn_Hant<<"),
        ([">>cmn_Hant<<", ">>cmn<<"], "zh_Hans", ">>cmn<<"),
        ([">>kin<<"], "rw", ">>kin<<"),
        ([">>srp_Latn<<", ">>srp_Cyrl<<"], "sr", ">>srp_Cyrl<<"),
    ],
)
def test_a_script_is_looked_for_where_a_vocabulary_has_it(vocabulary, language, name) -> None:
    direction = find_direction(vocabulary, "en" if "en" in vocabulary[0] else "", language)
    assert (direction.prefix[0] if direction.first is None else direction.first) == vocabulary.index(name)


def test_another_script_is_another_language() -> None:
    for vocabulary in (["__en__", "__zh__"], ["en_XX", "zh_CN"]):
        with pytest.raises(ModelError, match="no language 'zh_Hant'"):
            find_direction(vocabulary, "en", "zh_Hant")


@pytest.mark.parametrize("vocabulary", [["eng_Latn", "fra_Latn"], ["__en__", "__fr__"], [">>fr<<"]])
def test_a_language_the_model_does_not_know_is_refused(vocabulary) -> None:
    with pytest.raises(ModelError, match=r"^a model: .* 'sw' \(tried "):
        find_direction(vocabulary)


def test_the_codes_are_those_of_transformers() -> None:
    from transformers.models.mbart50.tokenization_mbart50 import FAIRSEQ_LANGUAGE_CODES as MBART_CODES
    from transformers.models.nllb.tokenization_nllb import FAIRSEQ_LANGUAGE_CODES

    assert set(FLORES.values()) <= set(FAIRSEQ_LANGUAGE_CODES)
    assert {f"{language}_{place}" for language, place in MBART.items()} <= set(MBART_CODES)
