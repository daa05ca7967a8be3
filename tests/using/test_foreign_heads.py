"""Models that transformers saved, of every family and head: the same probabilities here, or a refusal."""

import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch

from isogloss.core.errors import ModelError
from isogloss.encoders import FAMILIES
from isogloss.using import load_model

BUILT_LIKE = {"roberta": "xlm-roberta", "camembert": "xlm-roberta"}
"""Families without a fixture, and the family whose configuration and tokenizer they take."""

LABELS = ("zeta", "Alpha", "mu")
NLI_LABELS = ("neutral", "contradiction", "entailment")
TEXTS = ("the cat happened", "a casing slowly", "unlucky Anna saw Rome, and it rained")
PAIRS = (("the cat", "a casing happened"), ("slowly Anna", "Rome"))
PASSAGE = "Anna saw Rome slowly and the cat happened"
TOLERANCE = 1e-6

HEADS = {
    "words": "AutoModelForTokenClassification",
    "texts": "AutoModelForSequenceClassification",
    "pairs": "AutoModelForSequenceClassification",
    "several": "AutoModelForSequenceClassification",
    "number": "AutoModelForSequenceClassification",
    "options": "AutoModelForMultipleChoice",
    "spans": "AutoModelForQuestionAnswering",
}
"""Kind of prediction of a head, and its class in transformers."""

WITHOUT_CLASS = {
    *((family, "options") for family in ("eurobert", "gemma3_text", "llama", "m2m_100", "mt5", "qwen3")),
    *(("m2m_100", head) for head in HEADS),
    *(("gemma3_text", head) for head in ("words", "spans")),
    ("eurobert", "spans"),
}
"""Combinations for which transformers has no class."""

REFUSED = {("mt5", head) for head in ("texts", "pairs", "several", "number", "spans")}
"""Heads on the states of a decoder, which isogloss does not run."""

MATRIX = sorted(set(product(FAMILIES, HEADS)) - WITHOUT_CLASS)
SAMPLE = (
    ("llama", "texts"),
    ("qwen3", "pairs"),
    ("gemma3_text", "texts"),
    ("mt5", "words"),
    ("mt5", "texts"),
)


@pytest.fixture
def save_as_transformers(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Any]:
    """Save a model of a family with a head and random weights, as a script of transformers would."""

    def save(family: str, head: str, **fields: object) -> tuple[Any, Any, Path]:
        import transformers

        fixture = f"{BUILT_LIKE.get(family, family).replace('-', '_')}_folder"
        base = request.getfixturevalue(fixture)
        values = json.loads((base / "config.json").read_text())
        values.pop("architectures", None)
        labels = {"pairs": NLI_LABELS, "number": LABELS[:1]}.get(head, LABELS)
        if head not in ("spans", "options"):
            values |= {"id2label": dict(enumerate(labels)), "label2id": {v: k for k, v in enumerate(labels)}}
        if head == "several":
            values["problem_type"] = "multi_label_classification"
        tokenizer = transformers.AutoTokenizer.from_pretrained(base)
        if tokenizer.pad_token is not None:  # Llama has none, and then transformers reads one text at a time.
            values["pad_token_id"] = tokenizer.pad_token_id
        config = transformers.AutoConfig.for_model(**{**values, **fields, "model_type": family})
        with torch.random.fork_rng():
            torch.manual_seed(3)
            model = getattr(transformers, HEADS[head]).from_config(config).eval()
            for parameter in model.parameters():  # Including biases and norms.
                parameter.data.add_(0.05 * torch.randn_like(parameter))
        folder = tmp_path / f"{family}-{head}"
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return model, tokenizer, folder

    return save


def outputs(model: Any, tokenizer: Any, *texts: object, **options: bool) -> tuple[Any, Any]:
    """Return transformers' output and encoding of one text."""
    encoding = tokenizer(*texts, return_tensors="pt", **options)
    row = {name: ids for name, ids in encoding.items() if name in ("input_ids", "attention_mask")}
    if "token_type_ids" in encoding and getattr(model.config, "type_vocab_size", 0) > 1:
        row["token_type_ids"] = encoding["token_type_ids"]
    with torch.no_grad():
        return model(**row), encoding


def language_of(model: Any) -> str:
    """Return the default language of X-MOD."""
    return str(getattr(model.config, "default_language", "")).partition("_")[0]


def compare_words(model: Any, tokenizer: Any, ours: Any) -> float:
    """Return the largest difference of the best tags' probabilities at each word's first subword."""
    sentences = [text.split() for text in TEXTS]
    predictions = ours.predict(sentences, scores=True, language=language_of(model))
    worst_value = 0.0
    for words, prediction in zip(sentences, predictions, strict=True):
        # In running text: a space before each word, unless the tokenizer makes one.
        makes_space = tokenizer(" a")["input_ids"] == tokenizer("a")["input_ids"]
        lead = "" if makes_space else " "
        split = {"is_split_into_words": True}
        raw, encoding = outputs(model, tokenizer, [f"{lead}{word}" for word in words], **split)
        assert encoding["input_ids"][0].tolist() == tokenizer(lead + " ".join(words))["input_ids"]
        places = [encoding.word_ids(0).index(index) for index in range(len(words))]
        expected, tags = raw.logits[0].softmax(-1)[places].max(-1)
        assert list(prediction.answer) == [model.config.id2label[tag] for tag in tags.tolist()]
        worst_value = max(worst_value, float((expected - torch.tensor(prediction.scores)).abs().max()))
    return worst_value


def compare_texts(model: Any, tokenizer: Any, ours: Any, head: str) -> float:
    inputs: Any = PAIRS if head == "pairs" else TEXTS
    predictions = ours.predict(list(inputs), scores=head != "number", language=language_of(model))
    worst_value = 0.0
    for arguments, prediction in zip(inputs, predictions, strict=True):
        raw, _ = outputs(model, tokenizer, *(arguments if head == "pairs" else (arguments,)))
        logits = raw.logits[0]
        if head == "number":
            worst_value = max(
                worst_value, 0.1 * abs(float(logits[0]) - prediction)
            )  # No probability, but a larger number.
            continue
        expected = logits.sigmoid() if head == "several" else logits.softmax(-1)
        assert list(prediction.scores) == list(model.config.id2label.values())
        worst_value = max(
            worst_value, float((expected - torch.tensor(list(prediction.scores.values()))).abs().max())
        )
    return worst_value


def compare_options(model: Any, tokenizer: Any, ours: Any) -> float:
    context = "Anna saw Rome"
    options = ["the cat", "a casing happened", "slowly"]
    (prediction,) = ours.predict(
        [{"context": context, "options": options}], scores=True, language=language_of(model)
    )
    encoding = tokenizer([context] * 3, options, padding=True, return_tensors="pt")
    if getattr(model.config, "type_vocab_size", 0) < 2:
        encoding.pop("token_type_ids", None)
    with torch.no_grad():
        expected = model(**{name: ids[None] for name, ids in encoding.items()}).logits[0].softmax(-1)
    return float((expected - torch.tensor(list(prediction.scores.values()))).abs().max())


def compare_spans(model: Any, tokenizer: Any, ours: Any) -> float:
    """Return 0 where the answer is the best span by the scores of transformers, else 1."""
    question = "what happened"
    raw, _ = outputs(model, tokenizer, question, PASSAGE)
    encoding = tokenizer(question, PASSAGE, return_offsets_mapping=True)
    passage = [place for place, side in enumerate(encoding.sequence_ids(0)) if side == 1]
    spans = [
        (float(raw.start_logits[0, first_item] + raw.end_logits[0, last_value]), first_item, last_value)
        for first_item in passage
        for last_value in passage
        if first_item <= last_value
    ]
    offsets = encoding["offset_mapping"]
    texts = [
        PASSAGE[offsets[first_span][0] : offsets[last_span][1]].strip()
        for _, first_span, last_span in sorted(spans)[::-1]
    ]
    return 0.0 if ours.predict([(question, PASSAGE)], language=language_of(model)) == [texts[0]] else 1.0


def difference(model: Any, tokenizer: Any, folder: Path, head: str) -> float:
    """Return the distance of predictions from transformers'. ModelError for a refusal."""
    ours = load_model(folder, precision="float32")
    if head == "words":
        return compare_words(model, tokenizer, ours)
    if head == "options":
        return compare_options(model, tokenizer, ours)
    return (
        compare_spans(model, tokenizer, ours)
        if head == "spans"
        else compare_texts(model, tokenizer, ours, head)
    )


def check_same_or_refused(family: str, head: str, save: Callable[..., Any]) -> None:
    model, tokenizer, folder = save(family, head)
    if (family, head) in REFUSED:
        with pytest.raises(ModelError, match=f"{type(model).__name__}.*decoder"):
            load_model(folder)
    else:
        assert difference(model, tokenizer, folder, head) < TOLERANCE


@pytest.mark.slow
@pytest.mark.parametrize(("family", "head"), SAMPLE)
def test_trained_heads_predict_as_in_transformers(family, head, save_as_transformers):
    check_same_or_refused(family, head, save_as_transformers)


@pytest.mark.nightly
@pytest.mark.parametrize(("family", "head"), MATRIX)
def test_trained_heads_of_every_family_predict_as_in_transformers(family, head, save_as_transformers):
    check_same_or_refused(family, head, save_as_transformers)


@pytest.mark.nightly
@pytest.mark.slow
def test_an_exported_head_of_a_decoder_predicts_the_same(save_as_transformers, tmp_path):
    model, tokenizer, folder = save_as_transformers("qwen3", "texts")
    exported_path = load_model(folder).export(tmp_path / "out")
    assert difference(model, tokenizer, exported_path, "texts") < TOLERANCE
    theirs = type(model).from_pretrained(exported_path).eval()
    assert all(
        torch.equal(parameter, two)
        for parameter, two in zip(model.parameters(), theirs.parameters(), strict=True)
    )


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("family", ["llama", "gemma3_text"])
def test_a_head_saved_with_lora_predicts_as_in_peft(family, save_as_transformers, tmp_path):
    peft = pytest.importorskip("peft")
    from transformers import AutoModel

    model, tokenizer, folder = save_as_transformers(family, "texts")
    base = tmp_path / "base"
    AutoModel.from_pretrained(folder).save_pretrained(base)
    tokenizer.save_pretrained(base)
    setting = peft.LoraConfig(task_type="SEQ_CLS", target_modules=["q_proj"], r=2, init_lora_weights=False)
    adapted_peft_model = peft.get_peft_model(model, setting, autocast_adapter_dtype=False).eval()
    adapted_peft_model.peft_config["default"].base_model_name_or_path = str(base)
    adapted_peft_model.save_pretrained(tmp_path / "lora")
    ours = load_model(tmp_path / "lora", precision="float32")
    for text in TEXTS:
        raw, _ = outputs(adapted_peft_model, tokenizer, text)
        expected = raw.logits[0].softmax(-1).tolist()
        scores = ours.predict(text, scores=True).scores
        assert list(scores.values()) == pytest.approx(expected, abs=1e-5)


@pytest.mark.nightly
@pytest.mark.slow
def test_training_goes_on_from_a_trained_head_and_replaces_one_for_other_labels(save_as_transformers):
    from isogloss.encoders.loading import load_with_new_head

    model, _, folder = save_as_transformers("llama", "texts")
    kind = "AutoModelForSequenceClassification"
    again = load_with_new_head(folder, kind, labels=LABELS[::-1], seed=0)
    assert torch.equal(again.score.weight, model.score.weight.flip(0))
    other_item = load_with_new_head(folder, kind, labels=("a", "b"), seed=0)
    assert other_item.head.weight.shape == (2, 32) and not hasattr(other_item, "score")
    _, _, folder = save_as_transformers("mt5", "texts")
    assert load_with_new_head(folder, kind, labels=LABELS, seed=0).head.weight.shape == (3, 32)


@pytest.mark.slow
def test_an_encoder_is_read_from_a_question_answering_decoder(save_as_transformers):
    from isogloss.encoders.loading import load_model as load_encoder

    model, _, folder = save_as_transformers("qwen3", "spans")
    ids = torch.tensor([[2, 9, 8, 3]])
    with torch.no_grad():
        expected = model.base_model(ids).last_hidden_state
        torch.testing.assert_close(load_encoder(folder)(ids).last_hidden_state, expected)


@pytest.mark.slow
def test_an_empty_text_has_an_answer(save_as_transformers):
    _, _, folder = save_as_transformers("llama", "texts")
    assert load_model(folder).predict(["", "the cat"])[0] in LABELS
