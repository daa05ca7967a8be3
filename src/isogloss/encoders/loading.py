"""Encoders and models from disk: ordinary Hugging Face folders, read safely (``saving`` writes them).

Weights are read from safetensors only. A model with a head of our own is such a folder too: AutoModel loads
the encoder from it, and the head's weights are in the same safetensors file as ``head.…``.

Of what is loaded, every parameter has stored weights, and every stored weight has a parameter: ``_check_fit``
holds each folder to that before memory is allocated. What may be new, or unused, is the choice of each
function: the parameters of a new head, the weights of a head that is not asked for.

``attention`` is "sdpa" (fused), "eager" (explicit, the only one that can return its probabilities) or our
explicit attention; families without a choice ignore it.
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
from isogloss.data.files import some
from isogloss.encoders import FAMILIES, folders
from isogloss.encoders.added.active_language import attach_language_maps, cast_outputs_back
from isogloss.encoders.added.adapters import PREFIX, load_adapters, read_task_adapter
from isogloss.encoders.added.added_weights import read_language_maps, read_language_modules, read_weights
from isogloss.encoders.added.differences import FORMATS, base_folder, difference_of
from isogloss.encoders.family import Config, Model, initial_spread
from isogloss.encoders.folders import from_pretrained, load_encoder_config
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
"""Prefix of the weights of a head of our own."""


def load_model(source: str | Path, auto_class: AutoClass = "AutoModel", *, attention: str = "sdpa") -> Model:
    """Load an encoder (AutoModel) or a complete model in fp32 and evaluation mode.

    A pooler without weights is removed from the encoder. ModelError if other weights are missing, or weights
    of the encoder are unused; those of heads of other classes may be.
    """
    return _read_encoder(model_folder(source), auto_class, attention)[0]


def _read_encoder(folder: Path, auto_class: AutoClass, attention: str) -> tuple[Model, "_WeightMatch"]:
    new: Part = "pooler" if auto_class == "AutoModel" else "nothing"
    allowed = _Allowed(new=new, unused="heads")
    model, fit = _read_model(folder, auto_class, load_encoder_config(folder), attention, allowed)
    if fit.missing:
        model.pooler = None
    if (folder / PARTS).is_file():
        keep_sentence_parts(model, partial(read_sentence_parts, folder))
    return model, fit


def load_masked_lm(source: str | Path, *, attention: str = "sdpa") -> Model:
    """Load an encoder with its masked-LM head; ModelError for an encoder without."""
    return load_model(source, "AutoModelForMaskedLM", attention=attention)


def load_whole(source: str | Path, *, attention: str = "sdpa") -> Model:
    """Load all pretrained weights: the encoder, with its masked-LM head and its pooler if it has them.

    Saved again after a change, the model retains all weights that a new head may be initialised from.
    """
    encoder = load_model(source, attention=attention)
    if not has_masked_lm_head(load_encoder_config(source)):
        return encoder
    model = load_masked_lm(source, attention=attention)
    if getattr(encoder, "pooler", None) is not None:
        model.base_model.pooler = encoder.pooler
    return model


def has_masked_lm_head(config: Config) -> bool:
    """Return whether a configuration belongs to an encoder saved with a masked-LM head."""
    return any(kind.endswith(("ForMaskedLM", "ForPreTraining")) for kind in config.architectures or ())


def has_text_head(config: Config) -> bool:
    """Return whether an encoder was saved with its pretraining head; a decoder's may be its embeddings."""
    decoder = FAMILIES[config.model_type].is_decoder
    causal_head = any(kind.endswith("ForCausalLM") for kind in config.architectures or ())
    return has_masked_lm_head(config) or (decoder and (causal_head or bool(config.tie_word_embeddings)))


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
    depends on the seed and its name alone. Where transformers has no head that fits, it is a linear layer of
    our own (``EncoderFamily.own_heads``).

    With ``seed`` None nothing is new: ModelError unless a head for these labels is saved.
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
                f"{folder}: {saved_as[0]} answers from the states of its decoder, and isogloss runs the "
                f"encoder alone. Predict with transformers, or fine-tune the encoder here."
            )
        has_same_head = False
    if auto_class in family.own_heads and not has_same_head:
        headed = load_with_own_head(
            folder, lambda dim: nn.Linear(dim, len(labels)), labels=labels, seed=seed, attention=attention
        )
        _set_problem(headed.config, problem_type)
        return headed
    if seed is None and not has_same_head:
        raise _no_head(folder, config, labels)
    _set_labels(config, labels)
    _set_problem(config, problem_type)
    allowed = _Allowed() if has_same_head else _Allowed(new="heads", unused="heads")
    model, fit = _read_model(folder, auto_class, config, attention, allowed)
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
        f"{folder}: no trained head for the labels {some(labels)} is here: config.json names {kinds} and the "
        f"labels {some([*config.id2label.values()])}. Give a model of this task, or fine-tune this one."
    )


CHOICE_AS = ("ForMultipleChoice", "ForSequenceClassification")
"""A head for multiple choice, and the head with one score that it is read as."""


def _is_choice(config: Config) -> bool:
    return any(kind.endswith(CHOICE_AS[0]) for kind in config.architectures or ())


def _order(
    config: Config, labels: Sequence[str], auto_class: AutoClass, problem_type: str
) -> list[int] | None:
    """Return the id of each label in a saved head, [] if ids do not matter; None for other labels."""
    saved = tuple(config.id2label.values())
    if saved == tuple(labels):
        return []
    if auto_class == "AutoModelForQuestionAnswering":
        return []  # Its two labels are start and end, whatever they are called.
    if _is_choice(config):  # Its config counts options, if anything.
        return [] if len(labels) == 1 and not problem_type else None
    if problem_type == "regression" and len(saved) == len(labels) == 1:
        return []  # The name of the only score means nothing.
    ids = {str(label).casefold(): number for number, label in enumerate(saved)}
    order = [ids[label.casefold()] for label in labels if label.casefold() in ids]
    return order if len(ids) == len(saved) == len(labels) == len({*order}) else None


def _reorder(model: nn.Module, head: Iterable[str], order: Sequence[int]) -> None:
    """Put the rows of a head's last layer, which are labels, into another order."""
    if list(order) == sorted(order):
        return
    last = [name for name, _ in model.named_parameters() if name in {*head}][-1].rpartition(".")[0]
    with torch.no_grad():
        for parameter in model.get_submodule(last).parameters():
            parameter.copy_(parameter[list(order)].clone())


def load_with_head(
    folder: Path, auto_class: AutoClass, config: Config, *, attention: str = "sdpa"
) -> tuple[Model, set[str]]:
    """Load a model whose head (or pooler) may lack weights; return it with the names of the missing ones.

    ModelError if weights of the encoder are missing.
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
                drawn = torch.empty(parameter.shape)
                parameter.copy_(drawn.normal_(0.0, initial_spread(config), generator=generator))
            else:
                parameter.fill_(1.0 if name.endswith("weight") else 0.0)


class HeadedEncoder(nn.Module):
    """An encoder with a head of our own; behaves, and is saved, like a model of transformers."""

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
    """Return whether the head of a model is one of our own, and not one of transformers."""
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

    A saved head for the same labels is loaded, any other replaced. New weights depend on the seed and their
    names alone. ModelError for a saved head of other shapes; with ``seed`` None, also where none is saved.
    """
    folder = model_folder(source)
    encoder, fit = _read_encoder(folder, "AutoModel", attention)
    encoder.pooler = None  # Unused by these heads: it would be saved untrained.
    with torch.random.fork_rng(devices=[]):
        model = HeadedEncoder(encoder, make(encoder.config.hidden_size))
    saved = _head_weights(folder) if tuple(encoder.config.id2label.values()) == tuple(labels) else {}
    if seed is None and not saved:
        raise _no_head(folder, encoder.config, labels)
    _set_labels(encoder.config, labels)
    if saved:
        _load_head(model.head, saved, folder)
        if seed is None:
            _check_used(folder, {name for name in fit.unused if not name.startswith(HEAD)})
    else:
        draw_parameters(model, [f"{HEAD}{name}" for name, _ in model.head.named_parameters()], seed=seed or 0)
    return model.eval()


def _head_weights(folder: Path) -> dict[str, Tensor]:
    from safetensors import safe_open

    weights: dict[str, Tensor] = {}
    if difference := difference_of(folder):
        stored = read_weights(folder / difference.weights)
        weights = {name.removeprefix(PREFIX): weight for name, weight in stored.items()}
    elif not folders.gguf_file(folder):
        for path in folders.weight_files(folder, "AutoModel"):
            with safe_open(path, framework="pt") as file:
                names = [name for name in file.keys() if name.startswith(HEAD)]  # noqa: SIM118 (no dict)
                weights |= {name: file.get_tensor(name) for name in names}
    return {name.removeprefix(HEAD): weight for name, weight in weights.items() if name.startswith(HEAD)}


def _load_head(head: nn.Module, weights: Mapping[str, Tensor], folder: Path) -> None:
    for name, shape, expected in folders.differing_shapes(head.state_dict(), weights):
        raise ModelError(
            f"{folder}: this head is not this task's: {HEAD}{name} has the shape {shape} in the weights, and "
            f"{expected} is expected. Give a model of this task, or an encoder alone."
        )
    head.load_state_dict(dict(weights))


def model_folder(source: str | Path) -> Path:
    """Return the folder of a model, given a path or hub name."""
    return folders.find_folder(source, folders.MODEL_FILES, folders.has_weights)


def unmerge(model: Model, folder: Path) -> None:
    """Subtract the merged adapters of a model from its weights, and add them as adapters again.

    Its outputs stay the same within rounding. ModelError for a folder without adapters.
    """
    difference = difference_of(folder)
    if difference is None or difference.format != "peft":
        raise ModelError(
            f"{folder}: this model was trained without adapters (lora, dora, ia3), so there are no factors. "
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
        allowed=_Allowed(new="heads", unused="heads"),
    )
    merged = dict((model.base_model if auto_class == "AutoModel" else model).named_parameters())
    with torch.no_grad():
        for name, weight in base.named_parameters():
            if name in merged and name not in fit.new:
                merged[name].copy_(weight)
    load_adapters(model, folder)


def _set_labels(config: Config, labels: Sequence[str]) -> None:
    config.id2label = dict(enumerate(labels))
    config.label2id = {label: number for number, label in enumerate(labels)}


def _set_problem(config: Config, problem_type: str) -> None:
    """Set a problem type other than classification, and remove that of another head."""
    if problem_type or config.problem_type in ("regression", "multi_label_classification"):
        config.problem_type = problem_type or None


Part = Literal["nothing", "pooler", "heads"]
"""Parts of a model: none of it, the encoder's pooler, or all but the encoder, the pooler included."""


@dataclass(frozen=True, kw_only=True)
class _Allowed:
    """Parts of a model that a folder may lack, and parts that may stay unused."""

    new: Part = "nothing"
    """The part whose parameters may be without stored weights, or of another shape."""
    unused: Literal["pooler", "heads"] = "pooler"
    """The part whose stored weights may be unused; transformers, too, drops a pooler that a class has not."""


@dataclass(frozen=True)
class _WeightMatch:
    """How the weights of a folder fit a model: names of parameters and of weights."""

    missing: set[str]
    """Parameters without stored weights."""
    misshapen: set[str]
    """Parameters whose stored weights have another shape."""
    unused: set[str]
    """Stored weights that no parameter has, under the names that they have for the model."""

    @property
    def new(self) -> set[str]:
        """The parameters that are not read from the folder."""
        return self.missing | self.misshapen


def _read_model(
    folder: Path, auto_class: AutoClass, config: Config, attention: str, allowed: _Allowed
) -> tuple[Model, _WeightMatch]:
    """Return a checked folder's model, and how the weights fit it."""
    folders.check_weights(folder, auto_class)
    if difference := difference_of(folder):
        base = base_folder(folder, difference)
        # A head is the difference's own, whatever the base has.
        model, fit = _read_model(base, auto_class, config, attention, _Allowed(new="heads", unused="heads"))
        head = FORMATS[difference.format](model, folder)
        fit = _WeightMatch(fit.missing - head, fit.misshapen - head, set())
        _check_fit(folder, model, fit, allowed, auto_class, is_difference=True)
        return model, fit
    family = FAMILIES[config.model_type]
    choices = dict(family.renamed_choices) if _is_choice(config) and auto_class.endswith(CHOICE_AS[1]) else {}
    renamed = {**(family.renamed_weights if auto_class == "AutoModel" else {}), **choices}
    config.update(dict(family.loaded_with))
    options: dict[str, object] = {
        "config": config,
        "attn_implementation": "eager" if "attention-kinds" in family.lacks else attention,
        "key_mapping": renamed or None,
        "dtype": torch.float32,
        "use_safetensors": True,
        "ignore_mismatched_sizes": True,
        "output_loading_info": True,
    }
    kind = _class_of(folder, config, auto_class)
    with torch.random.fork_rng(devices=[]):
        if not folders.gguf_file(folder):  # Of which the file is the configuration, too.
            # Without numbers first, so that a configuration that does not fit the weights takes no memory.
            stored = folders.stored_shapes(folder, auto_class)
            _check_sizes(folder, config, stored)
            alone = {**options, "state_dict": stored, "device_map": "meta"}
            empty, info = from_pretrained(kind, folder, alone)
            _check_fit(folder, empty, _fit_of(info), allowed, auto_class)
            _check_fractions(folder, stored, info["unexpected_keys"])
        model, info = from_pretrained(kind, folder, options)
        fit = _fit_of(info)
        _check_fit(folder, model, fit, allowed, auto_class)
    if renamed:
        model._weight_conversions = None  # It is saved by its own names.
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
    """Return the class of transformers for a model; ModelError where it has none."""
    import transformers

    family = FAMILIES[config.model_type]
    if auto_class == "AutoModel" and family.encoder_class != auto_class:
        return cast(type, attrgetter(family.encoder_class)(transformers))
    classes = getattr(transformers, _CLASSES[auto_class])
    if type(config) not in classes:
        raise ModelError(
            f"{folder}: transformers has no {auto_class} for {config.model_type}. Give another model."
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
"""Stored by older versions of transformers or by other libraries, and computed, or unused, by all."""


def _check_fit(
    folder: Path,
    model: Model,
    fit: _WeightMatch,
    allowed: _Allowed,
    auto_class: AutoClass,
    *,
    is_difference: bool = False,
) -> None:
    """Raise ModelError unless all parameters have stored weights, and all stored weights are used."""
    lacking = {name for name in fit.missing if _part(model, name) not in _PARTS[allowed.new]}
    if lacking and is_difference:
        raise ModelError(
            f"{folder}: these adapters were saved without {_shortened(lacking)}, which their base lacks: it "
            f"was random when they were trained. Save it with them (modules_to_save), or use the encoder."
        )
    check_complete(folder, auto_class if allowed.new != "heads" else "whole encoder", lacking)
    _check_shapes(folder, {name for name in fit.misshapen if _part(model, name) not in _PARTS[allowed.new]})
    _check_used(folder, {name for name in fit.unused if _part(model, name) not in _PARTS[allowed.unused]})


_PARTS: Mapping[str, tuple[str, ...]] = {
    "nothing": (),
    "pooler": ("pooler",),
    "heads": ("pooler", "head"),
}


def _part(model: Model, name: str) -> Literal["encoder", "pooler", "head"]:
    """Return the part of a model that a parameter, or a stored weight without one, belongs to."""
    inside = f"{model.base_model_prefix}."
    encoder = model.base_model
    first = name.removeprefix(inside).partition(".")[0]
    around = () if encoder is model else [child for child, _ in model.named_children()]
    if not name.startswith(inside) and first in around:
        return "head"
    if first == "pooler":
        return "pooler"
    return "encoder" if first in [child for child, _ in encoder.named_children()] else "head"


LEAST_NUMBERS = 1 << 20
"""Numbers that any model may have, however few its weights are: 4 MB."""


def _check_sizes(folder: Path, config: Config, stored: Mapping[str, Tensor]) -> None:
    """Raise ModelError if sizes in config.json exceed those of the stored weights."""
    family = FAMILIES[config.model_type]
    numbers = max(LEAST_NUMBERS, sum(tensor.numel() for tensor in stored.values()))
    fields = (*family.architecture.values(), "head_dim", "vocab_size", "type_vocab_size")
    most = dict.fromkeys(fields, numbers)
    most[family.architecture["layers"]] = len(stored)
    if not family.is_rotary:
        most[family.architecture["positions"]] = numbers // max(1, config.hidden_size)
    check_sizes(folder, config, most)


def check_sizes(folder: Path, config: Config, most: Mapping[str, int]) -> None:
    """Raise ModelError for fields of config.json that are larger than they can be.

    Some tables, of positions, are computed when a model is made, before any weights are compared.
    """
    for field, limit in most.items():
        size = getattr(config, field, None)
        if isinstance(size, int) and size > limit:
            raise ModelError(
                f"{folder}: config.json and the weights do not belong together: {field} is {size}, and with "
                f"these weights it is {limit} at most. Copy or download the folder again."
            )


def check_complete(folder: Path, kind: str, missing: set[str]) -> None:
    """Raise ModelError if weights are missing that this kind of model requires."""
    if missing:
        raise ModelError(
            f"{folder}: this is no {kind}: the weights have no {_shortened(missing)}. Give a folder of that "
            f"kind, or copy or download this one again."
        )


def _check_shapes(folder: Path, misshapen: set[str]) -> None:
    if misshapen:
        raise ModelError(
            f"{folder}: config.json and the weights do not belong together: {_shortened(misshapen)} has "
            f"another shape in the weights. Copy or download the folder again."
        )


def _check_used(folder: Path, unused: set[str]) -> None:
    if unused:
        raise ModelError(
            f"{folder}: config.json and the weights do not belong together: a model as it says has no "
            f"{_shortened(unused)}, which the weights have. Copy or download the folder again."
        )


def _check_fractions(folder: Path, stored: Mapping[str, Tensor], unused: Iterable[str]) -> None:
    """Raise ModelError for a quantized model, whose weights are integers."""
    passed_over = {*unused}
    integers = {
        name
        for name, tensor in stored.items()
        if not (tensor.is_floating_point() or COMPUTED.search(name) or name in passed_over)
    }
    if integers:
        raise ModelError(
            f"{folder}: {_shortened(integers)} is stored in whole numbers: these weights are quantized. "
            f"Give the folder of the model in 16 or 32 bits."
        )


def _shortened(names: set[str]) -> str:
    first, *others = sorted(names)
    return f"{first} (and {len(others)} more)" if others else first
