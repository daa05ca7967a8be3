"""The four tiny studies, read once."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from zipfile import ZipFile

import pytest

from isogloss.reports.measurements import Measurements, read_measurements

STUDIES = Path(__file__).parent / "studies"


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Measurements]:
    @cache
    def read(name: str) -> Measurements:
        packed = STUDIES / f"{name}.zip"
        if not packed.exists():
            unpacked = Path("/tmp/new", name)
            return read_measurements(unpacked) if unpacked.is_dir() else pytest.skip("no records")
        folder = tmp_path_factory.mktemp(name)
        with ZipFile(packed) as archive:
            archive.extractall(folder)
        return read_measurements(folder)

    return read
