"""Check values by their types as recipes check fields: what was found, what is allowed, the nearest name.

Recipes check the fields of dataclasses, public functions their arguments. Both read choices and ranges off
annotations: ``Literal``, and the numbers of ``run_parts``.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, wraps
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin

from pydantic import ConfigDict, TypeAdapter, ValidationError

from isogloss.core.errors import ConfigError, did_you_mean

EXPECTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "string_type": "a text",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "literal_error": "{expected}",
    "tuple_type": "a list",
    "dict_type": "a table",
    "dataclass_type": "a table",
    "greater_than": "more than {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "less_than": "less than {lt:g}",
    "less_than_equal": "at most {le:g}",
}
"""Expected values by pydantic's error types, in the words of recipes."""

EXPECTED_HERE = EXPECTED | {
    "bool_type": "True or False",
    "tuple_type": "a list, an array or a tuple",
    "missing": "one more value",
    "too_long": "{max_length} values",
}
"""The same in the words of Python."""

_QUOTED = re.compile(r"'([^']+)'")
"""The names that an expectation lists."""

_SCALARS = (bool, int, float, str, NoneType)

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")


def describe_mismatch(details: Any, expected: Mapping[str, str] = EXPECTED) -> str:
    """Describe found and expected values of pydantic's error details, with the nearest name."""
    expectation = expected.get(details["type"], details["msg"]).format(**details.get("ctx", {}))
    suggestion = did_you_mean(str(details["input"]), _QUOTED.findall(expectation))
    return f"found {repr(details['input'])[:60]}; expected {expectation}.{suggestion}"


def checks_arguments(function: Callable[Parameters, Returned]) -> Callable[Parameters, Returned]:
    """Check the choices and numbers among a function's arguments before it runs.

    ConfigError names the function and the argument, what was found and what is allowed. Sequences may be of
    any library, or iterables, and the function receives tuples. Arguments of other types, such as models, are
    left to the function.
    """
    signature = inspect.signature(function)
    name = function.__qualname__.removesuffix(".__init__")

    @cache
    def adapters() -> dict[str, TypeAdapter[Any]]:
        hints = inspect.get_annotations(function)
        return {key: adapter_of(hint) for key, hint in hints.items() if key != "return" and is_checked(hint)}

    @wraps(function)
    def wrapper(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Returned:
        bound = signature.bind(*args, **kwargs)
        for key, adapter in adapters().items():
            if key in bound.arguments:
                value = make_plain(bound.arguments[key])
                _check(f"{name}: {key}", value, adapter)
                if isinstance(value, tuple):
                    bound.arguments[key] = value
        return function(*bound.args, **bound.kwargs)

    return wrapper


def is_checked(hint: Any) -> bool:
    """Return whether values of a type are choices, numbers, texts or truth values, or sequences of these."""
    origin = get_origin(hint)
    if origin is Literal:
        return True
    if origin is Annotated:
        return is_checked(get_args(hint)[0])
    if origin is Iterable:
        return get_args(hint)[0] in _SCALARS or get_origin(get_args(hint)[0]) is Annotated
    if origin in (Union, UnionType, tuple, Sequence):
        return all(part is Ellipsis or is_checked(part) for part in get_args(hint))
    return hint in _SCALARS


def adapter_of(hint: Any) -> TypeAdapter[Any]:
    """Return pydantic's adapter for a type, without conversions. Sequences of any kind are tuples to it."""
    return TypeAdapter(_use_tuples(hint), config=ConfigDict(strict=True, allow_inf_nan=False))


def _use_tuples(hint: Any) -> Any:
    origin = get_origin(hint)
    if origin in (Sequence, Iterable):
        return tuple[_use_tuples(get_args(hint)[0]), ...]  # type: ignore[misc]
    if origin in (Union, UnionType):
        return Union[tuple(_use_tuples(argument) for argument in get_args(hint))]  # noqa: UP007 (of any number of types)
    return hint


def make_plain(value: Any) -> Any:
    """Return sequences of any library as tuples, and numbers of NumPy as Python's. Others stay the same."""
    if isinstance(value, str | bytes | Mapping) or value is None:
        return value
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Iterable):
        return tuple(make_plain(part) for part in value)
    return value


def _check(argument: str, value: object, adapter: TypeAdapter[Any]) -> None:
    try:
        adapter.validate_python(value)
    except ValidationError as error:
        # In a union, the alternative that got furthest is the one that was meant.
        details = max(error.errors(include_url=False), key=_progress)
        items = [f"[{part}]" for part in details["loc"] if isinstance(part, int)]
        raise ConfigError(
            f"{argument}{''.join(items)}: {describe_mismatch(details, EXPECTED_HERE)} Correct it."
        ) from None


def _progress(details: Any) -> tuple[int, bool]:
    return len(details["loc"]), details["type"] != "none_required"


def do_nothing(*_: object) -> None:
    """Ignore all arguments."""


def always(*_: object) -> bool:
    """Return True."""
    return True


def never(*_: object) -> bool:
    """Return False."""
    return False
