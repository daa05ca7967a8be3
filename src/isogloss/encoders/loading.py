"""Load encoders and models from ordinary Hugging Face folders, safely (``saving`` writes them).

Weights are read only from safetensors. A model with one of our heads is also such a folder: AutoModel loads
the encoder from it, and the head's weights are in the same safetensors file as ``head.…``.

Every parameter must have stored weights, and every stored weight must have a parameter. ``_check_fit`` checks
each folder before memory is allocated. Each function chooses the parameters that may be new (a new head) and
the weights that may be unused (a head that is not needed).

``attention`` is "sdpa" (fused), "eager" (explicit, the only one that can return its probabilities) or our
explicit attention. Families without a choice ignore it.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, cast, get_args

import torch
from torch import Tensor, nn

from isogloss.core.errors import ModelError
from isogloss.core.identity import derive
from isogloss.core.processes import collector_paused
from isogloss.data.files import some
from isogloss.encoders import FAMILIES, folders
from isogloss.encoders.added.active_language import attach_language_maps, cast_outputs_back
from isogloss.encoders.added.added_weights import read_language_maps, read_language_modules, read_weights
from isogloss.encoders.added.differences import DIFFERENCE_FORMATS, base_folder, difference_of
from isogloss.encoders.added.peft_folders import PREFIX
from isogloss.encoders.added.task_adapters import read_task_adapter
from isogloss.encoders.families import has_masked_lm_head
from isogloss.encoders.family import Config, Model, initial_spread
from isogloss.encoders.folders import from_pretrained, load_encoder_config, model_folder
from isogloss.encoders.sentence_part_files import PARTS, read_sentence_parts
from isogloss.encoders.sentence_parts import keep_sentence_parts

AutoClass = Literal[
    "AutoModel",
    "AutoModelForCausalLM",
    "AutoModelForMaskedLM",
    "AutoModelForQuestionAnswering",
    "AutoModelForSequenceClassification",
    "AutoModelForTokenClassification",
]

HEAD = "head."
"""Prefix of the weights of our heads."""


def load_model(source: str | Path, auto_class: AutoClass = "AutoModel", *, attention: str = "sdpa") -> Model:
    """Load an encoder (AutoModel) or a complete model in fp32 and evaluation mode.

    A pooler without weights is removed from the encoder. Raises ModelError if other weights are missing, or
    if weights of the encoder are unused. Weights of heads of other classes may be unused.
    """
    return _read_encoder(model_folder(source), auto_class, attention)[0]


def _read_encoder(folder: Path, auto_class: AutoClass, attention: str) -> tuple[Model, "_WeightMatch"]:
    new_part: Part = "pooler" if auto_class == "AutoModel" else "nothing"
    tolerance = _Allowed(new=new_part, unused="heads")
    model, fit = _read_model(folder, auto_class, load_encoder_config(folder), attention, tolerance)
    if fit.missing:
        model.pooler = None
    if (folder / PARTS).is_file():
        keep_sentence_parts(model, partial(read_sentence_parts, folder))
    return model, fit


def load_masked_lm(source: str | Path, *, attention: str = "sdpa") -> Model:
    """Load an encoder with its masked-LM head.

    Raises ModelError for an encoder without the head.
    """
    return load_model(source, "AutoModelForMaskedLM", attention=attention)


def load_whole(source: str | Path, *, attention: str = "sdpa") -> Model:
    """Load all pretrained weights: the encoder, with its masked-LM head and its pooler if it has them.

    Saved again after a change, the model retains all weights from which a new head may be initialised.
    """
    encoder = load_model(source, attention=attention)
    if not has_masked_lm_head(load_encoder_config(source)):
        return encoder
    model = load_masked_lm(source, attention=attention)
    if getattr(encoder, "pooler", None) is not None:
        model.base_model.pooler = encoder.pooler
    return model


def load_with_new_head(
    source: str | Path,
    auto_class: AutoClass,
    *,
    labels: Sequence[str],
    seed: int | None,
    attention: str = "sdpa",
    problem_type: str = "",
) -> Model:
    """Load an encoder with a head for these labels, in fp32 and evaluation mode.

    A saved head of the same class with the same labels is loaded, whatever their order and letter case, as
    are the layers that a head shares with a pretrained masked-LM head (in ModernBERT). Each new weight
    depends only on the seed and its name. If transformers has no suitable head, it is one of our linear
    layers (``EncoderFamily.own_heads``).

    With ``seed`` None nothing is new: ModelError is raised unless a head for these labels is saved.
    """
    folder = model_folder(source)
    config = load_encoder_config(folder)
    family = FAMILIES[config.model_type]
    kinds = config.architectures or ()
    order = _order(config, labels, auto_class, problem_type)
    saved_as = [
        kind for kind in kinds if kind.replace(*CHOICE_AS).endswith(auto_class.removeprefix("AutoModel"))
    ]
    has_same_head = order is not None and bool(saved_as)
    if has_same_head and auto_class in family.decoder_heads:
        if seed is None:
            raise ModelError(
                f"{folder}: {saved_as[0]} answers from the states of its decoder, but isogloss runs only the "
                f"encoder. Predict with transformers, or fine-tune the encoder here."
            )
        has_same_head = False
    if auto_class in family.own_heads and not has_same_head:
        model_with_head = load_with_own_head(
            folder, lambda dim: nn.Linear(dim, len(labels)), labels=labels, seed=seed, attention=attention
        )
        _set_problem(model_with_head.config, problem_type)
        return model_with_head
    if seed is None and not has_same_head:
        raise _no_head(folder, config, labels)
    _set_labels(config, labels)
    _set_problem(config, problem_type)
    tolerance = _Allowed() if has_same_head else _Allowed(new="heads", unused="heads")
    model, fit = _read_model(folder, auto_class, config, attention, tolerance)
    if has_same_head:
        if order:
            _reorder(model, _head_names(model), order)
        return model
    is_pretrained = any(kind.endswith("ForMaskedLM") for kind in kinds)
    draw_parameters(model, fit.new if is_pretrained else fit.new | _head_names(model), seed=seed or 0)
    return model


def _head_names(model: Model) -> set[str]:
    inside = f"{model.base_model_prefix}."
    return {name for name, _ in model.named_parameters() if not name.startswith(inside)}


def _no_head(folder: Path, config: Config, labels: Sequence[str]) -> ModelError:
    kinds = ", ".join(config.architectures or ()) or "no class"
    return ModelError(
        f"{folder}: no trained head for the labels {some(labels)}: config.json names {kinds} and the "
        f"labels {some(config.id2label.values())}. Give a model of this task, or fine-tune this one."
    )


CHOICE_AS = ("ForMultipleChoice", "ForSequenceClassification")
"""Class of a head for multiple choice, and the class with one score as which it is read."""


def _is_choice(config: Config) -> bool:
    return any(kind.endswith(CHOICE_AS[0]) for kind in config.architectures or ())


def _order(
    config: Config, labels: Sequence[str], auto_class: AutoClass, problem_type: str
) -> list[int] | None:
    """Return the id of each label in a saved head, [] if ids do not matter, or None for other labels."""
    saved_labels = tuple(config.id2label.values())
    if saved_labels == tuple(labels):
        return []
    if auto_class == "AutoModelForQuestionAnswering":
        return []  # The two labels are start and end under any names.
    if _is_choice(config):  # The labels of such a config are options, if any.
        return [] if len(labels) == 1 and not problem_type else None
    if problem_type == "regression" and len(saved_labels) == len(labels) == 1:
        return []  # The name of the only score is arbitrary.
    ids = {str(label).casefold(): index for index, label in enumerate(saved_labels)}
    order = [ids[label.casefold()] for label in labels if label.casefold() in ids]
    return order if len(ids) == len(saved_labels) == len(labels) == len(set(order)) else None


def _reorder(model: nn.Module, head: Iterable[str], order: Sequence[int]) -> None:
    """Put the rows of a head's last layer, which are labels, into a different order."""
    if list(order) == sorted(order):
        return
    head_names = set(head)
    names = [name for name, _ in model.named_parameters() if name in head_names]
    last_layer = names[-1].rpartition(".")[0]
    with torch.no_grad():
        for parameter in model.get_submodule(last_layer).parameters():
            parameter.copy_(parameter[list(order)].clone())


def load_with_head(
    folder: Path, auto_class: AutoClass, config: Config, *, attention: str = "sdpa"
) -> tuple[Model, set[str]]:
    """Load a model whose head (or pooler) may lack weights, and return it with their names.

    Raises ModelError if weights of the encoder are missing.
    """
    model, fit = _read_model(folder, auto_class, config, attention, _Allowed(new="heads", unused="heads"))
    return model, fit.new


def draw_parameters(model: nn.Module, names: Iterable[str], *, seed: int) -> None:
    """Reinitialise named parameters of a model with a config, each from the seed and its own name.

    Matrices are drawn from N(0, ``initial_spread``²); biases become 0, norm weights 1. The global random
    state is not used.
    """
    config: Config = model.config
    for name in names:
        parameter = model.get_parameter(name)
        with torch.no_grad():
            if parameter.ndim > 1:
                generator = torch.Generator().manual_seed(derive(seed, name))
                weights = torch.empty(parameter.shape)
                parameter.copy_(weights.normal_(0.0, initial_spread(config), generator=generator))
            else:
                parameter.fill_(1.0 if name.endswith("weight") else 0.0)


class HeadedEncoder(nn.Module):
    """An encoder with one of our heads, which behaves and is saved like a model of transformers."""

    def __init__(self, encoder: Model, head: nn.Module) -> None:
        super().__init__()
        self.config: Config = encoder.config
        self.base_model_prefix: str = encoder.base_model_prefix
        self.add_module(self.base_model_prefix, encoder)
        self.head = head

    @property
    def base_model(self) -> Model:
        """The encoder."""
        return self.get_submodule(self.base_model_prefix)

    def save_pretrained(self, folder: str | Path) -> None:
        """Write configuration and all weights into a folder."""
        self.base_model.save_pretrained(folder, state_dict=self.state_dict())


def has_own_head(model: nn.Module) -> bool:
    """Return whether the head of a model is one of ours, instead of transformers'."""
    return isinstance(model, HeadedEncoder)


def load_with_own_head(
    source: str | Path,
    make: Callable[[int], nn.Module],
    *,
    labels: Sequence[str],
    seed: int | None,
    attention: str = "sdpa",
) -> HeadedEncoder:
    """Load an encoder with the head that ``make`` returns for its hidden size, in fp32 and evaluation mode.

    A saved head for the same labels is loaded, any other replaced. New weights depend only on the seed and
    their names. Raises ModelError for a saved head with other shapes, and with ``seed`` None also without a
    saved head.
    """
    folder = model_folder(source)
    encoder, fit = _read_encoder(folder, "AutoModel", attention)
    encoder.pooler = None  # These heads do not use it, so it would be saved untrained.
    with torch.random.fork_rng(devices=[]):
        model = HeadedEncoder(encoder, make(encoder.config.hidden_size))
    saved_weights = _head_weights(folder) if tuple(encoder.config.id2label.values()) == tuple(labels) else {}
    if seed is None and not saved_weights:
        raise _no_head(folder, encoder.config, labels)
    _set_labels(encoder.config, labels)
    if saved_weights:
        _load_head(model.head, saved_weights, folder)
        if seed is None:
            _check_used(folder, {name for name in fit.unused if not name.startswith(HEAD)})
    else:
        draw_parameters(model, [f"{HEAD}{name}" for name, _ in model.head.named_parameters()], seed=seed or 0)
    return model.eval()


def _head_weights(folder: Path) -> dict[str, Tensor]:
    from safetensors import safe_open

    weights: dict[str, Tensor] = {}
    if difference := difference_of(folder):
        difference_weights = read_weights(folder / difference.weights)
        weights = {name.removeprefix(PREFIX): weight for name, weight in difference_weights.items()}
    elif not folders.gguf_file(folder):
        for path in folders.weight_files(folder, "AutoModel"):
            with safe_open(path, framework="pt") as file:
                names = [name for name in file.keys() if name.startswith(HEAD)]  # noqa: SIM118 (not a dict)
                weights |= {name: file.get_tensor(name) for name in names}
    return {name.removeprefix(HEAD): weight for name, weight in weights.items() if name.startswith(HEAD)}


def _load_head(head: nn.Module, weights: Mapping[str, Tensor], folder: Path) -> None:
    for name, shape, head_shape in folders.differing_shapes(head.state_dict(), weights):
        raise ModelError(
            f"{folder}: this head is not this task's: {HEAD}{name} has the shape {shape} in the weights; "
            f"expected {head_shape}. Give a model of this task, or only an encoder."
        )
    head.load_state_dict(dict(weights))


def unmerge(model: Model, folder: Path) -> None:
    """Subtract the merged adapters of a model from its weights, and add them as adapters again.

    Its outputs change only by rounding. Raises ModelError for a folder without adapters.
    """
    difference = difference_of(folder)
    load_unmerged = DIFFERENCE_FORMATS[difference.format].load_unmerged if difference else None
    if difference is None or load_unmerged is None:
        raise ModelError(
            f"{folder}: this model was trained without adapters (lora, dora, ia3), so it has no factors. "
            f"Measure its weights instead."
        )
    class_name = type(model).__name__
    kinds = get_args(AutoClass)[1:]
    auto_class: AutoClass = next(
        (kind for kind in kinds if class_name.endswith(kind.removeprefix("AutoModel"))), "AutoModel"
    )
    base, fit = _read_model(
        base_folder(folder, difference),
        auto_class,
        deepcopy(model.config),
        attention="eager",
        tolerance=_Allowed(new="heads", unused="heads"),
    )
    parameters = dict((model.base_model if auto_class == "AutoModel" else model).named_parameters())
    with torch.no_grad():
        for name, weight in base.named_parameters():
            if name in parameters and name not in fit.new:
                parameters[name].copy_(weight)
    load_unmerged(model, folder)


def _set_labels(config: Config, labels: Sequence[str]) -> None:
    config.id2label = dict(enumerate(labels))
    config.label2id = {label: index for index, label in enumerate(labels)}


def _set_problem(config: Config, problem_type: str) -> None:
    """Set a problem type other than classification, or remove the type of a previous head."""
    if problem_type or config.problem_type in ("regression", "multi_label_classification"):
        config.problem_type = problem_type or None


Part = Literal["nothing", "pooler", "heads"]
"""Parts of a model: none of it, the encoder's pooler, or everything but the encoder, including the pooler."""


@dataclass(frozen=True, kw_only=True)
class _Allowed:
    """Parts of a model that a folder may lack, and parts that may stay unused."""

    new: Part = "nothing"
    """Part whose parameters may lack stored weights, or have a different shape."""
    unused: Literal["pooler", "heads"] = "pooler"
    """Part whose stored weights may be unused. transformers also drops a pooler that a class lacks."""


@dataclass(frozen=True)
class _WeightMatch:
    """Match of the weights in a folder with a model, as names of parameters and of weights."""

    missing: set[str]
    """Parameters without stored weights."""
    misshapen: set[str]
    """Parameters whose stored weights have a different shape."""
    unused: set[str]
    """Stored weights without a parameter, under their names for the model."""

    @property
    def new(self) -> set[str]:
        """Parameters that are not read from the folder."""
        return self.missing | self.misshapen


@collector_paused()
def _read_model(
    folder: Path, auto_class: AutoClass, config: Config, attention: str, tolerance: _Allowed
) -> tuple[Model, _WeightMatch]:
    """Return a checked folder's model, and the match of its weights."""
    folders.check_weights(folder, auto_class)
    if difference := difference_of(folder):
        base = base_folder(folder, difference)
        # A head belongs to the difference, even if the base has one.
        model, fit = _read_model(base, auto_class, config, attention, _Allowed(new="heads", unused="heads"))
        head = DIFFERENCE_FORMATS[difference.format].load(model, folder)
        fit = _WeightMatch(fit.missing - head, fit.misshapen - head, set())
        _check_fit(folder, model, fit, tolerance, auto_class, is_difference=True)
        return model, fit
    family = FAMILIES[config.model_type]
    choices = dict(family.renamed_choices) if _is_choice(config) and auto_class.endswith(CHOICE_AS[1]) else {}
    key_mapping = {**(family.renamed_weights if auto_class == "AutoModel" else {}), **choices}
    config.update(dict(family.loaded_with))
    options: dict[str, object] = {
        "config": config,
        "attn_implementation": "eager" if "attention-kinds" in family.lacks else attention,
        "key_mapping": key_mapping or None,
        "dtype": torch.float32,
        "use_safetensors": True,
        "ignore_mismatched_sizes": True,
        "output_loading_info": True,
    }
    kind = _class_of(folder, config, auto_class)
    with torch.random.fork_rng(devices=[]):
        if not folders.gguf_file(folder):  # A GGUF file includes its configuration.
            # First without numbers, so that a configuration that does not fit the weights uses no memory.
            shapes = folders.stored_shapes(folder, auto_class)
            _check_sizes(folder, config, shapes)
            shape_options = {**options, "state_dict": shapes, "device_map": "meta"}
            empty_model, info = from_pretrained(kind, folder, shape_options)
            _check_fit(folder, empty_model, _fit_of(info), tolerance, auto_class)
            _check_fractions(folder, shapes, info["unexpected_keys"])
        model, info = from_pretrained(kind, folder, options)
        fit = _fit_of(info)
        _check_fit(folder, model, fit, tolerance, auto_class)
    if key_mapping:
        model._weight_conversions = None  # The model is saved under its own names.
    cast_outputs_back(model)
    maps = read_language_maps(folder, config.hidden_size)
    if maps is not None:
        attach_language_maps(model, maps)
    read_language_modules(model, folder)
    read_task_adapter(model, folder)
    return model.eval(), fit


_CLASSES: Mapping[AutoClass, str] = {
    "AutoModel": "MODEL_MAPPING",
    "AutoModelForCausalLM": "MODEL_FOR_CAUSAL_LM_MAPPING",
    "AutoModelForMaskedLM": "MODEL_FOR_MASKED_LM_MAPPING",
    "AutoModelForQuestionAnswering": "MODEL_FOR_QUESTION_ANSWERING_MAPPING",
    "AutoModelForSequenceClassification": "MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING",
    "AutoModelForTokenClassification": "MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING",
}
"""Names in transformers of the tables from configurations to classes."""


def _class_of(folder: Path, config: Config, auto_class: AutoClass) -> type:
    """Return the class of transformers for a model.

    Raises ModelError if it has none.
    """
    import transformers

    family = FAMILIES[config.model_type]
    if auto_class == "AutoModel" and family.encoder_class != auto_class:
        return cast(type, attrgetter(family.encoder_class)(transformers))
    classes = getattr(transformers, _CLASSES[auto_class])
    if type(config) not in classes:
        raise ModelError(
            f"{folder}: transformers has no {auto_class} for {config.model_type}. Give a different model."
        )
    return cast(type, classes[type(config)])


def _fit_of(info: Mapping[str, Iterable[Any]]) -> _WeightMatch:
    return _WeightMatch(
        set(info["missing_keys"]),
        {name for name, *_ in info["mismatched_keys"]},
        {name for name in info["unexpected_keys"] if not COMPUTED.search(name)},
    )


COMPUTED = re.compile(
    r"(^|\.)(position_ids|token_type_ids|embed_positions\.weights?|word_embeddings\._weight)$"
)
"""Weights stored by older versions of transformers or by other libraries, but always computed or unused."""


def _check_fit(
    folder: Path,
    model: Model,
    fit: _WeightMatch,
    tolerance: _Allowed,
    auto_class: AutoClass,
    *,
    is_difference: bool = False,
) -> None:
    """Raise ModelError unless all parameters have stored weights, and all stored weights are used."""
    lacking = {name for name in fit.missing if _part(model, name) not in _PARTS[tolerance.new]}
    if lacking and is_difference:
        raise ModelError(
            f"{folder}: these adapters were saved without {_shorten_message(lacking)}, which their base also "
            f"lacks: it was random when they were trained. Save it with them (modules_to_save), or use the "
            f"encoder."
        )
    check_complete(folder, auto_class if tolerance.new != "heads" else "encoder", lacking)
    _check_shapes(folder, {name for name in fit.misshapen if _part(model, name) not in _PARTS[tolerance.new]})
    _check_used(folder, {name for name in fit.unused if _part(model, name) not in _PARTS[tolerance.unused]})


_PARTS: Mapping[str, tuple[str, ...]] = {
    "nothing": (),
    "pooler": ("pooler",),
    "heads": ("pooler", "head"),
}


def _part(model: Model, name: str) -> Literal["encoder", "pooler", "head"]:
    """Return the part of a model that a parameter, or a stored weight without one, belongs to."""
    inside = f"{model.base_model_prefix}."
    encoder = model.base_model
    child_name = name.removeprefix(inside).partition(".")[0]
    siblings = () if encoder is model else [child for child, _ in model.named_children()]
    if not name.startswith(inside) and child_name in siblings:
        return "head"
    if child_name == "pooler":
        return "pooler"
    return "encoder" if child_name in [child for child, _ in encoder.named_children()] else "head"


LEAST_NUMBERS = 1 << 20
"""Number of numbers that any model may have, even with few weights: 4 MB."""


def _check_sizes(folder: Path, config: Config, weights: Mapping[str, Tensor]) -> None:
    """Raise ModelError if sizes in config.json exceed the sizes of the stored weights."""
    family = FAMILIES[config.model_type]
    numbers = max(LEAST_NUMBERS, sum(tensor.numel() for tensor in weights.values()))
    fields = (*family.architecture.values(), "head_dim", "vocab_size", "type_vocab_size")
    limits = dict.fromkeys(fields, numbers)
    limits[family.architecture["layers"]] = len(weights)
    if not family.is_rotary:
        limits[family.architecture["positions"]] = numbers // max(1, config.hidden_size)
    check_sizes(folder, config, limits)


def check_sizes(folder: Path, config: Config, limits: Mapping[str, int]) -> None:
    """Raise ModelError for fields of config.json that are larger than possible.

    Some tables, such as positions, are computed when a model is created, before its weights are compared.
    """
    for field, limit in limits.items():
        size = getattr(config, field, None)
        if isinstance(size, int) and size > limit:
            raise ModelError(
                f"{folder}: config.json and the weights do not belong together: {field} is {size}, but with "
                f"these weights it is {limit} at most. Copy or download the folder again."
            )


def check_complete(folder: Path, kind: str, missing: set[str]) -> None:
    """Raise ModelError if weights are missing that this kind of model requires."""
    if missing:
        raise ModelError(
            f"{folder}: the weights lack {_shorten_message(missing)}, so this is not a complete {kind}. Give "
            f"a complete one, or copy or download this one again."
        )


def _check_shapes(folder: Path, names: set[str]) -> None:
    if names:
        raise ModelError(
            f"{folder}: config.json and the weights do not belong together: {_shorten_message(names)} has "
            f"a different shape in the weights. Copy or download the folder again."
        )


def _check_used(folder: Path, names: set[str]) -> None:
    if names:
        raise ModelError(
            f"{folder}: config.json and the weights do not belong together: the weights have "
            f"{_shorten_message(names)}, which a model of this configuration lacks. Copy or download the "
            f"folder again."
        )


def _check_fractions(folder: Path, weights: Mapping[str, Tensor], unused_names: Iterable[str]) -> None:
    """Raise ModelError for a quantized model, whose weights are integers."""
    skipped_names = set(unused_names)
    integers = {
        name
        for name, tensor in weights.items()
        if not (tensor.is_floating_point() or COMPUTED.search(name) or name in skipped_names)
    }
    if integers:
        raise ModelError(
            f"{folder}: {_shorten_message(integers)} is stored as integers: these weights are quantized. "
            f"Give the folder of the model in 16 or 32 bits."
        )


def _shorten_message(names: set[str]) -> str:
    first_name, *other_names = sorted(names)
    return f"{first_name} (and {len(other_names)} more)" if other_names else first_name
