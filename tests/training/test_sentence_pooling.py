"""Vectors of texts as a folder of sentence-transformers makes them: the same here, or a refusal."""

import json
import shutil
from itertools import combinations, product
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch.nn.functional import normalize

import isogloss
from isogloss.core.errors import ConfigError, ModelError
from isogloss.encoders.folders import shipped_folder
from isogloss.training.parallel_text import BitextSentences
from isogloss.training.states import StateOptions

TEXTS = ("tuki mirne baboza nir", "sirjor", "tuki tuki mirne", "baboza nir sirjor bultujen mirne tuki nir")
MODES = ("cls", "max", "mean", "mean_sqrt_len", "weightedmean", "lasttoken")
FIELDS = {"cls": "pooling_mode_cls_token", "lasttoken": "pooling_mode_lasttoken"}
DIM = 128
DENSE_WIDTH = 16
CUT = 6
"""Subwords that the folder reads of a text: fewer than the longest has."""


def module(path, kind):
    return {"idx": 0, "name": path, "path": path, "type": f"sentence_transformers.models.{kind}"}


def write(folder, name, body):
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(json.dumps(body))


@pytest.fixture
def saved_folder(tmp_path):
    """Write the shipped encoder as sentence-transformers writes it, with parts after it."""

    def save(modes=("mean",), *, dense="", normalized=False, is_named=False, **settings):
        folder = Path(shutil.copytree(shipped_folder(), tmp_path / f"st{len(list(tmp_path.iterdir()))}"))
        pooling = {FIELDS.get(mode, f"pooling_mode_{mode}_tokens"): mode in modes for mode in MODES}
        if is_named:
            pooling = {"pooling_mode": modes[0] if len(modes) == 1 else list(modes)}
        write(folder, "1_Pooling/config.json", {"word_embedding_dimension": DIM, **pooling})
        parts = [module("", "Transformer"), module("1_Pooling", "Pooling")]
        if dense:
            parts.append(module("2_Dense", "Dense"))
            kind = f"torch.nn.modules.activation.{dense}"
            write(folder, "2_Dense/config.json", {"bias": True, "activation_function": kind})
            torch.manual_seed(1)
            weights = {
                "linear.weight": torch.randn(DENSE_WIDTH, DIM * len(modes)) / DIM**0.5,
                "linear.bias": torch.randn(DENSE_WIDTH),
            }
            save_file(weights, folder / "2_Dense" / "model.safetensors")
        parts += [module("3_Normalize", "Normalize")] if normalized else []
        write(folder, "modules.json", parts)
        write(
            folder, "sentence_bert_config.json", {"max_seq_length": CUT, "do_lower_case": False, **settings}
        )
        return folder

    return save


def expected_vectors(folder, modes, dense, *, normalized_value):
    """Encode texts one by one, as sentence-transformers does."""
    from safetensors.torch import load_file

    model, tokenizer = isogloss.load_encoder(folder)
    vectors = []
    for text in TEXTS:
        encoding = tokenizer(text, truncation=True, max_length=CUT, return_tensors="pt")
        encoding.pop("token_type_ids", None)
        with torch.no_grad():
            states = model(**encoding).last_hidden_state[0]
        places = torch.arange(1.0, len(states) + 1).unsqueeze(1)
        pooled_value = {
            "cls": states[0],
            "max": states.max(0).values,
            "mean": states.mean(0),
            "mean_sqrt_len": states.sum(0) / len(states) ** 0.5,
            "weightedmean": (states * places).sum(0) / places.sum(),
            "lasttoken": states[-1],
        }
        vectors.append(torch.cat([pooled_value[mode] for mode in MODES if mode in modes]))
    tensor = torch.stack(vectors)
    if dense:
        weights = load_file(folder / "2_Dense" / "model.safetensors")
        activation = {"Tanh": torch.tanh, "Identity": lambda values: values}[dense]
        tensor = activation(tensor @ weights["linear.weight"].T + weights["linear.bias"])
    return normalize(tensor, dim=1) if normalized_value else tensor


def found_vectors(folder, limit=128):
    options = StateOptions(layers=(-1,), limit=limit, precision="float32", pooling="model")
    return BitextSentences(lambda _: []).states(isogloss.load_encoder(folder), TEXTS, "", options)[0]


def check_same(saved_value, modes, dense, *, normalized_value, is_named=False):
    folder = saved_value(modes, dense=dense, normalized=normalized_value, is_named=is_named)
    expected = expected_vectors(folder, modes, dense, normalized_value=normalized_value)
    torch.testing.assert_close(found_vectors(folder), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("modes", "dense", "normalized_value"), [(("cls",), "", True), (("mean", "lasttoken"), "Tanh", True)]
)
def test_vectors_are_those_that_the_folder_makes(saved_folder, modes, dense, normalized_value):
    check_same(saved_folder, modes, dense, normalized_value=normalized_value, is_named=len(modes) == 1)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("modes", "dense", "normalized_value"),
    list(
        product([*combinations(MODES, 1), *combinations(MODES, 2)], ("", "Tanh", "Identity"), (True, False))
    ),
)
def test_vectors_of_all_parts_are_those_that_the_folder_makes(saved_folder, modes, dense, normalized_value):
    check_same(saved_folder, modes, dense, normalized_value=normalized_value)


def test_sentence_transformers_makes_these_vectors(saved_folder):
    library = pytest.importorskip("sentence_transformers")
    folder = saved_folder(("mean",), dense="Tanh", normalized=True)
    theirs = torch.tensor(library.SentenceTransformer(str(folder), device="cpu").encode(list(TEXTS)))
    torch.testing.assert_close(found_vectors(folder), theirs, atol=1e-5, rtol=1e-5)


def test_retrieval_says_that_it_passes_over_a_pooling_and_measures_it_if_asked(saved_folder):
    folder = saved_folder(("cls",), dense="Tanh", normalized=True)
    model, tokenizer = isogloss.load_encoder(folder)
    with pytest.warns(UserWarning, match="pooling"):
        isogloss.retrieval(model, tokenizer, TEXTS, TEXTS[::-1], layers=[4])
    options = {"pooling": "model", "precision": "float32"}
    (row,) = isogloss.retrieval(model, tokenizer, TEXTS, TEXTS[::-1], **options).itertuples()
    x = expected_vectors(folder, ("cls",), "Tanh", normalized_value=True)
    nearest = (x @ x.flip(0).T).argmax(1)
    assert (row.Index, row.forward) == (4, float((nearest == torch.arange(4)).float().mean()))
    with pytest.raises(ConfigError, match="layers 1, 4"):
        isogloss.retrieval(model, tokenizer, TEXTS, TEXTS, layers=[1, 4], **options)


def test_texts_are_read_as_the_folder_says(saved_folder):
    folder = saved_folder(("mean",), do_lower_case=True)
    prompts = {"prompts": {"query": "Tuki "}, "default_prompt_name": "query"}
    write(folder, "config_sentence_transformers.json", prompts)
    with_prompt = found_vectors(folder)
    write(folder, "config_sentence_transformers.json", {})
    options = StateOptions(layers=(-1,), limit=128, precision="float32", pooling="model")
    loaded_encoder = isogloss.load_encoder(saved_folder(("mean",)))
    spelled_states = BitextSentences(lambda _: []).states(
        loaded_encoder, [f"Tuki {text}" for text in TEXTS], "", options
    )
    torch.testing.assert_close(with_prompt, spelled_states[0])


@pytest.mark.parametrize(
    ("file", "body", "name"),
    [
        ("modules.json", [module("", "Transformer")], "the list Transformer"),
        ("modules.json", {"a": 1}, "type and path"),
        (
            "modules.json",
            [module("", "Transformer"), module("1_Pooling", "Pooling"), module("", "LSTM")],
            "LSTM",
        ),
        ("1_Pooling/config.json", {}, r"pooling \[\]"),
        ("2_Dense/config.json", {"activation_function": "a.Softplus"}, "Softplus"),
        ("2_Dense/config.json", {"bias": False}, "linear.bias"),
    ],
)
def test_parts_that_are_not_known_are_refused(saved_folder, file, body, name):
    folder = saved_folder(("mean",), dense="Tanh")
    write(folder, file, body)
    with pytest.raises(ModelError, match=f"modules.json: .*{name}"):
        found_vectors(folder)


def test_an_encoder_without_a_pooling_of_its_own_is_refused():
    with pytest.raises(ModelError, match=r"no modules\.json"):
        found_vectors(shipped_folder())
