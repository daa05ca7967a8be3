"""Masks on disk: read as written, refused with the reason, and put to use in an ordinary folder."""

from dataclasses import replace
from shutil import copytree

import pytest
import torch

from isogloss.core.errors import ConfigError, ModelError, StorageError
from isogloss.data.result_files import write_tensors
from isogloss.encoders import load_masked_lm, load_model, load_whole
from isogloss.encoders.gates import (
    GateKinds,
    Mask,
    about_masks,
    gate_groups,
    gated,
    mask_tensors,
    prune_encoder,
    read_mask,
    read_masks,
)
from isogloss.encoders.language_context import LanguageMaps, language_maps_of
from isogloss.encoders.language_files import write_language_maps
from isogloss.methods.plain import SourceOnly
from isogloss.nn.language_map import LanguageMap

KINDS = GateKinds(attention="head", feed_forward="neuron")
IDS = torch.tensor([[2, 7, 9, 11, 3]])


def mask(folder, language="en", draw=0, *, kinds=KINDS, above=0.0):
    generator = torch.Generator().manual_seed(draw + 10 * len(language))
    log_alpha = {
        group.name: torch.randn(group.shape, generator=generator)
        for group in gate_groups(load_model(folder), kinds)
    }
    return Mask(language=language, draw=draw, kinds=kinds, log_alpha=log_alpha, above=above)


def written(path, masks, kinds=KINDS):
    tensors = {name: one.numpy() for name, one in mask_tensors(masks).items()}
    write_tensors(path, tensors, about_masks(kinds))
    return path


def same(one, other):
    names = one.log_alpha.keys() == other.log_alpha.keys()
    about = [(m.language, m.draw, m.kinds, m.above) for m in (one, other)]
    return (
        names
        and about[0] == about[1]
        and all(torch.equal(one.log_alpha[name], other.log_alpha[name]) for name in one.log_alpha)
    )


def test_masks_are_read_as_they_were_written(bert_folder, tmp_path):
    masks = [mask(bert_folder, code, draw, above=0.5 * draw) for code in ("de", "en") for draw in range(11)]
    path = written(tmp_path / "masks.safetensors", masks)
    found = read_masks(path)
    assert len(found) == len(masks)
    assert all(map(same, found, masks))
    assert same(read_mask(path, "en", draw=10), masks[-1])
    assert same(read_mask(path, "de"), masks[0])


def test_gates_of_a_mask_are_binary_and_open_above_its_threshold(bert_folder):
    one = mask(bert_folder, above=0.3)
    for name, gates in one.gates().items():
        assert torch.equal(gates, (one.log_alpha[name] > 0.3).float())
    assert 0 < sum(int(gates.sum()) for gates in one.gates().values()) < 150


def test_a_mask_that_is_not_there_is_an_error_that_names_those_there_are(bert_folder, tmp_path):
    path = written(tmp_path / "masks.safetensors", [mask(bert_folder, "sw"), mask(bert_folder, "ru")])
    with pytest.raises(ConfigError, match=r"no mask of 'rus'. Did you mean 'ru'\? Known: ru, sw"):
        read_mask(path, "rus")
    with pytest.raises(ConfigError, match=r"no draw 2 of sw. There are 1, counted from 0"):
        read_mask(path, "sw", draw=2)


def test_a_file_without_masks_is_an_error_that_says_which_to_give(tmp_path):
    path = tmp_path / "other.safetensors"
    write_tensors(path, {"x": torch.ones(1).numpy()}, {})
    with pytest.raises(StorageError, match=r"holds no masks. Give the masks.safetensors of language-gates"):
        read_masks(path)
    path.write_bytes(b"damaged")
    with pytest.raises(StorageError, match="cannot be read"):
        read_masks(path)


def test_a_pruned_encoder_is_the_encoder_with_its_gates(encoder_folder, tmp_path):
    for kinds in (KINDS, GateKinds()):
        own = mask(encoder_folder, kinds=kinds)
        prune_encoder(encoder_folder, own, tmp_path / "pruned")
        model, pruned = load_masked_lm(encoder_folder), load_masked_lm(tmp_path / "pruned")
        ids = IDS.clamp(max=len(model.get_output_embeddings().weight) - 1)
        with torch.no_grad():
            with gated(model, gate_groups(model, kinds), own.gates()):
                expected = model(ids).logits
            torch.testing.assert_close(pruned(ids).logits, expected)


def test_a_pruned_folder_is_an_ordinary_one_with_all_there_was(bert_folder, tmp_path):
    prune_encoder(bert_folder, mask(bert_folder), tmp_path / "pruned")
    whole, pruned = load_whole(bert_folder), load_whole(tmp_path / "pruned")
    assert list(dict(whole.named_parameters())) == list(dict(pruned.named_parameters()))
    for name in ("bert.embeddings.word_embeddings.weight", "cls.predictions.transform.dense.weight"):
        assert torch.equal(whole.get_parameter(name), pruned.get_parameter(name))
    from transformers import AutoModel, AutoTokenizer

    assert AutoModel.from_pretrained(tmp_path / "pruned").config.model_type == "bert"
    assert AutoTokenizer.from_pretrained(tmp_path / "pruned")("the cat").input_ids


def test_a_mask_of_another_encoder_is_refused(bert_folder, tmp_path):
    own = mask(bert_folder)
    name = "layer.2.feed-forward.neurons"
    other = replace(own, log_alpha={**own.log_alpha, name: torch.zeros(7)})
    with pytest.raises(
        ModelError, match=rf"mask of en .* {name} has gates of the shape \(7,\) in the mask and \(48,\)"
    ):
        prune_encoder(bert_folder, other, tmp_path / "pruned")
    deeper = replace(own, log_alpha={**own.log_alpha, "layer.4.attention.heads": torch.zeros(4)})
    with pytest.raises(
        ModelError, match=r"layer.4.attention.heads has gates .* \(4,\) in the mask and None here"
    ):
        prune_encoder(bert_folder, deeper, tmp_path / "pruned")
    assert not (tmp_path / "pruned").exists()


def test_language_maps_stay_with_a_pruned_encoder(bert_folder, tmp_path):
    mapped = copytree(bert_folder, tmp_path / "mapped")
    write_language_maps(LanguageMaps("en", {"de": LanguageMap(torch.eye(32), torch.ones(32))}), mapped)
    prune_encoder(mapped, mask(bert_folder), tmp_path / "pruned")
    maps = language_maps_of(load_model(tmp_path / "pruned"))
    assert set(maps.maps) == {"de"}


def test_a_pruned_encoder_can_be_fine_tuned(bert_folder, tmp_path, make_setting):
    prune_encoder(bert_folder, mask(bert_folder), tmp_path / "pruned")
    trained = SourceOnly().train(make_setting(encoder=tmp_path / "pruned", epochs=6, learning_rate=5e-3))
    scores = [row["score"] for row in trained.rows if "score" in row]
    assert scores
    assert max(scores) > scores[0] + 0.05
