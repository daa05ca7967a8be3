"""Errors name the place they are raised in."""

import pytest

from isogloss.core.errors import ConfigError, DataError, RunError, add_location


@pytest.mark.parametrize(
    ("places", "message"),
    [
        ([], "wrong."),
        (["recipe.toml"], "recipe.toml: wrong."),
        (["recipe.toml", "grid", "corpus"], "recipe.toml: grid: corpus: wrong."),
        (["recipe.toml", "grid", ".method", "[1]", "start"], "recipe.toml: grid.method[1]: start: wrong."),
    ],
)
def test_nested_places_are_joined(places, message):
    def fail(left):
        if not left:
            raise DataError("wrong.")
        with add_location(left[0]):
            fail(left[1:])

    with pytest.raises(DataError) as error:
        fail(places)
    assert str(error.value) == message


def test_what_is_no_mistake_in_the_input_has_no_place():
    with pytest.raises(RunError, match=r"^out of memory$"), add_location("recipe.toml"):
        raise RunError("out of memory")


def test_the_cause_of_an_error_stays_its_cause():
    with pytest.raises(ConfigError) as error, add_location("recipe.toml"):
        try:
            int("x")
        except ValueError as cause:
            raise ConfigError("no number") from cause
    assert isinstance(error.value.__cause__, ValueError)
