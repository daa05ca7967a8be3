"""What is kept is read back, in any order; a file that was not finished is made again."""

import numpy as np
import pytest
import torch

from isogloss.training.aligned_batches import cache_states

COUNTS = np.array([2, 0, 3, 1])


def states_of_row(row):
    return torch.arange(COUNTS[row] * 4).reshape(-1, 4) + 100.0 * row


def kept(path, groups=((2, 0), (1, 3)), compute=None, kind="float32"):
    def every(group):
        return torch.cat([states_of_row(row) for row in group])

    return cache_states(path, groups, COUNTS, compute or every, dim=4, kept=kind)


@pytest.mark.parametrize("kind", ["float16", "float32"])
def test_rows_come_back_as_they_were_in_any_order(tmp_path, kind):
    found = kept(tmp_path / "states.bin", kind=kind)
    for rows in ([0, 1, 2, 3], [3, 3, 2], [1]):
        assert torch.equal(found.of(rows), torch.cat([states_of_row(row) for row in rows]))
    assert found.of([]).shape == (0, 4)


def test_a_whole_file_is_used_and_an_unfinished_one_made_again(tmp_path):
    path = tmp_path / "folder" / "states.bin"

    def dies(group):
        if 3 in group:
            raise KeyboardInterrupt
        return torch.cat([states_of_row(row) for row in group])

    with pytest.raises(KeyboardInterrupt):
        kept(path, compute=dies)
    assert not path.exists()
    whole = kept(path)
    again = kept(path, compute=dies)  # It is not called.
    assert torch.equal(again.of([3, 2]), whole.of([3, 2]))


def test_nothing_can_be_kept(tmp_path):
    assert kept(tmp_path / "states.bin", groups=()).of([]).shape == (0, 4)
