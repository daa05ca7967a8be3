"""A captured update is the update as ever: here on a processor, where it is called again on one memory."""

import json
import shutil
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pytest
import torch

from isogloss.core.errors import ConfigError
from isogloss.core.run_parts import Updates, with_fields
from isogloss.data.examples import SentencePair
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.tasks import TASKS
from isogloss.tasks.batch import LABELS_ROUNDED_TO, ROUNDED_TO, collate
from isogloss.training import captured
from isogloss.training.captured import Captured
from isogloss.training.checkpoints import Checkpoints
from isogloss.training.fine_tuning import fine_tune
from isogloss.training.fit import Callbacks, fit
from isogloss.training.memory import ran_out
from isogloss.training.optimizer import adamw, set_rate
from made_up import on, tagged_sentences
from made_up_text import METHOD, text_setting
from toys import UPDATES as EVER
from toys import Drawn, Points, loss, no_time, toy
from trained import equal, weights

CAPTURED = replace(EVER, capture=True)


@dataclass(frozen=True)
class RoundedPoints(Points):
    is_rounded: bool = True

    def to(self, device):
        return RoundedPoints(self.x.to(device), self.y.to(device))


class RoundedDraws(Drawn):
    def __getitem__(self, step):
        points = super().__getitem__(step)
        rows = 8 if step % 3 else 5
        return RoundedPoints(points.x[:rows], points.y[:rows])


@pytest.fixture
def replays(monkeypatch):
    """Return the shapes of the updates that were replayed, as they come."""
    shapes = []
    capture = Captured._capture

    def count_replay(self, batch):
        result = capture(self, batch)

        def replay():
            shapes.append(captured._shape(batch))
            return result.replay()

        return replace(result, replay=replay)

    monkeypatch.setattr(Captured, "_capture", count_replay)
    return shapes


@dataclass(frozen=True)
class OnAnyDevice:
    """A batch that stays in the host's memory."""

    x: torch.Tensor

    def to(self, device):
        return self


def close(left, right, tolerance=1e-5):
    return all(torch.allclose(left[name], right[name], atol=tolerance, rtol=0) for name in left)


def test_captured_updates_are_those_of_a_training_without_with_its_dropout(replays):
    ever = toy()
    now = toy()
    rows = fit(ever, RoundedDraws(), loss, updates=EVER, seed=0)
    assert replays == []
    again = fit(now, RoundedDraws(), loss, updates=CAPTURED, seed=0)
    assert len(replays) == 10  # Twelve updates in two shapes: the first update of each is computed as ever.
    assert len(set(replays)) == 2
    assert close(weights(now), weights(ever), 1e-6)
    assert [row["loss"] for row in again] == pytest.approx([row["loss"] for row in rows], abs=1e-6)
    assert not close(weights(toy()), weights(ever), 0.1)


def test_the_rate_is_read_at_each_replay():
    model = toy()
    optimizer = adamw(model, CAPTURED)
    first_group, second = optimizer.param_groups
    rates = first_group["lr"], second["lr"]
    first_group["rate_multiple"] = 3.0
    set_rate(optimizer, 0.25)
    assert [float(rate) for rate in rates] == [0.75, 0.25]
    assert first_group["lr"] is rates[0]
    assert second["lr"] is rates[1]


def test_a_resumed_captured_training_is_one_that_was_not_interrupted(tmp_path):
    whole_toy = toy()
    resumed_toy = toy()

    def run(model, batches):
        callbacks = Callbacks(checkpoints=Checkpoints(tmp_path / str(id(model)), 5, no_time))
        fit(model, batches, loss, updates=CAPTURED, seed=0, callbacks=callbacks)

    run(whole_toy, RoundedDraws())
    with pytest.raises(KeyboardInterrupt):
        run(resumed_toy, RoundedDraws(stop=8))
    run(resumed_toy, RoundedDraws())
    assert equal(whole_toy, resumed_toy)


def test_batches_that_are_not_rounded_are_computed_as_ever(replays):
    ever = toy()
    now = toy()
    fit(ever, Drawn(), loss, updates=EVER, seed=0)
    fit(now, Drawn(), loss, updates=CAPTURED, seed=0)
    assert replays == []
    assert close(weights(now), weights(ever), 1e-6)


@pytest.mark.parametrize(
    ("also", "name"),
    [
        ({"accumulation": 2}, "accumulation"),
        ({"gradient_checkpointing": True}, "gradient_checkpointing"),
        ({"optimizer_states": "8-bit"}, "optimizer_states"),
    ],
)
def test_what_a_graph_cannot_contain_is_refused(also, name):
    with pytest.raises(ConfigError, match=f"{name}.*{name}"):
        Updates(capture=True, **also)
    assert Updates(capture=True, accumulation=1).capture


@pytest.fixture
def no_dropout(bert_folder, tmp_path):
    """Return the tiny encoder without dropout, whose draws depend on the width of a batch."""
    folder = shutil.copytree(bert_folder, tmp_path / "no_dropout")
    config = json.loads((folder / "config.json").read_text())
    config |= dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob"), 0.0)
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def rows_of(folder, count=8, task="upos"):
    examples = tagged_sentences("en", count) if task == "upos" else pairs(count)
    return TASKS[task].encode(examples, load_tokenizer(folder), limit=48, overlap=8)


def pairs(count):
    drawn_words = [
        (tagged_sentence.words, "entailment" if "cat" in tagged_sentence.words else "neutral")
        for tagged_sentence in tagged_sentences("en", count)
    ]
    return [
        SentencePair(id=str(n), first=" ".join(words), second=" ".join(words[1:]), label=label)
        for n, (words, label) in enumerate(drawn_words)
    ]


def round_batch(folder, task, count=8):
    """Return a batch, and the same in one of few shapes."""
    padding = load_tokenizer(folder).pad_token_id
    batch = collate(rows_of(folder, count, task), padding=padding)
    return batch, batch.rounded(padding=padding, longest=48, words=task == "upos")


@pytest.mark.each_value
@pytest.mark.parametrize("task", ["upos", "nli"])
def test_a_rounded_batch_has_the_loss_and_the_gradients_of_the_batch(any_folder, task):
    model = TASKS[task].head(str(any_folder), seed=0, attention="eager").eval()
    gradients = []
    batches = round_batch(any_folder, task)
    for batch in batches:
        model.zero_grad()
        value = TASKS[task].loss(model, batch)
        value.backward()
        gradients.append({name: weight.grad for name, weight in model.named_parameters()})
        gradients[-1] = {name: value for name, value in gradients[-1].items() if value is not None}
        gradients[-1]["loss"] = value.detach()
    assert batches[1].subwords.size(1) % ROUNDED_TO == 0
    assert len(batches[1].gold) == (LABELS_ROUNDED_TO if task == "upos" else 8)
    assert gradients[0].keys() == gradients[1].keys()
    assert close(*gradients, 1e-5)


def test_a_rounded_batch_is_never_wider_than_the_limit(no_dropout):
    batch = collate(rows_of(no_dropout, count=30), padding=0)
    width = batch.subwords.size(1)
    assert width % ROUNDED_TO
    assert batch.rounded(padding=0, longest=width, words=True).subwords.size(1) == width
    assert batch.rounded(padding=0, longest=width + 1, words=True).subwords.size(1) == width + 1


@pytest.mark.parametrize("change", [{"spans": True}, {"options": (2,) * 4}, {"soft": torch.ones(1)}])
def test_other_answers_than_labels_stay_as_they_are(no_dropout, change):
    batch = replace(collate(rows_of(no_dropout), padding=0), **change)
    assert batch.rounded(padding=0, longest=48, words=True) is batch


@pytest.mark.slow
def test_a_captured_fine_tuning_is_one_without(make_setting, no_dropout, tmp_path, replays):
    trainings = {}
    for capture in (None, True):
        folder = tmp_path / str(capture)
        setting = make_setting(
            epochs=3, learning_rate=5e-3, capture=capture, encoder=no_dropout, folder=folder
        )
        trainings[capture] = fine_tune(setting, on("en"))
    assert replays
    scores, losses = (
        [[row.get(name) for row in training.rows if name in row] for training in trainings.values()]
        for name in ("score", "loss")
    )
    assert scores[0] == pytest.approx(scores[1], abs=0.02)
    assert losses[0] == pytest.approx(losses[1], abs=1e-3)


def test_captured_masked_language_modelling_is_one_without(tmp_path, replays):
    trainings = []
    for capture in (None, True):
        method = with_fields(METHOD, capture=capture, steps=12)
        trainings.append(method.train(text_setting(tmp_path / str(capture))))
    assert replays
    assert close(*(weights(item) for item in trainings), 1e-4)


@pytest.mark.each_value
@pytest.mark.parametrize("task", ["upos", "nli"])
def test_nothing_in_an_update_depends_on_a_number_that_only_the_gpu_knows(any_folder, task, monkeypatch):
    """Graphs cannot contain branches and sizes that depend on values. These fail without numbers."""
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    model = TASKS[task].head(str(any_folder), seed=0, attention="sdpa").to("meta")
    batch = round_batch(any_folder, task)[1].to("meta")
    if model.config.model_type == "xmod":  # It picks the rows of each language by a mask.
        with pytest.raises(NotImplementedError):
            TASKS[task].loss(model, batch)
        return
    TASKS[task].loss(model, batch).backward()
    assert torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).is_meta


class Graph:
    """A CUDA graph of a machine without one: what is captured is computed, and replays are counted."""

    captured, replayed = [], []

    def replay(self):
        self.replayed.append(self)

    def pool(self):
        return 7


class OnGpu(RoundedPoints):
    def to(self, _):
        return OnGpu(self.x, self.y)


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.setattr(Graph, "captured", [])
    monkeypatch.setattr(Graph, "replayed", [])

    @contextmanager
    def graph(made, *, pool):
        made.captured.append(pool)
        yield

    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "graph", graph)
    return torch.device("cuda")


def test_on_a_gpu_each_shape_is_one_graph_and_all_share_their_memory(gpu):
    read = []

    def update(batch):
        read.append(batch.x)
        return batch.x.sum()

    do = Captured(update, gpu)
    batches = [OnGpu(torch.full((rows, 6), float(n)), torch.zeros(rows)) for n in range(4) for rows in (3, 5)]
    losses = [float(do(batch)) for batch in batches]
    assert Graph.captured == [None, 7]
    assert len(Graph.replayed) == 6  # All but the first of each.
    assert len(read) == 4  # The first of each shape, and what is captured of each.
    assert losses[:2] == [0.0, 0.0]
    assert read[2].tolist() == batches[6].x.tolist()  # A replay reads what was copied to its memory.
    assert read[3].tolist() == batches[7].x.tolist()


def test_an_update_that_no_graph_can_contain_is_named(gpu):
    def update(batch):
        if Graph.captured:
            raise RuntimeError("operation not permitted when stream is capturing")
        return batch.x.sum()

    do = Captured(update, gpu)
    points = OnGpu(torch.ones(3, 6), torch.zeros(3))
    do(points)
    with pytest.raises(ConfigError, match="capture:"):
        do(points)


OUT_OF_MEMORY = {
    "torch": torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
    "cuBLAS": RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
}


@pytest.mark.parametrize("ends_well", [True, False])
@pytest.mark.parametrize("library", OUT_OF_MEMORY)
def test_memory_that_runs_out_in_a_capture_is_reported_as_such(monkeypatch, library, ends_well):
    """The run is then repeated on an idle GPU. "cannot be a CUDA graph" would end it for good."""

    @contextmanager
    def graph(*_, **__):
        try:
            yield
        finally:
            if not ends_well:
                raise RuntimeError("CUDA error: operation failed due to a previous error during capture")

    class Graph:
        def pool(self):
            return 1

    def update(batch):
        updates.append(batch)
        if len(updates) == 2:
            raise OUT_OF_MEMORY[library]
        return batch.x.sum()

    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "graph", graph)
    updates = []
    captured_value = Captured(update, torch.device("cuda"))
    batch = OnAnyDevice(torch.ones(2))
    captured_value(batch)
    with pytest.raises(RuntimeError) as error:
        captured_value(batch)
    assert ran_out(error.value)
