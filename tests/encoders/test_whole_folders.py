"""Folders that are damaged or do not fit their config.json: read as transformers reads them, or refused.

Required weights are never drawn at random, stored weights of the model are never ignored, and memory is not
allocated for impossible weights.
"""

import json
import os
import resource
import shutil
import traceback
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from isogloss.core.errors import ModelError
from isogloss.encoders import FAMILIES
from isogloss.encoders.loading import load_model
from isogloss.using import load_model as load_predictor
from networks import change_config, refusal

WEIGHTS = "model.safetensors"
LABELS = ("zeta", "Alpha", "mu")
FAMILIES_BUILT = [name for name in FAMILIES if name not in ("camembert", "roberta")]
"""Those with a fixture. Camembert and roberta are built like xlm-roberta."""

Weights = dict[str, torch.Tensor]


@pytest.fixture
def classifier(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], Path]:
    """Save a classifier of texts, as transformers does."""

    def save(family: str) -> Path:
        import transformers

        base = request.getfixturevalue(f"{family.replace('-', '_')}_folder")
        config = transformers.AutoConfig.from_pretrained(base, id2label=dict(enumerate(LABELS)))
        with torch.random.fork_rng():
            torch.manual_seed(4)
            model = transformers.AutoModelForSequenceClassification.from_config(config)
        model.save_pretrained(tmp_path / family)
        transformers.AutoTokenizer.from_pretrained(base).save_pretrained(tmp_path / family)
        return tmp_path / family

    return save


def rewrite(folder: Path, change: Callable[[Weights], None]) -> None:
    weights = load_file(folder / WEIGHTS)
    change(weights)
    save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})


def head_weight(weights: Weights) -> str:
    """Return the name of the last matrix of a head."""
    return [name for name in weights if name.startswith(("classifier", "score")) and name.endswith("weight")][
        -1
    ]


def layer_weight(weights: Weights) -> str:
    """Return the name of a matrix of the last layer."""
    return next(name for name in sorted(weights) if ".2." in name and weights[name].ndim == 2)


def drop_tensor(find: Callable[[Weights], str]) -> Callable[[Weights], str]:
    def change(weights: Weights) -> str:
        name = find(weights)
        del weights[name]
        return name

    return change


def rename_tensor(find: Callable[[Weights], str]) -> Callable[[Weights], str]:
    def change(weights: Weights) -> str:
        name = find(weights)
        weights[f"{name}s"] = weights.pop(name)
        return name

    return change


def longer(find: Callable[[Weights], str]) -> Callable[[Weights], str]:
    def change(weights: Weights) -> str:
        name = find(weights)
        weights[name] = torch.cat([weights[name], weights[name][:1]])
        return name

    return change


def store_integers(find: Callable[[Weights], str]) -> Callable[[Weights], str]:
    def change(weights: Weights) -> str:
        name = find(weights)
        weights[name] = weights[name].to(torch.int8)
        return name

    return change


def with_layer(weights: Weights) -> str:
    name = layer_weight(weights)
    weights[further := name.replace(".2.", ".3.")] = weights[name].clone()
    return further


def with_weight(name: str) -> Callable[[Weights], str]:
    def change(weights: Weights) -> str:
        weights[name] = torch.zeros(3)
        return name

    return change


DAMAGES: dict[str, Callable[[Weights], str]] = {
    "a layer's weight is missing": drop_tensor(layer_weight),
    "the head's weight is missing": drop_tensor(head_weight),
    "a layer's weight has another name": rename_tensor(layer_weight),
    "the head's weight has another name": rename_tensor(head_weight),
    "a layer's weight is longer": longer(layer_weight),
    "the head has one label more": longer(head_weight),
    "a layer is quantized": store_integers(layer_weight),
    "the head is quantized": store_integers(head_weight),
    "there is one layer more": with_layer,
    "there is one part more": with_weight("mapping.weight"),
}
"""Changes of the weights, which return the name that the error has."""

CLASSIFIERS = ("bert", "deberta-v2", "distilbert", "eurobert", "gemma3_text", "llama", "modernbert", "qwen3",
               "rembert", "xlm-roberta", "xlm-roberta-xl", "xmod")  # fmt: skip


def check_refused(folder: Path, damage: str) -> None:
    name: list[str] = []
    rewrite(folder, lambda weights: name.append(DAMAGES[damage](weights)))
    message = refusal(load_predictor, folder)
    assert name[0] in message or name[0].partition(".")[2] in message


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_classifier_whose_weights_do_not_fit_is_refused(damage, classifier):
    check_refused(classifier("llama" if "layer" in damage else "bert"), damage)


@pytest.mark.nightly
@pytest.mark.parametrize(("family", "damage"), list(product(CLASSIFIERS, DAMAGES)))
def test_a_classifier_of_any_family_whose_weights_do_not_fit_is_refused(family, damage, classifier):
    check_refused(classifier(family), damage)


@pytest.mark.slow
def test_an_encoder_with_more_layers_than_config_says_is_refused(bert_folder, tmp_path):
    folder = Path(shutil.copytree(bert_folder, tmp_path / "bert"))
    change_config(folder, num_hidden_layers=2)
    assert "encoder.layer.2.attention" in refusal(load_model, folder)


@pytest.mark.slow
def test_labels_are_read_by_their_ids_whatever_their_order(classifier):
    from transformers import AutoModelForSequenceClassification

    folder = classifier("bert")
    change_config(folder, id2label={"2": "mu", "0": "zeta", "1": "ZETA"})
    theirs = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    ours = load_predictor(folder, precision="float32")
    encoding = ours.tokenizer("the cat happened", return_tensors="pt")
    with torch.no_grad():
        expected = theirs(**encoding).logits[0].softmax(-1).tolist()
    scores = ours.predict("the cat happened", scores=True).scores
    assert list(scores) == ["zeta", "ZETA", "mu"] and list(scores.values()) == pytest.approx(
        expected, abs=1e-6
    )
    change_config(folder, id2label={"0": "zeta", "2": "mu", "3": "nu"})
    assert "id2label" in refusal(load_predictor, folder)
    change_config(folder, id2label={"0": "zeta", "1": "mu", "2": "mu"})
    assert "mu" in refusal(load_predictor, folder)


@pytest.mark.slow
def test_a_head_that_only_config_names_is_refused(bert_folder, tmp_path):
    for kind in ("BertForSequenceClassification", "BertForTokenClassification", "BertForQuestionAnswering"):
        folder = Path(shutil.copytree(bert_folder, tmp_path / kind))
        change_config(folder, architectures=[kind])
        assert f"{folder}: " in refusal(load_predictor, folder)


@pytest.mark.slow
def test_a_classifier_in_shards_predicts_the_same(classifier, tmp_path):
    from transformers import AutoModelForSequenceClassification

    folder = classifier("llama")
    shards = tmp_path / "shards"
    expected = load_predictor(folder, precision="float32").predict(["the cat"], scores=True)
    shutil.copytree(folder, shards, ignore=shutil.ignore_patterns(WEIGHTS))
    AutoModelForSequenceClassification.from_pretrained(folder).save_pretrained(shards, max_shard_size="20KB")
    assert len(list(shards.glob("*.safetensors"))) > 2
    assert load_predictor(shards, precision="float32").predict(["the cat"], scores=True) == expected
    part = sorted(shards.glob("*.safetensors"))[1]
    save_file({"mapping.weight": torch.zeros(2)}, part, metadata={"format": "pt"})
    assert "the weights lack" in refusal(load_predictor, shards)


# Whole numbers in config.json

VALUES = (20_000_000, 10**12, 0, -1, 7)
SPARE = 256 << 20
"""Bytes that a folder of some 100 kB may take: threads and modules have their own."""

SECONDS = 120
"""Processor seconds for all values of a family."""


def whole_numbers(folder: Path) -> list[str]:
    config = json.loads((folder / "config.json").read_text())
    return sorted({name for name, value in config.items() if type(value) is int} | {"num_labels"})


def outcomes(folder: Path, fields: list[str], values: tuple[int, ...]) -> Iterator[tuple[str, int, str]]:
    """Yield for each field and value how reading the folder ends: as in transformers, or its error."""
    from transformers import AutoModel

    config = json.loads((folder / "config.json").read_text())
    ids = torch.tensor([[2, 7, 9, 3]])
    for field, value in product(fields, values):
        (folder / "config.json").write_text(json.dumps({**config, field: value}))
        try:
            model = load_model(folder)
        except ModelError as error:
            yield field, value, str(error)
            continue
        family = FAMILIES[model.config.model_type]
        if family.encoder_class != "AutoModel":
            yield field, value, "the same"  # The half of a model, which AutoModel does not read.
            continue
        try:
            with torch.no_grad():
                ours = model(ids).last_hidden_state
        except (ArithmeticError, IndexError, RuntimeError, TypeError, ValueError):
            yield field, value, "the same"  # Such as sizes of groups that do not fit: neither can run it.
            continue
        theirs = AutoModel.from_pretrained(
            folder, attn_implementation=model.config._attn_implementation
        ).eval()
        theirs.config.use_cache = False  # As here: a cache of a window of 0 fails.
        with torch.no_grad():
            equal = torch.equal(ours, theirs(ids).last_hidden_state)
        yield field, value, "the same" if equal else "another state"


def run_in_little_memory(act: Callable[[], list[Any]]) -> list[Any]:
    """Return a function's result, computed in a forked process of little memory and time."""
    reading, writing = os.pipe()
    if not (child := os.fork()):
        try:
            used_part = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used_part + SPARE, used_part + SPARE))
            resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
            with os.fdopen(writing, "w", encoding="utf-8") as file:
                json.dump(act(), file)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as file:
        examples = file.read()
    os.waitpid(child, 0)
    return list(json.loads(examples))


def check_little_memory(
    folder: Path, fields: list[str] | None = None, values: tuple[int, ...] = VALUES
) -> None:
    data = run_in_little_memory(lambda: list(outcomes(folder, fields or whole_numbers(folder), values)))
    assert len(data) == len(fields or whole_numbers(folder)) * len(values)
    bad_fields = [
        (field, value, outcome)
        for field, value, outcome in data
        if outcome == "another state" or "\n" in outcome or "alloc" in outcome or "Memory" in outcome
    ]
    assert not bad_fields


@pytest.fixture
def copied_folder(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], Path]:
    def copy(family: str) -> Path:
        base = request.getfixturevalue(f"{family.replace('-', '_')}_folder")
        return Path(shutil.copytree(base, tmp_path / family))

    return copy


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "fields"),
    [
        ("bert", ["vocab_size", "max_position_embeddings", "intermediate_size", "num_labels"]),
        ("m2m_100", ["max_position_embeddings", "encoder_layers"]),
        ("distilbert", ["n_layers"]),
    ],
)
def test_sizes_beyond_the_weights_are_refused_before_memory_is_taken(family, fields, copied_folder):
    check_little_memory(copied_folder(family), fields, values=VALUES[:2])


@pytest.mark.nightly
@pytest.mark.parametrize("family", FAMILIES_BUILT)
def test_every_whole_number_of_every_config_is_refused_or_read_as_in_transformers(family, copied_folder):
    check_little_memory(copied_folder(family))
