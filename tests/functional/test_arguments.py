"""Every choice and every range of every public function refuses a wrong value, before anything is computed.

The arguments are found from the signatures; a new function without checks fails here.
"""

import inspect
from typing import Annotated, Literal, get_args, get_origin

import numpy as np
import pytest
from pydantic import ValidationError

import isogloss
from isogloss.core.arguments import adapter_of, checks_arguments, is_checked, make_plain
from isogloss.core.errors import ConfigError
from isogloss.core.run_parts import Share
from says import says

TEXTS = {
    "annotated",
    "against",
    "baseline",
    "by",
    "command",
    "corpus",
    "encoder",
    "inputs",
    "language",
    "languages",
    "measure",
    "metric",
    "name",
    "near",
    "network",
    "revision",
    "scale",
    "source",
    "split",
    "target",
    "task",
}
"""Arguments that may be any text: names that are looked up, with a separate message."""

TYPES = {"Recipe", "Result", "Study", "__version__"}
TYPES |= {name for name, home in isogloss._HOMES.items() if home.endswith((".errors", ".examples"))}
TYPES |= {"Compared", "Comparison", "Prediction", "SourceCandidate", "States", "WordLinks"}
TYPES |= {"MixingTrace", "Outcome", "PlannedRun", "Progress", "Record", "Report", "Search"}
TYPES |= {"Trial", "TextModel", "TextTokenizer", "ExpectedScore", "LabelConsistency"}
TYPES |= {"Advice", "AdvisedOption", "Gain", "Regret"}
TYPES |= {name for name in isogloss.__all__ if name.endswith("Table")}
"""Public names that are no functions, or take what functions have made."""


def public_functions():
    """Yield the name in messages and each public function, constructor and method."""
    for name in isogloss.__all__:
        thing = getattr(isogloss, name)
        if name in TYPES:
            continue
        if not inspect.isclass(thing):
            yield name, thing
            continue
        if name != "Model":  # load_model creates it.
            yield name, thing.__init__
        for method in ("forward", "predict", "predict_stream", "evaluate", "export", "push"):
            if method in vars(thing) and len(inspect.signature(vars(thing)[method]).parameters) > 1:
                yield f"{name}.{method}", vars(thing)[method]


def choices_of(hint):
    """Return the names that an annotation allows. None if it is no choice."""
    if get_origin(hint) is Literal:
        return [argument for argument in get_args(hint) if isinstance(argument, str) and argument]
    return [argument for part in get_args(hint) for argument in choices_of(part)] if get_args(hint) else []


def wrong_value(hint):
    """Return a value that an annotation does not allow. None if it is a free text."""
    if choices := choices_of(hint):
        return f"{choices[0]}x"
    parts = [hint, *get_args(hint)]
    if any(part is bool for part in parts):
        return "yes"
    if any(get_origin(part) is Annotated for part in parts) or int in parts or float in parts:
        return np.nan
    if any(get_origin(part) is tuple for part in parts):
        return "en"
    return None


ARGUMENTS = {
    f"{name} {argument}": (function, name, argument, parameter.annotation)
    for name, function in public_functions()
    for argument, parameter in inspect.signature(function).parameters.items()
    if is_checked(parameter.annotation)
}


def allowed_value(hint):
    """Return a value that an annotation allows. None where any is, such as a model."""
    if not is_checked(hint):
        return None
    adapter = adapter_of(hint)
    return next(value for value in ("x", ("x",), 1, (1,)) if is_valid(adapter, value))


def is_valid(adapter, value):
    try:
        adapter.validate_python(value)
    except ValidationError:
        return False
    return True


def call_with(function, argument, value):
    """Call a function with a wrong argument, and what is allowed for those that are required."""
    required_allowed_values = {
        name: allowed_value(parameter.annotation)
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD
    }
    return function(**{**required_allowed_values, argument: value})


@pytest.mark.parametrize("case", [case for case in ARGUMENTS if wrong_value(ARGUMENTS[case][3]) is not None])
def test_a_wrong_choice_or_number_is_refused_with_what_is_allowed(case):
    function, name, argument, hint = ARGUMENTS[case]
    value = wrong_value(hint)
    with pytest.raises(ConfigError) as error:
        call_with(function, argument, value)
    message = str(error.value)
    assert message.startswith(f"{name}: {argument}") and "expected" in message and "\n" not in message
    for choice in choices_of(hint):
        assert repr(choice) in message
    assert "Did you mean" in message or not choices_of(hint)


@pytest.mark.parametrize("case", ARGUMENTS)
def test_each_argument_has_a_range_or_choices_unless_any_value_is_allowed(case):
    _, name, argument, hint = ARGUMENTS[case]
    is_bare = hint in (int, float)
    assert not is_bare, f"{name}: {argument} is any number: take one of the ranges of run_parts"
    if hint is str:
        assert argument in TEXTS, f"{name}: {argument} is any text: make it a Literal, or name it in TEXTS"


def test_every_public_function_checks_its_arguments():
    unchecked_names = [
        name
        for name, function in public_functions()
        if any(
            is_checked(parameter.annotation) for parameter in inspect.signature(function).parameters.values()
        )
        and not hasattr(function, "__wrapped__")
    ]
    assert unchecked_names == []


@pytest.mark.parametrize("case", ARGUMENTS)
def test_the_default_of_each_argument_is_allowed(case):
    function, _, argument, hint = ARGUMENTS[case]
    default = inspect.signature(function).parameters[argument].default
    assert default is inspect.Parameter.empty or is_valid(adapter_of(hint), make_plain(default))


WRONG = {
    "a name of another program": (
        lambda: isogloss.align(["a"], ["b"], matching="mwmf"),
        ("mwmf", "'itermax'"),
    ),
    "a type of torch": (lambda: isogloss.cka(0, 0, ["a"], ["b"], precision="fp32"), ("fp32", "'float32'?")),
    "a share in percent": (
        lambda: isogloss.average([0], density=20),
        ("average: density", "20", "at most 1"),
    ),
    "one text": (lambda: isogloss.cka(0, 0, "one text", "ein Text"), ("cka: first", "'one text'", "a list")),
    "a missing text": (lambda: isogloss.cka(0, 0, ["a", None], ["b", "c"]), ("cka: first[1]", "None")),
    "one language": (lambda: isogloss.align(["a"], ["b"], languages="en"), ("align: languages", "'en'")),
    "letters as languages": (lambda: isogloss.rank_sources("yo", "en"), ("rank_sources: candidates", "'en'")),
    "a number of layers": (lambda: isogloss.cka(0, 0, ["a"], ["b"], layers=2), ("cka: layers", "2", "list")),
    "half a layer": (
        lambda: isogloss.states(0, 0, ["a"], layers=[1, 2.5]),
        ("states: layers[1]", "2.5", "whole"),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_users_write_first_is_refused_in_their_terms(name):
    call, facts = WRONG[name]
    with says(ConfigError, *facts):
        call()


@checks_arguments
def take(share: Share, texts: list[str] | None = None, *, names: tuple[str, ...] = ()):
    return share, texts, names


def test_numbers_and_sequences_of_other_libraries_are_allowed():
    assert take(np.float32(0.5))[0] == 0.5
    assert take(1, names=np.array(["a", "b"]))[2] == ("a", "b")
    assert take(0, names=(name for name in "ab"))[2] == ("a", "b")
    assert take.__name__ == "take" and list(inspect.signature(take).parameters) == [
        "share",
        "texts",
        "names",
    ]
