"""Functions that state the shapes of arrays are checked at each call. Others are what was written."""

import pytest
import torch
from jaxtyping import TypeCheckError

from isogloss.features.representations.geometry import mean_cosine
from isogloss.training.distributed import rank
from isogloss.training.sides import Sides
from shapes import states_shapes


def test_an_array_of_another_shape_is_refused():
    with pytest.raises(TypeCheckError, match="mean_cosine"):
        mean_cosine(torch.ones(3))


def test_what_states_no_shape_is_not_wrapped():
    assert states_shapes(mean_cosine) and states_shapes(Sides)
    assert not states_shapes(rank)
    assert "__wrapped__" in vars(mean_cosine)
    assert "__wrapped__" not in vars(rank)
