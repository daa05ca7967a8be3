"""Models of any family, wrapped in any way, in any type of numbers: a right number, or a line that helps.

Each number is compared with the output of transformers for one text at a time.
"""

from copy import deepcopy
from functools import cache
from types import SimpleNamespace

import pytest
import torch
from torch import nn

import isogloss
from any_models import MODELS, make_model
from isogloss.core.errors import IsoglossError, ModelError
from made_up import SPANS
from says import says

FIRST = list(SPANS[:8])
SECOND = [" ".join(reversed(text.split()[:4])) for text in FIRST]
LINKS = [[(word, 3 - word) for word in range(4)]] * len(FIRST)
QUIET = {"on_progress": lambda _: None}
SAMPLE = ("bert", "gpt2", "t5", "electra", "nllb", "gemma3_text", "fnet")
"""Families in the ordinary tests: known ones and others, with every kind of tokenizer, and one to refuse."""


class Case:
    """A model, another of its shapes, a tokenizer, and batches of two languages."""

    def __init__(self, model, tokenizer):
        self.model = model
        self.tokenizer = tokenizer
        configs = (part.config for part in model.modules() if hasattr(part, "config"))
        self.is_encoder_decoder = next(configs).is_encoder_decoder

    @property
    def loaded(self):
        return self.model, self.tokenizer

    def batches(self):
        return {
            language: [self.batch(texts[:1]), self.batch(texts[1:2])]
            for language, texts in (("en", FIRST), ("de", SECOND))
        }

    def batch(self, texts):
        encoding = self.tokenizer(texts, return_tensors="pt")
        return {name: encoding[name] for name in ("input_ids", "attention_mask")}

    def loss(self, model, batch):
        """Return the mean square of the states."""
        if self.is_encoder_decoder:
            batch = {**batch, "decoder_input_ids": batch["input_ids"]}
        if isinstance(model, SentenceModel):
            model = model[0].auto_model
        return model(**batch)[0].square().mean()

    def score(self, model):
        with torch.no_grad():
            return float(self.loss(model, self.batch(FIRST[:1])))


def mix(case):
    with isogloss.mixing(case.model, layer=2, mixed="states") as trace:
        case.loss(case.model, case.batch(FIRST[:1] * 2))
    return trace.ratios


def meta_of_names(case):
    names = [name for name, _ in case.model.named_parameters()][-2:]
    meta = isogloss.MetaLearner(case.model, {"en": names[:1], "de": names[1:]}, case.loss)
    batches = case.batches()
    return meta("en", batches["en"][0], {language: batches[language][1] for language in batches})


def meta_of_languages(case):
    meta = isogloss.MetaLearner(case.model, ["en", "de"], case.loss)
    batches = case.batches()
    return meta("en", batches["en"][0], {language: batches[language][1] for language in batches})


CALLS = {
    "states": lambda case: isogloss.states(*case.loaded, FIRST),
    "states of words": lambda case: isogloss.states(*case.loaded, FIRST, words="average"),
    "cka": lambda case: isogloss.cka(*case.loaded, FIRST, SECOND, **QUIET),
    "retrieval": lambda case: isogloss.retrieval(*case.loaded, FIRST, SECOND, **QUIET),
    "anisotropy": lambda case: isogloss.anisotropy(isogloss.states(*case.loaded, FIRST)),
    "representation_map": lambda case: isogloss.representation_map(
        {"en": isogloss.states(*case.loaded, FIRST), "de": isogloss.states(*case.loaded, SECOND)}
    ),
    "mine": lambda case: isogloss.mine(
        isogloss.states(*case.loaded, FIRST), isogloss.states(*case.loaded, SECOND)
    ),
    "word_distances": lambda case: isogloss.word_distances(*case.loaded, FIRST, SECOND, LINKS, **QUIET),
    "align": lambda case: isogloss.align(FIRST, SECOND, *case.loaded, **QUIET),
    "align by the last layer": lambda case: isogloss.align(FIRST, SECOND, *case.loaded, layer=-1, **QUIET),
    "path": lambda case: isogloss.path(case.model, case.model, case.score, [0, 1], **QUIET),
    "plane": lambda case: isogloss.plane(case.model, case.model, case.model, case.score, [0, 1], **QUIET),
    "deltas": lambda case: isogloss.deltas(case.model, case.model, case.model),
    "list_parts": lambda case: isogloss.list_parts(case.model),
    "swap_parts": lambda case: isogloss.swap_parts(case.model, case.model, ["embeddings", "layer 1"]),
    "strip_parts": lambda case: isogloss.strip_parts(case.model, ["layer 1"]),
    "perturb_parts": lambda case: isogloss.perturb_parts(case.model, case.model, ["layer 1 norms"]),
    "score_parts": lambda case: isogloss.score_parts(
        case.model, case.model, case.score, changes=("swap", "strip", "random"), **QUIET
    ),
    "average": lambda case: isogloss.average([case.model, case.model]),
    "gradient_conflict": lambda case: isogloss.gradient_conflict(
        case.model, case.batches(), case.loss, **QUIET
    ),
    "language_gates": lambda case: isogloss.language_gates(
        case.model, case.batches(), case.loss, steps=2, draws=1, **QUIET
    ),
    "adjust": lambda case: isogloss.adjust(
        *case.loaded, FIRST, SECOND, LINKS, epochs=1, batch_size=4, **QUIET
    ),
    "AlignmentLoss": lambda case: isogloss.AlignmentLoss(*case.loaded, FIRST, SECOND, LINKS)(),
    "mixing": mix,
    "MetaLearner of names": meta_of_names,
    "MetaLearner of languages": meta_of_languages,
}
"""Functions that take a model without a head, by name."""


@cache
def case_of(name):
    return Case(*make_model(name))


def outcome(case, call):
    """Return a result, or the line of a refusal. Any other error is one of the test."""
    try:
        return CALLS[call](case)
    except IsoglossError as error:
        return str(error)


def check(case, call):
    result = outcome(case, call)
    if isinstance(result, str):
        assert "\n" not in result and len(result) < 400
        assert result.rstrip(".").count(". ") >= 1, "what to do is a sentence of its own"
    return result


@pytest.mark.each_value
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", SAMPLE)
def test_a_function_gives_a_result_or_says_what_to_do(name, call):
    assert check(case_of(name), call) is not None


@pytest.mark.nightly
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", MODELS)
def test_a_function_of_any_family_gives_a_result_or_says_what_to_do(name, call):
    assert check(case_of(name), call) is not None


def reference(model, tokenizer, texts):
    """Return the mean states of texts by layer, each text on its own, as transformers computes them."""
    base = getattr(model, "base_model", model)
    encoder = base.get_encoder() if base.config.is_encoder_decoder else base
    vectors = []
    for text in texts:
        encoding = tokenizer(text, return_tensors="pt", return_special_tokens_mask=True)
        is_kept = encoding["special_tokens_mask"][0] == 0
        with torch.no_grad():
            hidden = encoder(
                input_ids=encoding["input_ids"],
                attention_mask=encoding["attention_mask"],
                output_hidden_states=True,
            ).hidden_states
        vectors.append(torch.stack([layer[0, is_kept].mean(dim=0) for layer in hidden]))
    return torch.stack(vectors, dim=1)


def check_numbers(name):
    model, tokenizer = make_model(name)
    result = outcome(Case(model, tokenizer), "states")
    if isinstance(result, str):
        assert name in REFUSED
        return
    expected = reference(model, tokenizer, FIRST)
    torch.testing.assert_close(result.vectors, expected, rtol=1e-4, atol=1e-5)
    word_states = isogloss.states(model, tokenizer, [text.split() for text in FIRST], words="average")
    assert word_states.sentences == tuple(index for index in range(8) for _ in range(5))
    assert bool(word_states.vectors.isfinite().all())


REFUSED = ("convbert", "fnet")
"""Their states of a text change with the padding after it, as transformers computes them."""


@pytest.mark.parametrize("name", SAMPLE)
def test_states_are_those_that_transformers_computes(name):
    check_numbers(name)


@pytest.mark.nightly
@pytest.mark.parametrize("name", MODELS)
def test_states_of_any_family_are_those_that_transformers_computes(name):
    check_numbers(name)


def check_words(name):
    """Compare the states of words with transformers' for a sentence of words, where it splits as isogloss."""
    model, tokenizer = make_model(name)
    sentences = [text.split() for text in FIRST]
    vectors = isogloss.states(model, tokenizer, sentences, words="average").vectors
    expected = []
    for words in sentences:
        encoding = tokenizer(words, is_split_into_words=True, return_tensors="pt")
        encoder = model.get_encoder() if model.config.is_encoder_decoder else model
        inputs = {key: encoding[key] for key in ("input_ids", "attention_mask")}
        with torch.no_grad():
            hidden = torch.stack(encoder(**inputs, output_hidden_states=True).hidden_states)[:, 0]
        for index in range(len(words)):
            kept_values = [word == index for word in encoding.word_ids()]
            expected.append(hidden[:, kept_values].mean(dim=1))
    torch.testing.assert_close(vectors, torch.stack(expected, dim=1), rtol=1e-4, atol=1e-5)


WITH_WORD_PIECES = [
    name
    for name, (_, kind, _) in MODELS.items()
    if kind not in ("bytes", "gpt", "closed") and name not in REFUSED
]
"""Tokenizers that are not of bytes, whose first word has no space. Closed ones are opened as well."""


@pytest.mark.parametrize("name", ["bert", "gemma3_text", "nllb"])
def test_states_of_words_are_those_that_transformers_computes(name):
    check_words(name)


@pytest.mark.nightly
@pytest.mark.parametrize("name", WITH_WORD_PIECES)
def test_states_of_words_of_any_family_are_those_that_transformers_computes(name):
    check_words(name)


def add_adapters(model, kind="LoraConfig", **fields):
    """Return a model of peft whose adapters change its states."""
    import peft

    wrapped_peft_model = peft.get_peft_model(model, getattr(peft, kind)(**fields))
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        for name, weight in wrapped_peft_model.named_parameters():
            if "lora_B" in name or "ia3" in name:
                weight.normal_(std=0.3)
    return wrapped_peft_model.eval()


def distribute_model(model):
    if not torch.distributed.is_initialized():
        store = torch.distributed.HashStore()
        torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    return nn.parallel.DistributedDataParallel(model)


def compiled_in_place(model):
    model.compile(backend="eager")
    return model


class SentenceModel(nn.Sequential):
    """As sentence-transformers has them: a model of transformers within the first module, then others."""

    max_seq_length = 20
    prompts = None
    default_prompt_name = None

    class Transformer(nn.Module):
        def __init__(self, model):
            super().__init__()
            self.auto_model = model

    class Pooling(nn.Module):
        def forward(self, features):
            return {**features, "sentence_embedding": features["token_embeddings"][:, 0]}

    class Normalize(nn.Module):
        def forward(self, features):
            return {"sentence_embedding": nn.functional.normalize(features["sentence_embedding"], dim=1)}


def make_sentence_model(model):
    parts = SentenceModel.Transformer(model), SentenceModel.Pooling(), SentenceModel.Normalize()
    return SentenceModel(*parts).eval()


WRAPPED = {
    "DataParallel": nn.DataParallel,
    "DistributedDataParallel": distribute_model,
    "compiled": lambda model: torch.compile(model, backend="eager"),
    "compiled in place": compiled_in_place,
    "LoRA": lambda model: add_adapters(model, target_modules="all-linear"),
    "IA3": lambda model: add_adapters(
        model,
        "IA3Config",
        target_modules="all-linear",
        feedforward_modules=[],
        task_type="FEATURE_EXTRACTION",
    ),
    "LoRA in DataParallel": lambda model: nn.DataParallel(add_adapters(model, target_modules="all-linear")),
    "sentence-transformers": make_sentence_model,
    "in training": lambda model: model.train(),
    "float16": lambda model: model.half(),
    "bfloat16": lambda model: model.bfloat16(),
    "float64": lambda model: model.double(),
}
"""By name: what a user may make of a model."""


def plain(wrapped_model):
    """Return a copy of what is wrapped, in evaluation mode and float32."""
    inner = wrapped_model
    for name in ("module", "_orig_mod"):
        inner = getattr(inner, name, inner)
    inner = inner[0].auto_model if isinstance(inner, nn.Sequential) else inner
    inner._compiled_call_impl = None
    copied_inner = deepcopy(inner).float().eval()
    return (
        getattr(copied_inner, "base_model", copied_inner)
        if hasattr(copied_inner, "peft_config")
        else copied_inner
    )


@pytest.fixture(params=WRAPPED)
def wrapped_case(request):
    """A small model, as wrapped by each in turn."""
    model, tokenizer = make_model("bert")
    yield Case(WRAPPED[request.param](model), tokenizer)
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def test_states_of_a_wrapped_model_are_those_of_the_model_in_float32(wrapped_case):
    vectors = isogloss.states(*wrapped_case.loaded, FIRST).vectors
    torch.testing.assert_close(
        vectors, reference(plain(wrapped_case.model), wrapped_case.tokenizer, FIRST), rtol=1e-4, atol=1e-5
    )


@pytest.mark.slow
@pytest.mark.every_case
def test_each_function_of_a_wrapped_model_gives_a_result_or_says_what_to_do(wrapped_case):
    refused_calls = [call for call in CALLS if isinstance(check(wrapped_case, call), str)]
    parallel_texts = {"AlignmentLoss", "MetaLearner of names", "MetaLearner of languages"}
    has_own_gradients = isinstance(wrapped_case.model, nn.DataParallel | nn.parallel.DistributedDataParallel)
    assert set(refused_calls) == (parallel_texts if has_own_gradients else set())


@pytest.mark.parametrize("normalized_value", [0, 1])
def test_the_pooling_of_a_sentence_model_is_used_where_it_is_asked_for(normalized_value):
    model, tokenizer = make_model("bert")
    sentences = make_sentence_model(model)[: 2 + normalized_value]
    sentences.max_seq_length = 5
    vectors = isogloss.states(sentences, tokenizer, FIRST, pooling="model").vectors
    with torch.no_grad():
        encoding = tokenizer(FIRST, return_tensors="pt", truncation=True, max_length=5, padding=True)
        encoding.pop("token_type_ids", None)
        expected = model(**encoding).last_hidden_state[:, 0]
    expected = nn.functional.normalize(expected, dim=1) if normalized_value else expected
    torch.testing.assert_close(vectors[0], expected)
    with pytest.warns(UserWarning, match="pooling"):
        isogloss.retrieval(sentences, tokenizer, FIRST, SECOND)


def test_a_real_sentence_model_is_read_as_it_encodes():
    library = pytest.importorskip("sentence_transformers")
    model, tokenizer = isogloss.load_encoder("shipped")
    sentences = library.SentenceTransformer(modules=list(library_parts(library, model)))
    vectors = isogloss.states(sentences, sentences.tokenizer, FIRST, pooling="model").vectors
    torch.testing.assert_close(vectors[0], torch.as_tensor(sentences.encode(FIRST)), rtol=1e-4, atol=1e-5)
    assert len(isogloss.cka(sentences, tokenizer, FIRST, SECOND)) == model.config.num_hidden_layers + 1


def library_parts(library, model):
    encoder = library.models.Transformer(model.config.name_or_path)
    return encoder, library.models.Pooling(model.config.hidden_size, "cls"), library.models.Normalize()


def meta(case):
    return Case(deepcopy(case.model).to("meta"), case.tokenizer)


def add_prompt(case):
    import peft

    config = peft.PromptTuningConfig(num_virtual_tokens=2, task_type="FEATURE_EXTRACTION")
    return Case(peft.get_peft_model(case.model, config), case.tokenizer)


UNREADABLE = {
    "weights that are not loaded": (meta, ("BertModel", "meta device", "from_pretrained")),
    "virtual subwords": (add_prompt, ("PROMPT_TUNING", "LoRA")),
    "a tokenizer as model": (
        lambda case: SimpleNamespace(loaded=case.loaded[::-1]),
        ("found a ", "expected a model"),
    ),
    "a model as tokenizer": (lambda case: SimpleNamespace(loaded=(case.model,) * 2), ("BertModel as tok",)),
    "another module": (lambda case: SimpleNamespace(loaded=(nn.Linear(2, 2), case.tokenizer)), ("Linear",)),
    "a slow tokenizer": (
        lambda case: SimpleNamespace(loaded=(case.model, slow(case.tokenizer))),
        ("which word", "use_fast"),
    ),
}


def slow(tokenizer):
    def call(*texts, **options):
        return tokenizer(*texts, **options)

    call.pad_token_id = 0
    call.is_fast = False
    return call


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_has_no_states_is_refused_with_what_to_give(name):
    change, facts = UNREADABLE[name]
    changes = change(case_of("bert"))
    with says(ModelError, "states", *facts):
        isogloss.states(*changes.loaded, FIRST, words="average")


def test_layers_of_other_families_are_rows_of_a_conflict():
    case = case_of("gpt2")
    rows = isogloss.gradient_conflict(case.model, case.batches(), case.loss, **QUIET)
    assert sorted(rows["layer"].dropna().unique()) == [1, 2, 3]


def test_layers_of_a_peft_model_are_rows_of_a_conflict():
    model, tokenizer = make_model("bert")
    case = Case(add_adapters(model, target_modules=["query", "dense"]), tokenizer)
    rows = isogloss.gradient_conflict(case.model, case.batches(), case.loss, **QUIET)
    modules = set(zip(rows["layer"].fillna(-1), rows["module"], strict=True))
    assert modules >= {(1, "attention"), (3, "feed-forward")}
    assert (-1, "head") not in modules
