"""On the built-in languages, adjustment draws translations together and leaves the rest where it was."""

from importlib.resources import files

import pytest
import torch

from isogloss.core.run_parts import with_fields
from isogloss.data.languages import translations
from isogloss.encoders import load_model, load_tokenizer
from isogloss.methods.contrastive_alignment import ContrastiveAlignment
from isogloss.methods.cross_lingual_adjustment import CrossLingualAdjustment
from isogloss.training.aligned_batches import collate_pairs, states_of
from isogloss.training.aligned_pairs import PairEncoding, encode_pairs
from isogloss.training.setting import AdjustSetting

SHIPPED = str(files("isogloss") / "shipped")


@pytest.fixture(scope="module")
def sentences():
    drawn = translations("qaa", "qac", "train")
    return [one for one, _ in zip(drawn, range(400), strict=False)]


def distances(model, pairs):
    """Return the mean distance of linked words, and of words that are not translations of each other."""
    encoded = encode_pairs({"qaa-qac": pairs}, load_tokenizer(SHIPPED), PairEncoding(aligned="words"))
    batch = collate_pairs([encoded[row] for row in range(len(encoded))], None, padding=encoded.padding)
    with torch.no_grad():
        states = states_of(model, batch.passes, layer=-1)
        source, target = batch.source.of(states), batch.target.of(states)
    every = torch.cdist(source, target)
    return float(every.diagonal().mean()), float(every[~batch.same()].mean()), source


@pytest.mark.slow
@pytest.mark.parametrize(
    "method",
    [
        with_fields(CrossLingualAdjustment(), learning_rate=5e-4, precision="float32"),
        with_fields(CrossLingualAdjustment(), learning_rate=5e-4, precision="float32", form="mean"),
        with_fields(ContrastiveAlignment(), learning_rate=5e-4, precision="float32", stay=1.0),
    ],
    ids=["sum", "mean", "contrastive"],
)
def test_related_words_come_nearer_than_unrelated_ones_do(method, sentences, tmp_path):
    train, held_out = {"qaa-qac": sentences[:320]}, sentences[320:]
    setting = AdjustSetting(start=SHIPPED, bitext=train, folder=tmp_path, seed=0)
    start, moved = load_model(SHIPPED), method.train(setting).model
    (near, far, source), (nearer, farther, after) = (distances(one, held_out) for one in (start, moved))
    assert nearer < 0.9 * near
    assert nearer / farther < 0.95 * near / far
    assert float((after - source).norm(dim=1).mean()) < 0.7 * near  # The source moved less than was between.


@pytest.mark.slow
def test_holding_the_source_keeps_it_nearer_to_where_it_was(sentences, tmp_path):
    train, held_out = {"qaa-qac": sentences[:320]}, sentences[320:]
    _, _, source = distances(load_model(SHIPPED), held_out)
    moved = {}
    for stay in (0.0, 1.0):
        method = with_fields(CrossLingualAdjustment(), learning_rate=5e-4, precision="float32", stay=stay)
        setting = AdjustSetting(start=SHIPPED, bitext=train, folder=tmp_path / str(stay), seed=0)
        _, _, after = distances(method.train(setting).model, held_out)
        moved[stay] = float((after - source).norm(dim=1).mean())
    assert moved[1.0] < 0.8 * moved[0.0]
