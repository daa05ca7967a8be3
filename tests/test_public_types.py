"""Public functions take, return and raise types with public names."""

import inspect
import pydoc
import re
import typing

import pytest
from torch import nn

import isogloss
import isogloss.plugins
import isogloss.testing
from any_models import make_model
from each import each
from isogloss.core import errors

PUBLIC = {*isogloss.__all__, *isogloss.plugins.__all__, *isogloss.testing.__all__}


def public_callables():
    """Yield each public function, method and property by its name, and constructors that users call."""
    for name in isogloss.__all__:
        thing = getattr(isogloss, name)
        if not inspect.isclass(thing):
            if callable(thing):
                yield name, thing
            continue
        if issubclass(thing, Exception) or getattr(thing, "_is_protocol", False):
            continue
        if issubclass(thing, nn.Module):
            yield name, thing.__init__
        for member, value in vars(thing).items():
            function = getattr(value, "fget", None) or getattr(value, "func", None) or value
            if not member.startswith("_") and inspect.isfunction(inspect.unwrap(function)):
                yield f"{name}.{member}", function


CALLABLES = dict(public_callables())


def classes_in(hint):
    """Yield the classes of isogloss that an annotation names, of texts those that its names are of."""
    if isinstance(hint, str):
        yield from re.findall(r"\b[A-Z]\w+", hint)
    elif typing.get_origin(hint) is typing.Literal:
        return
    elif inspect.isclass(hint) and hint.__module__.startswith("isogloss") and not typing.get_args(hint):
        yield hint.__name__
    for part in typing.get_args(hint):
        for inner in part if isinstance(part, list) else [part]:
            yield from classes_in(inner)
    if isinstance(hint, typing.TypeVar) and hint.__bound__ is not None:
        yield from classes_in(hint.__bound__)


OF_OTHER_LIBRARIES = {
    *("Any", "Callable", "DataFrame", "Literal", "Mapping", "None", "Path", "Sequence", "Series"),
    *("PreTrainedModel", "PreTrainedTokenizerFast", "Predicted", "Annotated", "Iterable", "Iterator"),
}


@pytest.mark.parametrize("name", CALLABLES)
def test_types_of_arguments_and_results_have_a_public_name(name):
    parts = {part for hint in inspect.get_annotations(CALLABLES[name]).values() for part in classes_in(hint)}
    aliases = {"Source", "Rows", "Announce", "OnProgress", "Row", "Answer", "Treebanks", "ExecutionOptions"}
    aliases |= {"RowClass"}
    assert parts - PUBLIC - OF_OTHER_LIBRARIES - aliases == set()


@pytest.mark.parametrize("name", CALLABLES)
def test_only_what_may_be_anything_is_typed_as_such(name):
    """A model, a tokenizer or a table that is Any has no useful help()."""
    for argument, hint in each(inspect.get_annotations(CALLABLES[name]).items()):
        assert hint is not typing.Any or f"{name} {argument}" in MAY_BE_ANYTHING, argument


MAY_BE_ANYTHING = {
    "MetaLearner.forward batch",
    "Model.predict translations",
    "Model.predict return",
}
"""Batches are what the user's loss takes. Answers are of the model's task."""


@pytest.mark.parametrize("name", CALLABLES)
def test_documented_errors_have_a_public_name(name):
    text = inspect.getdoc(CALLABLES[name]) or ""
    raised_matches = set(re.findall(r"\b([A-Z]\w*Error)\b", text))
    builtin = {"TypeError", "KeyError", "ValueError"}
    assert raised_matches - PUBLIC - builtin == set()


def test_every_error_of_isogloss_has_a_public_name():
    classes = {
        name: value
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, errors.IsoglossError)
    }
    assert {name for name in classes if getattr(isogloss, name, None) is not classes[name]} == set()


def test_public_names_are_those_of_their_classes():
    names = [name for name in isogloss.__all__ if name != "__version__"]
    assert [getattr(isogloss, name).__name__ for name in names] == names


def test_models_of_transformers_peft_and_torch_are_of_the_types_that_functions_take():
    peft = pytest.importorskip("peft")
    model, tokenizer = make_model("bert")
    assert isinstance(tokenizer, isogloss.TextTokenizer)
    adapted_peft_model = peft.get_peft_model(make_model("bert")[0], peft.LoraConfig(target_modules=["query"]))
    models = (model, adapted_peft_model, nn.DataParallel(model), nn.Sequential(model))
    assert [isinstance(each_of, isogloss.TextModel) for each_of in models] == [True] * 4
    assert not isinstance(tokenizer, isogloss.TextModel) and not isinstance(model, isogloss.TextTokenizer)


def test_a_sentence_transformer_is_a_model_that_functions_take():
    library = pytest.importorskip("sentence_transformers")
    assert isinstance(library.SentenceTransformer(modules=[nn.Identity()]), isogloss.TextModel)


@pytest.mark.parametrize(
    "name", [name for name in isogloss.__all__ if inspect.isfunction(getattr(isogloss, name))]
)
def test_help_shows_types_without_the_inner_parts_of_checks(name):
    text = str(inspect.signature(getattr(isogloss, name)))
    assert "FieldInfo" not in text and "model: Any" not in text and "tokenizer: Any" not in text


def test_help_of_cka_names_models_tokenizers_and_ranges():
    doc = pydoc.render_doc(isogloss.cka)
    for part in ("TextModel", "TextTokenizer", "States", "Ge(ge=1)", "float32", "Device: ", "Cost: "):
        assert part in doc
