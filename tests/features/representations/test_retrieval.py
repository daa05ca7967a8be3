import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from isogloss.core.errors import ConfigError, DataError
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.representations import geometry as module
from isogloss.features.representations.geometry import mean_nearest, retrieval_accuracy
from isogloss.features.representations.retrieval import Retrieval
from isogloss.features.representations.rows import RetrievalRow
from isogloss.similarity.nearest import directions
from isogloss.tasks import TASKS
from measuring import WORDS, load, measure_setting, subject, translations, vectors

SEEDS = st.integers(0, 10_000)


def nearest_is_translation(x, y, *, is_centred=True, neighbours=0):
    return retrieval_accuracy(
        *(directions(side, centred=is_centred) for side in (x, y)), neighbours=neighbours
    )


def naive(x, y, neighbours=0):
    """CSLS by the book (Conneau et al. 2018, Eq. 3), ties shared; cosine without neighbours."""
    x, y = x.double().numpy(), y.double().numpy()
    cosines = np.array([[a @ b / np.linalg.norm(a) / np.linalg.norm(b) for b in y] for a in x])
    k = min(neighbours, len(x))
    similar = 2 * cosines
    if k:
        r_x, r_y = (np.sort(side, axis=1)[:, -k:].mean(axis=1) for side in (cosines, cosines.T))
        similar = similar - r_x[:, None] - r_y[None, :]
    right = 0.0
    for index, row in enumerate(similar):
        best_indices = np.flatnonzero(row >= row.max() - 1e-6)
        right += (index in best_indices) / len(best_indices)
    return right / len(x)


@given(SEEDS)
def test_identical_sides_are_found_always(seed):
    x = vectors(seed)
    assert nearest_is_translation(x, x.clone()) == 1.0


@given(SEEDS)
def test_sides_in_another_order_are_found_only_where_they_stayed(seed):
    x = vectors(seed)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed + 1))
    assert nearest_is_translation(x, x[order]) == pytest.approx(
        float((order == torch.arange(len(x))).float().mean())
    )


def test_unrelated_sides_are_found_by_chance():
    retrieval_accuracies = [
        nearest_is_translation(vectors(seed, 50), vectors(seed + 1000, 50)) for seed in range(200)
    ]
    assert sum(retrieval_accuracies) / 200 == pytest.approx(1 / 50, abs=0.006)


@given(SEEDS)
def test_a_constant_difference_scale_and_rotation_do_not_count(seed):
    x = vectors(seed)
    y = vectors(seed) + 0.3 * vectors(seed + 1)
    retrieval_accuracy_before = nearest_is_translation(x, y)
    turn, _ = torch.linalg.qr(vectors(seed + 2, 6))
    assert nearest_is_translation(x + 100, y - 50) == retrieval_accuracy_before
    assert nearest_is_translation(5 * x, 0.1 * y) == retrieval_accuracy_before
    assert nearest_is_translation(x @ turn, y @ turn) == retrieval_accuracy_before


@given(SEEDS)
def test_renumbering_both_sides_changes_nothing(seed):
    x = vectors(seed)
    y = vectors(seed) + vectors(seed + 1)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))
    assert nearest_is_translation(x[order], y[order]) == pytest.approx(nearest_is_translation(x, y))


@given(SEEDS, st.sampled_from([0, 1, 3, 10, 50]), st.sampled_from([1, 5, 1024]))
def test_it_is_brute_force_whatever_the_blocks(seed, neighbours, block):
    x = vectors(seed)
    y = vectors(seed) + vectors(seed + 1)
    queries_per_block_before = module.QUERIES_PER_BLOCK
    module.QUERIES_PER_BLOCK = block
    try:
        for centred_value in (True, False):
            a, b = (side - side.mean(dim=0) if centred_value else side for side in (x, y))
            ours = nearest_is_translation(x, y, is_centred=centred_value, neighbours=neighbours)
            assert ours == pytest.approx(naive(a, b, neighbours))
    finally:
        module.QUERIES_PER_BLOCK = queries_per_block_before


@given(SEEDS)
def test_copies_of_a_sentence_share_what_is_found(seed):
    x = vectors(seed)
    x[1] = x[0]
    x[2] = x[0]
    for neighbours in (0, 3):
        assert nearest_is_translation(x, x.clone(), neighbours=neighbours) == pytest.approx(10 / 12)


def test_where_all_are_alike_the_share_is_chance():
    x = torch.ones(8, 3)
    for neighbours in (0, 3):
        assert nearest_is_translation(x, x, is_centred=False, neighbours=neighbours) == pytest.approx(1 / 8)
        assert nearest_is_translation(x, x, is_centred=True, neighbours=neighbours) == pytest.approx(1 / 8)


def test_csls_finds_what_a_hub_hides():
    """The last candidate is nearer to every sentence than its translation is, by what all have in common."""
    axes = torch.eye(17)
    x = torch.cat((axes[:8] + 0.5 * axes[16], axes[16:]))
    y = torch.cat((0.5 * axes[:8] + axes[8:16], axes[16:]))
    ours = [nearest_is_translation(x, y, is_centred=False, neighbours=k) for k in (0, 2)]
    assert ours == [pytest.approx(1 / 9), 1]
    assert ours == [pytest.approx(naive(x, y, k)) for k in (0, 2)]


@given(SEEDS)
def test_neighbours_are_counted_up_to_all_there_are(seed):
    x, y = (directions(vectors(seed + n), centred=False) for n in (0, 1))
    assert torch.allclose(mean_nearest(x, y, 99), (x @ y.T).mean(dim=1), atol=1e-6)
    assert torch.allclose(mean_nearest(x, y, 1), (x @ y.T).max(dim=1).values, atol=1e-6)


@given(SEEDS)
def test_without_centring_a_constant_difference_counts(seed):
    x = vectors(seed, rows=40)
    moved_value = x + 30 * vectors(seed + 1, rows=1)
    assert nearest_is_translation(x, moved_value) == 1
    assert nearest_is_translation(x, moved_value, is_centred=False) < 1


LINES = [" ".join(WORDS[a:b]) for a, b in ((0, 3), (4, 12), (2, 4), (8, 16), (1, 7), (10, 14))]


def measure_retrieval(loaded_encoder, pairs, **fields):
    arguments = []

    def bitext(pair):
        arguments.append(pair)
        return translations(*zip(*pairs, strict=True)) if pairs else []

    setting = measure_setting([loaded_encoder], languages=("en", "de", "fr"), bitext=bitext)
    return Retrieval(**fields).measure(setting), arguments


@pytest.mark.each_value
@pytest.mark.parametrize("layer", [-1, 0, 2])
def test_every_language_is_compared_with_the_first(encoder_folder, layer):
    rows, translation = measure_retrieval(load(encoder_folder), [(line, line) for line in LINES], layer=layer)
    assert translation == ["en-de", "en-fr"]
    assert rows == [
        RetrievalRow(
            model=subject("0").id,
            first="en",
            second=second,
            layer=layer,
            centred=centred_value,
            similarity=similarity,
            candidates=6,
            accuracy_forward=1.0,
            accuracy_backward=1.0,
            chance=1 / 6,
        )
        for second in ("de", "fr")
        for centred_value in (True, False)
        for similarity in ("cosine", "CSLS 10")
    ]


def test_several_layers_replace_the_one(loaded_encoder):
    pairs = list(zip(LINES, [*LINES[1:], LINES[0]], strict=True))
    joint_translations, _ = measure_retrieval(
        loaded_encoder, pairs, layer=1, layers=(0, 2), centred=False, csls=0
    )
    distance = [
        row
        for layer in (0, 2)
        for row in measure_retrieval(loaded_encoder, pairs, layer=layer, centred=False, csls=0)[0]
    ]
    assert sorted(joint_translations, key=str) == sorted(distance, key=str)
    assert len(joint_translations) == 4


@pytest.mark.parametrize("centred_value", [True, False])
def test_one_way_to_centre_and_one_similarity_can_be_asked_for(loaded_encoder, centred_value):
    rows, _ = measure_retrieval(
        loaded_encoder, [(line, line) for line in LINES], centred=centred_value, csls=0
    )
    assert [(row.centred, row.similarity) for row in rows] == [(centred_value, "cosine")] * 2


def test_the_encoder_of_a_model_is_measured(encoder_folder):
    model = TASKS["upos"].head(encoder_folder, seed=0)
    setting = measure_setting(
        [(model, load_tokenizer(encoder_folder))], bitext=lambda _: translations(LINES, LINES)
    )
    row, *_ = Retrieval().measure(setting)
    assert (row.model, row.accuracy_forward) == (subject("0").id, 1)


def test_neighbours_below_0_are_refused():
    with pytest.raises(ConfigError, match=r"csls.*-1.*0"):
        Retrieval(csls=-1)


def test_shuffled_translations_are_not_found(loaded_encoder):
    rows, _ = measure_retrieval(
        loaded_encoder, list(zip(LINES, [*LINES[1:], LINES[0]], strict=True)), csls=0, centred=True
    )
    assert {row.accuracy_forward for row in rows} == {0.0}


def test_no_translations_are_an_error(loaded_encoder):
    with pytest.raises(DataError, match="translations en-de"):
        measure_retrieval(loaded_encoder, [])
