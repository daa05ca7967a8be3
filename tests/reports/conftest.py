"""Small studies that were really run, as measurements."""

from collections.abc import Callable
from pathlib import Path
from zipfile import ZipFile

import pytest

from isogloss.reports.measurements import Measurements, read_measurements

STUDIES = Path(__file__).parent / "studies"


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Measurements]:
    """Return measurements of a study by its name; each is read once."""
    known: dict[str, Measurements] = {}

    def read(name: str) -> Measurements:
        if name not in known:
            packed = STUDIES / f"{name}.zip"
            folder = Path("/tmp/new") / name
            if packed.exists():
                folder = tmp_path_factory.mktemp(name)
                ZipFile(packed).extractall(folder)
            known[name] = read_measurements(folder)
        return known[name]

    return read
