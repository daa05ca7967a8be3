"""How claims are judged a thousand times."""

from collections.abc import Iterator

import pandas as pd
import pytest

JUDGED = ("test_claims", "test_court")
"""Files whose frames are a few hundred made-up rows."""


@pytest.fixture(autouse=True, scope="module")
def strings(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let strings of frames so small be Python's, a third quicker to judge than Arrow's, which are the same.

    Reports of studies that were really run, and what the command line reports, have Arrow's.
    """
    storage = "python" if request.path.stem.startswith(JUDGED) else "auto"
    with pd.option_context("mode.string_storage", storage):
        yield
