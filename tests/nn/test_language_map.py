"""Closed forms against scipy and numpy, and what each map leaves alone."""

import pytest
import torch
from scipy.linalg import orthogonal_procrustes

from isogloss.nn.language_modules import Moments, language_map


def moments_of(source, target, *, parts=1):
    found = Moments(source.size(1))
    for s, t in zip(source.chunk(parts), target.chunk(parts), strict=True):
        found.add(s, t)
    return found


@pytest.fixture
def states():
    generator = torch.Generator().manual_seed(0)
    source = torch.randn(50, 6, generator=generator)
    return source, 2 * source @ torch.randn(6, 6, generator=generator) + torch.arange(6)


def test_a_rotation_is_that_of_scipy_about_the_means(states):
    source, target = states
    found = language_map(moments_of(source, target), "rotation")
    rotation, _ = orthogonal_procrustes(
        (target - target.mean(0)).double(), (source - source.mean(0)).double()
    )
    torch.testing.assert_close(found.matrix, torch.from_numpy(rotation).float(), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found.matrix @ found.matrix.T, torch.eye(6), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found(target).mean(0), source.mean(0), rtol=1e-3, atol=1e-4)


def test_a_turned_and_shifted_language_is_turned_back(states):
    source, _ = states
    turn, _ = torch.linalg.qr(torch.randn(6, 6, generator=torch.Generator().manual_seed(1)))
    target = source @ turn + 3.0
    found = language_map(moments_of(source, target), "rotation")
    torch.testing.assert_close(found(target), source, rtol=1e-4, atol=1e-4)


def test_centring_gives_the_mean_and_normalisation_the_scale_too(states):
    source, target = states
    centred = language_map(moments_of(source, target), "centring")(target)
    torch.testing.assert_close(centred, target - target.mean(0) + source.mean(0), rtol=1e-4, atol=1e-4)
    found = language_map(moments_of(source, target), "normalisation")(target)
    for one, other in ((found.mean(0), source.mean(0)), (found.std(0), source.std(0))):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ["rotation", "centring", "normalisation"])
def test_a_language_is_mapped_onto_itself_by_the_identity(kind, states):
    found = language_map(moments_of(states[0], states[0]), kind)
    torch.testing.assert_close(found(states[0]), states[0], rtol=1e-4, atol=1e-5)


def test_states_can_stream_by(states):
    whole, parts = moments_of(*states), moments_of(*states, parts=7)
    torch.testing.assert_close(parts.covariance(), whole.covariance())
    torch.testing.assert_close(parts.scales(), whole.scales())


def test_a_dimension_that_never_varies_keeps_its_scale(states):
    source, target = states
    target = target.clone()
    target[:, 2] = 5.0
    found = language_map(moments_of(source, target), "normalisation")
    assert float(found.matrix[2, 2]) == 1.0
    assert bool(torch.isfinite(found(target)).all())
