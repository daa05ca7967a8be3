"""The garbage collector is paused for a context, and then as it was."""

import gc

import pytest

from isogloss.core.processes import collector_paused


@pytest.fixture(autouse=True)
def _enabled_collector():
    gc.enable()
    yield
    gc.enable()


def test_the_collector_is_paused_and_enabled_again():
    with collector_paused():
        assert not gc.isenabled()
        with collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_an_error_enables_it_again():
    with pytest.raises(KeyError), collector_paused():
        raise KeyError
    assert gc.isenabled()


def test_a_collector_that_the_caller_disabled_stays_disabled():
    gc.disable()
    with collector_paused():
        pass
    assert not gc.isenabled()
