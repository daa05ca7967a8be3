"""Studies that were run once, as measurements."""

from collections.abc import Callable
from pathlib import Path
from zipfile import ZipFile

import pytest

from isogloss.reports.measurements import Measurements, read_measurements

STUDIES = Path(__file__).parent / "studies"
LOOSE = Path("/tmp/new")


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Measurements]:
    found: dict[str, Measurements] = {}

    def read(name: str) -> Measurements:
        if name not in found:
            packed, folder = STUDIES / f"{name}.zip", LOOSE / name
            if packed.is_file():
                folder = tmp_path_factory.mktemp(name)
                ZipFile(packed).extractall(folder)
            found[name] = read_measurements(folder)
        return found[name]

    return read
