"""Decoders as encoders: what a state knows with the mask and without, padding, what is saved, GGUF files."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModel

from each import each
from isogloss.core.errors import ConfigError
from isogloss.encoders.loading import load_model
from isogloss.encoders.prepared import check_attention, prepare_folder
from isogloss.encoders.saving import save_model
from isogloss.encoders.subwords import for_causal, pair_frame
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.tasks import TASKS
from isogloss.tasks.batch import collate
from made_up import tagged_sentences
from networks import refusal

DECODERS = ("llama", "qwen3", "gemma3_text")
IDS = torch.tensor([[2, 9, 10, 11, 12, 13, 14, 15]])


@pytest.fixture(params=DECODERS)
def folder(request):
    return request.getfixturevalue(f"{request.param}_folder")


@pytest.fixture(params=["causal", "bidirectional"])
def attention(request):
    return request.param


@pytest.fixture
def read(folder, attention, tmp_path):
    """A decoder's folder that attends one way or the other."""
    return prepare_folder(folder, attention, tmp_path / attention)


def states(model, ids=IDS, layer=-1):
    with torch.no_grad():
        return model(ids, output_hidden_states=True).hidden_states[layer]


def change_subword(place):
    ids = IDS.clone()
    ids[0, place] = 20
    return ids


def seen_from(model, place, *, layer=-1):
    """Return the positions of subwords that influence the state at a position."""
    plain_hidden_state = states(model, layer=layer)[0, place]
    return [
        other_index
        for other_index in range(IDS.size(1))
        if not torch.allclose(
            states(model, change_subword(other_index), layer)[0, place], plain_hidden_state, atol=1e-6
        )
    ]


@pytest.mark.parametrize("kind", ["sdpa", "eager"])
def test_a_state_knows_what_stands_before_it_or_on_both_sides(read, attention, kind):
    last_value = 8 if attention == "bidirectional" else 4
    assert seen_from(load_model(read, attention=kind), 3) == list(range(last_value))


def test_windows_of_gemma_reach_to_both_sides_where_the_mask_is_lifted(gemma3_text_folder, tmp_path):
    causal, lifted_model = (
        load_model(prepare_folder(gemma3_text_folder, name, tmp_path / name))
        for name in ("causal", "bidirectional")
    )
    assert seen_from(causal, 4, layer=1) == [1, 2, 3, 4]
    assert seen_from(lifted_model, 4, layer=1) == [2, 3, 4, 5, 6]


def test_the_folder_is_read_alike_without_isogloss_to_the_bit(read):
    assert torch.equal(states(load_model(read)), states(AutoModel.from_pretrained(read).eval()))


def test_padding_changes_nothing(read):
    model = load_model(read)
    mask = torch.tensor([[1] * 8, [1] * 5 + [0] * 3])
    with torch.no_grad():
        joint_last_hidden_states = model(IDS.repeat(2, 1), attention_mask=mask).last_hidden_state
        single_last_hidden_state = model(IDS[:, :5]).last_hidden_state
        torch.testing.assert_close(joint_last_hidden_states[1:, :5], single_last_hidden_state)
        torch.testing.assert_close(joint_last_hidden_states[:1], model(IDS).last_hidden_state)


@pytest.mark.slow
@pytest.mark.parametrize("task", ["upos", "nli", "qa", "parsing"])
def test_a_saved_model_attends_as_it_was_trained(read, attention, task, tmp_path):
    head = TASKS[task].head
    for turn in range(2):  # Gemma's window is halved each time it is read, and doubled when it is saved.
        model = head(read, seed=3)
        tokenizer = load_tokenizer(read)
        save_model(model, tokenizer, tmp_path / f"saved{turn}")
        again = head(tmp_path / f"saved{turn}", seed=4)
        assert torch.equal(states(again.base_model), states(model.base_model))
        assert all(
            torch.equal(parameter, two)
            for parameter, two in zip(model.parameters(), again.parameters(), strict=True)
        )
        assert for_causal(load_tokenizer(tmp_path / f"saved{turn}")) == (attention == "causal")
        read = tmp_path / f"saved{turn}"


def test_a_words_last_subword_stands_for_it_with_the_mask_and_its_first_without(read, attention):
    tokenizer = load_tokenizer(read)
    (row,) = TASKS["upos"].encode([tagged_sentences("en", 1)[0]], tokenizer)
    words = tagged_sentences("en", 1)[0].words
    counts = [len(tokenizer(f" {word}", add_special_tokens=False)["input_ids"]) for word in words]
    ends = [sum(counts[: n + 1]) for n in range(len(words))]
    firsts = [1 + end - count for end, count in zip(ends, counts, strict=True)]
    assert list(row.positions) == (ends if attention == "causal" else firsts)


def test_a_pair_is_divided_closed_and_scored_at_its_last_subword_with_the_mask(read, attention):
    from isogloss.data.examples import SentencePair

    tokenizer = load_tokenizer(read)
    (row,) = TASKS["nli"].encode(
        [SentencePair(id="1", first="the cat", second="a dog", label="neutral")], tokenizer
    )
    opening = tokenizer.cls_token_id
    closing = tokenizer.sep_token_id
    first_input_ids, second = (
        tokenizer(text, add_special_tokens=False)["input_ids"] for text in ("the cat", "a dog")
    )
    assert row.subwords == (opening, *first_input_ids, closing, *second, closing)
    batch = collate([row], padding=tokenizer.pad_token_id)
    assert batch.columns.tolist() == [len(row.subwords) - 1 if attention == "causal" else 0]


def test_every_tokenizer_divides_pairs_and_closes_them(any_folder):
    tokenizer = load_tokenizer(any_folder)
    frame = pair_frame(tokenizer)
    assert frame.between and frame.closing == (tokenizer.sep_token_id,)
    ids = tokenizer("a", "a")["input_ids"]
    assert ids == list(frame.subwords(*[tokenizer("a", add_special_tokens=False)["input_ids"]] * 2))


def test_an_encoder_that_is_no_decoder_is_refused(bert_folder):
    text = refusal(check_attention, bert_folder, "bidirectional", error=ConfigError)
    assert text.startswith(f"attention: bidirectional: {bert_folder} ") and "(bert)" in text
    assert "gemma3_text or llama or qwen3" in text


def test_what_is_prepared_is_linked_and_kept(llama_folder, tmp_path):
    folder = prepare_folder(llama_folder, "bidirectional", tmp_path / "lifted")
    assert (folder / "model.safetensors").samefile(llama_folder / "model.safetensors")
    assert "is_causal" not in json.loads((llama_folder / "config.json").read_text())
    time_before = (folder / "config.json").stat().st_mtime_ns
    assert prepare_folder(llama_folder, "bidirectional", folder) == folder
    assert (folder / "config.json").stat().st_mtime_ns == time_before


# GGUF files


def test_gguf_files_that_cannot_be_read_are_refused(tmp_path, monkeypatch):
    (tmp_path / "a.gguf").write_bytes(b"<html>")
    assert "a.gguf: " in refusal(load_model, tmp_path)
    (tmp_path / "a.gguf").write_bytes(b"GGUF")
    assert "a.gguf" in refusal(load_model, tmp_path) or "cannot load" in refusal(load_model, tmp_path)
    with monkeypatch.context() as old_context:
        old_context.setattr("isogloss.encoders.folders.version", lambda _: "5.17.0")
        assert "Install 5.18 or later (pip install" in refusal(load_model, tmp_path)
    monkeypatch.setattr("isogloss.encoders.folders.find_spec", lambda _: None)
    assert 'Install it (pip install "isogloss[gguf]")' in refusal(load_model, tmp_path)
    shutil.copy(tmp_path / "a.gguf", tmp_path / "b.gguf")
    assert "several GGUF files (a.gguf, b.gguf)" in refusal(load_model, tmp_path)


@pytest.fixture(scope="module")
def gguf_folder(gemma3_text_folder, tmp_path_factory):
    """The same weights and subwords as in gemma3_text_folder, in one file of GGUF's numbers of 32 bits."""
    from gguf import MODEL_ARCH, GGUFWriter, get_tensor_name_map

    config = json.loads((gemma3_text_folder / "config.json").read_text())
    folder = tmp_path_factory.mktemp("gguf")
    writer = GGUFWriter(folder / "tiny.gguf", "gemma3")
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_sliding_window(config["sliding_window"])
    tokenizer = load_tokenizer(gemma3_text_folder)
    subwords = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(subwords)
    writer.add_token_scores([-float(place) for place in range(len(subwords))])
    writer.add_token_types([3 if place < 4 else 1 for place in range(len(subwords))])
    writer.add_pad_token_id(tokenizer.pad_token_id)
    writer.add_eos_token_id(tokenizer.eos_token_id)
    writer.add_bos_token_id(tokenizer.bos_token_id)
    writer.add_unk_token_id(tokenizer.unk_token_id)
    writer.add_add_bos_token(True)
    names = get_tensor_name_map(MODEL_ARCH.GEMMA3, config["num_hidden_layers"])
    for name, weight in load_file(gemma3_text_folder / "model.safetensors").items():
        shifted_weight = weight + 1 if "norm" in name else weight  # As llama.cpp keeps the norms of Gemma.
        writer.add_tensor(names.get_name(name, try_suffixes=(".weight",)), shifted_weight.numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return folder


def test_a_gguf_file_is_read_as_transformers_reads_it(gguf_folder, gemma3_text_folder):
    theirs = AutoModel.from_pretrained(gguf_folder, gguf_file="tiny.gguf").eval()
    assert torch.equal(states(load_model(gguf_folder).eval()), states(theirs))
    ours = load_tokenizer(gguf_folder)
    known_tokenizer = load_tokenizer(gemma3_text_folder)
    for text in ("the cat happened", "a casing"):
        assert ours(text)["input_ids"] == known_tokenizer(text)["input_ids"]


def test_a_gguf_file_holds_the_weights_it_was_made_of(gguf_folder, gemma3_text_folder):
    read = dict(load_model(gguf_folder).named_parameters())
    for name, weight in each(load_model(gemma3_text_folder).named_parameters()):
        assert torch.allclose(read[name], weight, atol=1e-6), name  # Norms were kept shifted by one.


@pytest.mark.slow
def test_a_decoder_of_gguf_is_lifted_and_saved_as_a_folder(gguf_folder, tmp_path):
    lifted_folder = prepare_folder(gguf_folder, "bidirectional", tmp_path / "lifted")
    model = load_model(lifted_folder).eval()
    assert seen_from(model, 1) == list(range(IDS.size(1)))
    assert seen_from(load_model(gguf_folder).eval(), 1) == [0, 1]
    save_model(model, load_tokenizer(lifted_folder), tmp_path / "saved")
    assert not list((tmp_path / "saved").glob("*.gguf"))
    assert torch.equal(states(load_model(tmp_path / "saved").eval()), states(model))
