"""Pushed files equal the export, with a card that the hub can read. Errors give advice."""

import os
import re
import signal
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from huggingface_hub import ModelCard, constants, parse_eval_result_entries

from fake_hub import ATTRIBUTES, STRANGER, TOKEN, FakeHub, fake_hub
from isogloss.core.errors import ConfigError, RunError
from isogloss.core.processes import this_process
from isogloss.features.publishing.exporting import card, export, front_matter
from isogloss.features.publishing.licences import licence_of, non_commercial
from isogloss.using import load_model

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
    """A hub of this machine, with a login. HF_ENDPOINT and the like are read when the library is imported."""
    with fake_hub() as result:
        monkeypatch.setattr(constants, "ENDPOINT", result.address)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-token"))
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield result


@pytest.mark.slow
def test_the_hub_receives_the_export_in_one_commit(hub, make_model, tmp_path):
    model = make_model(scores=SCORES)
    assert model.push("me/tagger", private=True) == f"{hub.address}/me/tagger/commit/{'c' * 40}"
    repository = hub.repositories["me/tagger"]
    exported_path = export(model, tmp_path / "exported")
    received_bodies = {name: body for name, body in repository.branches["main"].items() if name != ATTRIBUTES}
    assert repository.private
    assert re.fullmatch(
        r"source-only: made-up upos en, seed 0 \(run 0123456789ab, isogloss .*\)", *repository.messages
    )
    contents = {
        path.relative_to(exported_path).as_posix(): path.read_bytes()
        for path in exported_path.rglob("*")
        if path.is_file()
    }
    assert ".eval_results/ud.yaml" in contents
    assert {**received_bodies, "README.md": b""} == {**contents, "README.md": b""}
    assert received_bodies["README.md"].decode() == card(model, onnx=False, address="me/tagger")
    assert 'model="me/tagger"' in received_bodies["README.md"].decode()
    for name, body in received_bodies.items():
        path = tmp_path / "got" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
    words = [["the", "words"], ["of", "a", "sentence"]]
    assert load_model(tmp_path / "got").predict(words) == model.predict(words)

    repository.branches["main"]["mixup.json"] = b"of an earlier model"
    with pytest.raises(ConfigError, match=r"me/tagger.*--update"):
        model.push("me/tagger")
    model.push("tagger", update=True)  # A name without owner belongs to the user's account.
    assert set(repository.branches["main"]) == {*contents, ATTRIBUTES}
    model.push("me/tagger", update=True, revision="epoch-3")
    assert set(repository.branches["epoch-3"]) == {*contents, ATTRIBUTES}
    assert len(repository.messages) == 3


@pytest.mark.slow
def test_every_trouble_with_the_hub_says_what_to_do(hub, make_model, monkeypatch):
    model = make_model()
    with pytest.raises(ConfigError, match=r"push: .*'a/b/c'.*owner/name"):
        model.push("a/b/c")
    with pytest.raises(ConfigError, match=r"--revision 'a b': .*' '.*v1"):
        model.push("me/tagger", revision="a b")
    monkeypatch.setenv("HF_TOKEN", "hf_forged")
    with pytest.raises(ConfigError, match="hub"):
        model.push("me/tagger")
    monkeypatch.setenv("HF_TOKEN", STRANGER)
    with pytest.raises(ConfigError, match="me/tagger"):
        model.push("me/tagger")
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(ConfigError, match="push:"):
        model.push("me/tagger")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(RunError, match=r"hub \(http://127\.0\.0\.1:9\)"):
        model.push("me/tagger")
    assert not hub.repositories


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            (500, {"error": f"bad token Bearer {TOKEN}"}),
            r"me/tagger \(500:",
        ),
        (
            (200, {"nothing": "of use"}),
            "KeyError:.*'url'",
        ),
        ((200, ["no", "object"]), "hub.*sent.*answer.*isogloss"),
        ((200, {"url": 5}), "hub.*sent.*answer.*isogloss"),
    ],
)
def test_a_hub_that_answers_nonsense_or_with_the_token_is_one_line_without_it(
    hub, make_model, monkeypatch, answer, message
):
    monkeypatch.setattr(hub, "_created", lambda _: answer)
    with pytest.raises((RunError, ConfigError), match=message) as error:
        make_model().push("me/tagger")
    assert TOKEN not in "".join(traceback.format_exception(error.value))


@pytest.mark.nightly
@pytest.mark.slow
def test_the_folder_of_a_push_that_was_killed_is_removed_by_the_next(hub, make_model, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache = tmp_path / "isogloss"
    left = cache / f".push.{this_process().replace(f'-{os.getpid()}-', '-999999-')}.tmp"
    (left / "model").mkdir(parents=True)
    make_model().push("me/tagger")
    assert list(cache.iterdir()) == []


def killed_at(hub, monkeypatch, push, index, *, is_answered):
    """Push in a process that is killed at a request, obeyed or not. Return whether it was killed."""
    answer = hub.answer
    requests = []
    pushing = []

    def answer_and_kill(*request):
        requests.append(request)
        if len(requests) != index:
            return answer(*request)
        answered_value = answer(*request) if is_answered else (500, {})
        os.kill(pushing[0], signal.SIGKILL)
        return answered_value

    monkeypatch.setattr(hub, "answer", answer_and_kill)
    process = os.fork()
    if not process:
        try:
            push()
        finally:
            os._exit(0)
    pushing.append(process)
    status = os.waitpid(process, 0)[1]
    monkeypatch.setattr(hub, "answer", answer)
    return os.WIFSIGNALED(status)


STEPS = [(index, is_answered) for index in range(1, 13) for is_answered in (False, True)]


def check_repeated_push(hub, monkeypatch, model, index, is_answered, options):
    """Kill a push and repeat it. Return whether it was killed."""
    if not killed_at(
        hub, monkeypatch, lambda: model.push("me/tagger", **options), index, is_answered=is_answered
    ):
        return False
    branches = hub.repositories["me/tagger"].branches if hub.repositories else {}
    half_differences = [set(files) - {ATTRIBUTES} for files in branches.values()]
    address = model.push("me/tagger", **options)
    assert address == f"{hub.address}/me/tagger/commit/{'c' * 40}"
    repository = hub.repositories["me/tagger"]
    whole_difference = set(repository.branches[options.get("revision", "main")]) - {ATTRIBUTES}
    assert all(files in (set(), whole_difference) for files in half_differences)
    assert "model.safetensors" in whole_difference
    assert len(repository.messages) == 1
    assert repository.private == options.get("private", False)
    return True


OPTIONS = [{}, {"private": True}, {"revision": "v1"}]


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_push_that_was_killed_when_its_repository_was_made_can_be_repeated(
    hub, make_model, monkeypatch, options
):
    model = make_model()
    numbers = (2, 3)
    for index in numbers:
        hub.repositories.clear()
        assert check_repeated_push(hub, monkeypatch, model, index, True, options)


@pytest.mark.nightly
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_push_that_was_killed_at_any_request_can_be_repeated(hub, make_model, monkeypatch, options):
    model = make_model()
    killed_repeated_pushes = []
    for step, is_answered in STEPS:
        hub.repositories.clear()
        hub.large.clear()
        killed_repeated_pushes.append(
            check_repeated_push(hub, monkeypatch, model, step, is_answered, options)
        )
    assert sum(killed_repeated_pushes) >= 12
    assert not killed_repeated_pushes[-1], "there are more requests than steps"


@pytest.mark.slow
def test_a_private_push_does_not_go_into_a_public_repository(hub, make_model):
    model = make_model()
    model.push("me/tagger")
    with pytest.raises(ConfigError, match="me/tagger exists"):
        model.push("me/tagger", private=True)
    hub.repositories["me/tagger"].branches["main"].clear()
    with pytest.raises(ConfigError, match="me/tagger exists"):
        model.push("me/tagger", private=True)


@pytest.mark.nightly
@pytest.mark.slow
def test_a_repository_with_files_on_another_branch_is_not_written_to(hub, make_model):
    model = make_model()
    model.push("me/tagger", revision="v1")
    with pytest.raises(ConfigError, match="me/tagger exists"):
        model.push("me/tagger")
    assert set(hub.repositories["me/tagger"].branches["main"]) == {ATTRIBUTES}


def data_of(model):
    """Read a card's front matter as the hub's library does."""
    return ModelCard(card(model, onnx=False)).data


def test_the_hub_reads_base_datasets_languages_and_scores_in_its_own_words(make_model):
    model_card = data_of(make_model(scores=SCORES, target=("zh_Hant", "qab")))
    assert model_card.language == ["en", "zh-Hant"]
    assert (model_card.library_name, model_card.pipeline_tag) == ("transformers", "token-classification")
    assert model_card.metrics == ["accuracy"]
    assert model_card.datasets == ["universal-dependencies/universal_dependencies"]
    assert (model_card.license, model_card.license_name) == ("other", "that-of-ud")
    assert model_card.base_model is None


def test_scores_on_datasets_of_the_hub_are_eval_results_and_no_model_index(make_model, tmp_path):
    model = make_model(
        scores=(
            *SCORES,
            {**SCORES[0], "corpus": "udpos", "split": "dev", "examples": 7},
            {**SCORES[0], "corpus": "mine"},
        )
    )
    folder = model.export(tmp_path / "exported")
    files = sorted((folder / ".eval_results").iterdir())
    entries = {
        file.name: [
            (entry.dataset_id, entry.task_id, entry.value, entry.notes)
            for entry in parse_eval_result_entries(yaml.safe_load(file.read_text(encoding="utf-8")))
        ]
        for file in files
    }
    treebanks = "universal-dependencies/universal_dependencies"
    assert entries == {
        "ud.yaml": [(treebanks, "en_ewt", 90.0, "accuracy, test")],
        "udpos.yaml": [("google/xtreme", "udpos.English", 90.0, "accuracy, validation, 7 examples")],
    }
    assert "model-index" not in (folder / "README.md").read_text(encoding="utf-8")
    assert model.export(folder) == folder


def test_a_model_without_scores_or_real_languages_has_no_such_entries(make_model):
    model_card = data_of(make_model("qa", source=("qaa",), corpus="squad"))
    assert (model_card.language, model_card.datasets, model_card.metrics, model_card.eval_results) == (
        None,
        None,
        None,
        None,
    )
    assert (model_card.license, model_card.pipeline_tag) == ("apache-2.0", "question-answering")


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


def test_a_title_with_signs_of_yaml_is_no_part_of_the_front_matter(make_model):
    model = make_model(title='a: "b" #c\n- d', scores=SCORES)
    assert front_matter(model) == front_matter(make_model(scores=SCORES))
