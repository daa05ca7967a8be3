import pytest


@pytest.fixture(autouse=True)
def always_patient(patient: None) -> None:
    """Be patient in all tests of commands, those that start a process, too."""
