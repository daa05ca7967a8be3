"""What is pushed is the export, with a card that the hub can read; what goes wrong says what to do."""

import os
import re
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_hub import STRANGER, TOKEN, FakeHub, fake_hub
from huggingface_hub import ModelCard, constants

from isogloss.core.errors import ConfigError, RunError
from isogloss.core.processes import this_process
from isogloss.using import load_model
from isogloss.using.exporting import card, export, front_matter
from isogloss.using.provenance import licence_of, non_commercial

SCORES = tuple(
    {"corpus": corpus, "language": language, "split": "test", "metric": "accuracy", "score": score}
    for corpus, language, score in (
        ("ud", "en", 0.9),
        ("ud", "zh_Hant", 0.5),
        ("ud PUD translated", "en", 0.7),
    )
)
COMMIT = "0123456789abcdef" * 2 + "01234567"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeHub]:
    """A hub of this machine, with a login; HF_ENDPOINT and the like are read when the library is imported."""
    with fake_hub() as found:
        monkeypatch.setattr(constants, "ENDPOINT", found.address)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-token"))
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield found


@pytest.mark.slow
def test_the_hub_receives_the_export_in_one_commit(hub, make_model, tmp_path):
    model = make_model(scores=SCORES)
    assert model.push("me/tagger", private=True) == f"{hub.address}/me/tagger/commit/{'c' * 40}"
    repository, exported = hub.repositories["me/tagger"], export(model, tmp_path / "exported")
    received = repository.branches["main"]
    assert repository.private
    assert re.fullmatch(
        r"source-only: made-up upos en, seed 0 \(run 0123456789ab, isogloss .*\)", *repository.messages
    )
    written = {path.name: path.read_bytes() for path in exported.iterdir()}
    assert {**received, "README.md": b""} == {**written, "README.md": b""}
    assert received["README.md"].decode() == card(model, onnx=False, address="me/tagger")
    assert 'model="me/tagger"' in received["README.md"].decode()
    for name, body in received.items():
        (tmp_path / "got").mkdir(exist_ok=True)
        (tmp_path / "got" / name).write_bytes(body)
    words = [["the", "words"], ["of", "a", "sentence"]]
    assert load_model(tmp_path / "got").predict(words) == model.predict(words)

    with pytest.raises(ConfigError, match=r"me/tagger exists already. Choose another name, or .* --update"):
        model.push("me/tagger")
    repository.branches["main"]["mixup.json"] = b"of an earlier model"
    model.push("tagger", update=True)  # A name alone is one of the own account.
    assert {*repository.branches["main"]} == {*written}
    model.push("me/tagger", update=True, revision="epoch-3")
    assert {*repository.branches["epoch-3"]} == {*written}
    assert len(repository.messages) == 3


@pytest.mark.slow
def test_every_trouble_with_the_hub_says_what_to_do(hub, make_model, monkeypatch):
    model = make_model()
    with pytest.raises(
        ConfigError, match=r"push: 'a/b/c' is no name of a model on the hub .* Give owner/name"
    ):
        model.push("a/b/c")
    with pytest.raises(ConfigError, match=r"--revision 'a b': ' ' is not allowed there .* as in v1 or main"):
        model.push("me/tagger", revision="a b")
    monkeypatch.setenv("HF_TOKEN", "hf_forged")
    with pytest.raises(
        ConfigError, match=r"the hub does not accept the login .*Invalid username.*hf auth login"
    ):
        model.push("me/tagger")
    monkeypatch.setenv("HF_TOKEN", STRANGER)
    with pytest.raises(
        ConfigError, match=r"may not write to me/tagger .*rights.* Use a token with write access"
    ):
        model.push("me/tagger")
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(
        ConfigError, match=r"push: this machine is not logged in to the Hugging Face hub\. .*hf auth login"
    ):
        model.push("me/tagger")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(
        RunError, match=r"hub \(http://127\.0\.0\.1:9\) cannot be reached .* Run the same comm"
    ):
        model.push("me/tagger")
    assert not hub.repositories


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            (500, {"error": f"bad token Bearer {TOKEN}"}),
            r"the hub refused me/tagger \(500: bad token Bearer \*\*\*",
        ),
        (
            (200, {"nothing": "of use"}),
            r"the hub \(http.*\) sent an answer that isogloss cannot read .*KeyError: 'url'",
        ),
        ((200, ["no", "object"]), r"the hub \(http.*\) sent an answer that isogloss cannot read"),
        ((200, {"url": 5}), r"the hub \(http.*\) sent an answer that isogloss cannot read"),
    ],
)
def test_a_hub_that_answers_nonsense_or_with_the_token_is_one_line_without_it(
    hub, make_model, monkeypatch, answer, said
):
    monkeypatch.setattr(hub, "_created", lambda _: answer)
    with pytest.raises((RunError, ConfigError), match=said) as error:
        make_model().push("me/tagger")
    assert TOKEN not in "".join(traceback.format_exception(error.value))


@pytest.mark.slow
def test_the_folder_of_a_push_that_was_killed_is_removed_by_the_next(hub, make_model, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache = tmp_path / "isogloss"
    left = cache / f".push.{this_process().replace(f'-{os.getpid()}-', '-999999-')}.tmp"
    (left / "model").mkdir(parents=True)
    make_model().push("me/tagger")
    assert list(cache.iterdir()) == []


def data_of(model):
    """Read a card's front matter as the hub's library does."""
    return ModelCard(card(model, onnx=False)).data


def test_the_hub_reads_base_datasets_languages_and_scores_in_its_own_words(make_model):
    about = data_of(make_model(scores=SCORES, target=("zh_Hant", "qab")))
    assert about.language == ["en", "zh-Hant"]
    assert (about.library_name, about.pipeline_tag) == ("transformers", "token-classification")
    assert about.metrics == ["accuracy"]
    assert about.datasets == ["universal-dependencies/universal_dependencies"]
    assert (about.license, about.license_name) == ("other", "that-of-ud")
    assert about.base_model is None
    found = {(one.dataset_config, one.dataset_split, one.metric_value) for one in about.eval_results}
    assert found == {("en", "test", 0.9), ("zh-Hant", "test", 0.5), ("en PUD translated", "test", 0.7)}
    assert {one.task_type for one in about.eval_results} == {"token-classification"}


def test_the_hubs_name_of_dev_is_validation(make_model):
    (result,) = data_of(make_model(scores=({**SCORES[0], "split": "dev"},))).eval_results
    assert result.dataset_split == "validation"


def test_a_model_without_scores_or_real_languages_has_no_such_entries(make_model):
    about = data_of(make_model("qa", source=("qaa",), corpus="squad"))
    assert (about.language, about.datasets, about.metrics, about.eval_results) == (None, None, None, None)
    assert (about.license, about.pipeline_tag) == ("apache-2.0", "question-answering")


@pytest.mark.parametrize(
    ("encoder", "base"),
    [
        (f"FacebookAI/xlm-roberta-base@{COMMIT}", "FacebookAI/xlm-roberta-base"),
        (f"bert-base-cased@{COMMIT}, cross-lingual-adjustment on en-es", "bert-base-cased"),
        ("my-folder", None),
        ("bert 4x256, pretrained on en de", None),
    ],
)
def test_the_base_model_is_that_of_the_hub_it_began_with(make_model, bert_folder, encoder, base):
    model = make_model()
    object.__setattr__(model.provenance, "encoder", encoder)
    assert data_of(model).base_model == base


@pytest.mark.parametrize(
    ("corpus", "licence", "is_warned"),
    [
        ("snli", "cc-by-sa-4.0", False),
        ("masakhapos", "cc-by-nc-4.0", True),
        ("ud", "other", True),
        ("wikiann", "other", False),
        ("unheard-of", None, False),
    ],
)
def test_the_licence_is_that_of_the_corpus_and_what_is_not_commercial_is_warned_of(
    make_model, corpus, licence, is_warned
):
    model = make_model(corpus=corpus)
    assert licence_of(model.provenance) == licence
    warning = non_commercial(model.provenance)
    assert bool(warning) == is_warned
    assert ("**Not for commercial use:**" in card(model, onnx=False)) == is_warned
    assert not warning or f"corpus {corpus} (" in warning


def test_a_title_with_signs_of_yaml_stays_a_title(make_model):
    model = make_model(title='a: "b" #c\n- d', scores=SCORES)
    assert data_of(model).model_name == 'a: "b" #c\n- d'
    assert "\n---" not in front_matter(model)
