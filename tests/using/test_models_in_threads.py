"""A server answers from many threads while a model is trained: all models and answers stay as they are."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count, takewhile

import pytest
import torch

from isogloss.core.run_parts import Modules
from isogloss.data.examples import TaggedSentence
from isogloss.encoders.added.active_language import LanguageMaps, attach_language_maps
from isogloss.encoders.added.language_layers import LanguageMap
from isogloss.encoders.added.language_modules import add_modules
from shared_models import (
    FIRST,
    SECOND,
    differences,
    encode_texts,
    list_changes,
    list_state,
    numbers,
    observe,
    random_states,
    train,
)

KINDS = ("tagger", "pairs", "mixing", "modules", "maps")
FAMILIES = ("xlm-roberta", "distilbert", "deberta-v2", "modernbert")
STATES_ONLY = ("deberta-v2", "modernbert")
"""Families whose layers mix their states and cannot mix the outputs of self-attention."""

THREADS = 8
SECONDS = 600
"""Seconds of all kinds and families of models together in the nightly run."""

LONG = [f"{first_part} {second}" * 3 for first_part, second in zip(FIRST, SECOND, strict=True)]
LABELLED = [
    TaggedSentence(id=str(index), words=tuple(text.split()), tags=("NOUN",) * len(text.split()))
    for index, text in enumerate(FIRST)
]


def with_modules(model):
    """Give a model adapters of languages that differ."""
    add_modules(model.network, Modules(kind="adapter"), ("en", "de"), seed=0)
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for name, weight in model.network.named_parameters():
            if "_language_" in name or "languages" in name:
                weight.add_(0.3 * torch.randn(weight.shape, generator=generator))
    return model


def with_maps(model):
    """Map the states of German to the states of English."""
    dim = model.network.config.hidden_size
    rotation = torch.linalg.qr(torch.randn(dim, dim, generator=torch.Generator().manual_seed(3)))[0]
    attach_language_maps(model.network, LanguageMaps("en", {"de": LanguageMap(rotation, torch.zeros(dim))}))
    return model


@pytest.fixture(params=KINDS)
def kind(request, make_model, make_mixing):
    """A kind of model from a folder, and calls of it by name."""

    def make(folder):
        form = request.param
        if form == "mixing":
            model = make_mixing(encoder=folder)
            if model.network.config.model_type in STATES_ONLY:
                model = replace(model, mixup=replace(model.mixup, mixed="states"))
        else:
            model = make_model("nli" if form == "pairs" else "upos", folder)
        model = {"modules": with_modules, "maps": with_maps}.get(form, lambda measurements: measurements)(
            model
        )
        return replace(model, precision="bfloat16"), calls(form)

    return make


def calls(form):
    if form == "pairs":
        pairs = list(zip(FIRST, SECOND, strict=True))
        return {
            "predict": lambda model: model.predict(pairs),
            "probabilities": lambda model: model.predict(pairs, scores=True),
            "one by one": lambda model: [model.predict([pair]) for pair in pairs],
        }
    row = {
        f"predict {language}": lambda model, language=language: model.predict(LONG, language=language)
        for language in ("en", "de")
    }
    row["probabilities"] = lambda model: model.predict(FIRST, language="de", scores=True)
    row["measures"] = lambda measurements: measurements.measures(LABELLED, language="de")
    row["score"] = lambda measurements: measurements.score(LABELLED, language="en")
    if form == "mixing":
        row["mixed"] = lambda model: model.predict(FIRST, language="de", translations=SECOND)
    return row


def check_threads(make, folder, *, seconds):
    """Let threads use a model that stays and one that this thread trains in the meantime."""
    (model, called_fields), (trained_model, _), (single_model, _) = (make(folder) for _ in range(3))
    network = model.network
    for learner in (trained_model, single_model):
        learner.network.train()
    ratio = model.mixup and numbers(model.mixup.ratio_module)
    expected = {name: call(model) for name, call in called_fields.items()}
    state_before = list_state(network)
    values = numbers(network)
    trained_state = list_state(trained_model.network)
    until = time.monotonic() + seconds
    wrong = []
    turns = iter(list(called_fields) * 10**6)
    left = count(2 * THREADS, -1)

    def ask(_):
        for name in turns:
            try:
                if called_fields[name](model) != expected[name]:
                    wrong.append(name)
                called_fields[name](trained_model)
            except Exception as error:
                wrong.append((name, repr(error)))
            if differences(state_before, list_state(network)):
                wrong.append(differences(state_before, list_state(network)))
            if next(left) < THREADS and time.monotonic() > until:
                return

    inputs = [encode_texts(model.tokenizer, texts) for texts in (FIRST, SECOND)]
    with ThreadPoolExecutor(THREADS) as pool:
        asking = [pool.submit(ask, index) for index in range(THREADS)]
        going_on = takewhile(lambda _: not all(arguments.done() for arguments in asking), count())
        modes = list(train(trained_model.network, inputs, going_on, "de"))
    drawn_random_states = random_states()
    assert wrong == []
    assert modes == list(train(single_model.network, inputs, range(len(modes)), "de"))
    assert random_states() == drawn_random_states
    assert list_changes(numbers(single_model.network), trained_model.network) == []
    assert differences(trained_state, list_state(trained_model.network)) == []
    assert differences(state_before, list_state(network)) == []
    assert list_changes(values, network) == []
    assert ratio is None or list_changes(ratio, model.mixup.ratio_module) == []


@pytest.mark.slow
def test_answers_in_threads_are_those_of_one_thread_while_a_model_is_trained(kind, bert_folder):
    check_threads(kind, bert_folder, seconds=0)


@pytest.mark.nightly
@pytest.mark.parametrize("family", FAMILIES)
def test_answers_in_threads_are_those_of_one_thread_for_minutes_of_training(kind, family, request):
    folder = request.getfixturevalue(f"{family.replace('-', '_')}_folder")
    check_threads(kind, folder, seconds=SECONDS / len(KINDS) / len(FAMILIES))


def test_a_model_stays_as_it_is_while_it_answers(make_model):
    model = replace(make_model(), precision="bfloat16")
    model.network.train()
    looks = []
    with observe(model.network, lambda: looks.append(differences(state_before, list_state(model.network)))):
        state_before = list_state(model.network)
        model.predict(FIRST)
    assert looks and not any(looks)
    assert model.network.training


def test_an_export_after_threads_has_the_weights_in_float32(make_model, tmp_path):
    from safetensors.torch import load_file

    model = replace(make_model(), precision="bfloat16")
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: model.predict(FIRST), range(6)))
    model.export(tmp_path / "exported")
    weights = load_file(tmp_path / "exported" / "model.safetensors")
    assert {weight.dtype for weight in weights.values()} == {torch.float32}
