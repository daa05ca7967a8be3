"""Four tiny studies that were really run (studies/*.toml), read once as measurements."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from zipfile import ZipFile

import pytest

from isogloss.reports.measurements import Measurements, read_measurements

STUDIES = Path(__file__).parent / "studies"


@pytest.fixture(scope="session")
def study_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Unpack a study: plan, records and predictions, as `isogloss run` left them."""

    @cache
    def unpack(name: str) -> Path:
        folder = tmp_path_factory.mktemp(name)
        with ZipFile(STUDIES / f"{name}.zip") as archive:
            archive.extractall(folder)
        return folder

    return unpack


@pytest.fixture(scope="session")
def study(study_folder: Callable[[str], Path]) -> Callable[[str], Measurements]:
    """Read a study."""
    return cache(lambda name: read_measurements(study_folder(name)))
