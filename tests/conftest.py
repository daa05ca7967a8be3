"""What all tests share: where the real corpora are, if they are on this machine."""

from pathlib import Path

import pytest

from isogloss.data.files import DiskFolder


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--real-data", default="../shared/data", help="folder of the real corpora, from the project's root"
    )


@pytest.fixture(scope="session")
def real_data(pytestconfig: pytest.Config) -> DiskFolder:
    place = pytestconfig.getoption("--real-data")
    path = Path(pytestconfig.rootpath, place)
    if not path.is_dir():
        pytest.skip(f"the real corpora are not on this machine (no folder {place})")
    return DiskFolder(path)
