"""Mined pairs, thresholds and nearest sentences equal XTREME's and LASER's, on random vectors."""

import sys
import types

import numpy as np
import pytest
import torch

from isogloss.features.mining.diagnostic import Mined, SentencePools, best_threshold, scores_at
from isogloss.features.mining.vectors import mine
from isogloss.features.representations.geometry import retrieval_accuracy

pytestmark = pytest.mark.nightly


class ExactIndex:
    """The index of faiss that both projects use: rows with the highest inner products."""

    def __init__(self, dimensions):
        self.dimensions = dimensions

    def add(self, rows):
        """Store rows."""
        self.rows = rows.copy()

    def search(self, queries, count):
        """Return the highest products and their rows for each query."""
        products = queries @ self.rows.T
        order = np.argsort(-products, axis=1, kind="stable")[:, :count]
        return np.take_along_axis(products, order, 1), order


def normalize_in_place(rows):
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture
def exact_faiss(monkeypatch):
    """Replace faiss, which is not needed for few rows."""
    module = types.ModuleType("faiss")
    module.IndexFlatIP = module.IndexFlatL2 = ExactIndex
    module.normalize_L2 = normalize_in_place
    monkeypatch.setitem(sys.modules, "faiss", module)


def make_translations(count, extra, noise):
    """Return vectors of sentences and of their noisy translations, then of unrelated sentences."""
    numbers = np.random.default_rng(count)
    sentences = numbers.normal(size=(count, 24))
    sides = sentences, sentences + noise * numbers.normal(size=(count, 24))
    rows = [np.concatenate((side, numbers.normal(size=(extra, 24)))) for side in sides]
    for side in rows:
        normalize_in_place(side)
    return rows


SIZES = [(40, 20, 0.6), (100, 50, 0.9), (60, 240, 0.5)]


@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("margin", ["ratio", "distance", "cosine"])
@pytest.mark.parametrize(("count", "extra", "noise"), SIZES)
def test_pairs_and_threshold_are_those_of_xtreme(clone, exact_faiss, tmp_path, count, extra, noise, margin):
    script = clone("google-research+xtreme", "third_party/utils_retrieve.py")
    x, y = make_translations(count, extra, noise)

    def write(name, rows):
        path = tmp_path / name
        path.write_text("".join(f"{row}\n" for row in rows))
        return str(path)

    total = count + extra
    texts = [write(side, [f"{side}{index}" for index in range(total)]) for side in "st"]
    ids = [write(f"ids-{side}", [f"{side}-{index}" for index in range(total)]) for side in "st"]
    gold = write("gold", [f"s-{index}\tt-{index}" for index in range(count)])
    candidates = tmp_path / "candidates"
    name = {"cosine": "absolute"}.get(margin, margin)
    script.mine_bitext(x.copy(), y.copy(), *texts, str(candidates), margin=name, threshold=-(10**9))
    lines = (line.split("\t") for line in candidates.read_text().splitlines())
    expected_pairs = {(int(first_line[1:]), int(second[1:])) for _, first_line, second in lines}

    pairs, scores = mine(torch.from_numpy(x), torch.from_numpy(y), margin=margin)
    assert {tuple(pair) for pair in pairs.tolist()} == expected_pairs
    pools = SentencePools(["s"] * total, ["t"] * total, {(index, index) for index in range(count)})
    is_correct = torch.tensor([first_pair == second < count for first_pair, second in pairs.tolist()])
    mined_value = Mined(scores, is_correct, pools)
    threshold = best_threshold(mined_value)
    expected = script.bucc_eval(str(candidates), gold, *texts, *ids, None)
    assert threshold == pytest.approx(expected["best-threshold"])
    _, precision, recall, f1 = scores_at(mined_value, threshold)
    result = [100 * index for index in (precision, recall, f1)]
    assert result == pytest.approx([expected[name] for name in ("precision", "recall", "F1")])


@pytest.mark.parametrize(("count", "extra", "noise"), SIZES)
def test_errors_of_retrieval_are_those_of_lasers_xsim(clone, exact_faiss, count, extra, noise):
    script = clone("facebookresearch+LASER", "source/xsim.py")
    x, y = (side[:count] for side in make_translations(count, extra, 2 * noise))
    errors, total, *_ = script.xSIM(x.copy(), y.copy(), margin="absolute")
    result = retrieval_accuracy(torch.from_numpy(x), torch.from_numpy(y))
    assert result == pytest.approx(1 - errors / total)
    assert 0 < errors < total
