"""What others wrote into a folder leads nowhere else."""

import pytest

from isogloss.core.checksums import CHECKSUMS, read_checksums
from isogloss.core.errors import StorageError
from isogloss.core.untrusted import below, is_safe


@pytest.mark.parametrize("name", [None, 5, ["a"], {}])
def test_a_name_that_is_no_text_is_refused(tmp_path, name):
    assert not is_safe(name)
    with pytest.raises(StorageError, match="leads out of the folder or is invalid"):
        below(tmp_path, name)


def test_checksums_that_name_what_is_elsewhere_are_refused(tmp_path):
    (tmp_path / CHECKSUMS).write_text('{"../../x": {"size": 5, "crc32": "0"}}')
    with pytest.raises(StorageError, match=r"checksums.json: the name '../../x' leads out"):
        read_checksums(tmp_path)
