"""Encoders and models from disk: ordinary Hugging Face folders, read safely (``saving`` writes them).

Weights are read from safetensors only. A model with a head of our own is such a folder too: AutoModel loads
the encoder from it, and the head's weights are in the same safetensors file as ``head.…``.

``attention`` is "sdpa" (fused), "eager" (explicit, the only one that can return its probabilities) or our
explicit attention; families without a choice ignore it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn

from isogloss.core.errors import ModelError
from isogloss.core.identity import derive
from isogloss.encoders import folders
from isogloss.encoders.added.active_language import attach_language_maps, cast_outputs_back
from isogloss.encoders.added.adapters import PREFIX, load_adapters, read_task_adapter
from isogloss.encoders.added.added_weights import read_language_maps, read_language_modules, read_weights
from isogloss.encoders.added.differences import FORMATS, base_folder, difference_of
from isogloss.encoders.families import FAMILIES
from isogloss.encoders.family import Config, Model, initial_spread
from isogloss.encoders.folders import from_pretrained, load_encoder_config

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

    A pooler without weights is removed from the encoder. ModelError if other weights are missing.
    """
    folder = model_folder(source)
    model, missing, misshapen = _read_model(folder, auto_class, load_encoder_config(folder), attention)
    check_complete(folder, auto_class, {name for name in missing if not name.startswith("pooler.")})
    _check_shapes(folder, misshapen)
    if missing:
        model.pooler = None
    return model


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
    seed: int,
    attention: str = "sdpa",
    problem_type: str = "",
) -> Model:
    """Load an encoder with a head for these labels, in fp32 and evaluation mode.

    A saved head of the same class with the same labels is loaded, whatever their order and letter case, as
    are the layers that a head shares with a pretrained masked-LM head (in ModernBERT). Each new weight
    depends on the seed and its name alone. Where transformers has no head that fits, it is a linear layer of
    our own (``EncoderFamily.own_heads``).
    """
    folder = model_folder(source)
    config = load_encoder_config(folder)
    if auto_class in FAMILIES[config.model_type].own_heads:
        headed = load_with_own_head(
            folder, lambda dim: nn.Linear(dim, len(labels)), labels=labels, seed=seed, attention=attention
        )
        _set_problem(headed.config, problem_type)
        return headed
    order, kinds = _order(config, labels, auto_class, problem_type), config.architectures or ()
    _set_labels(config, labels)
    _set_problem(config, problem_type)
    model, missing = load_with_head(folder, auto_class, config, attention=attention)
    has_same_head = order is not None and type(model).__name__.replace(*CHOICE_AS) in [
        kind.replace(*CHOICE_AS) for kind in kinds
    ]
    if has_same_head and missing and difference_of(folder) is not None:
        raise ModelError(
            f"{folder}: these adapters were saved without {_shortened(missing)}, which their base lacks: it "
            f"was random when they were trained. Save it with them (modules_to_save), or use the encoder."
        )
    has_weights = has_same_head or any(kind.endswith("ForMaskedLM") for kind in kinds)
    head = {
        name for name, _ in model.named_parameters() if not name.startswith(f"{model.base_model_prefix}.")
    }
    draw_parameters(model, missing if has_weights else missing | head, seed=seed)
    if has_same_head and order:
        _reorder(model, head, order)
    return model


CHOICE_AS = ("ForMultipleChoice", "ForSequenceClassification")
"""A head for multiple choice, and the head with one score that it is read as."""

UNNAMED = ("LABEL_0",)
"""What transformers calls the only label of a head whose labels have no names."""


def _is_choice(config: Config) -> bool:
    return any(kind.endswith(CHOICE_AS[0]) for kind in config.architectures or ())


def _order(
    config: Config, labels: Sequence[str], auto_class: AutoClass, problem_type: str
) -> list[int] | None:
    """Return the id of each label in a saved head, [] if ids do not matter; None for other labels."""
    saved = tuple(config.id2label.values())
    if auto_class == "AutoModelForQuestionAnswering":
        return []  # Its two labels are start and end, whatever they are called.
    if _is_choice(config):  # Its config counts options, if anything.
        return [] if len(labels) == 1 and not problem_type else None
    if problem_type == "regression" and saved == UNNAMED:
        return []
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
    model, missing, misshapen = _read_model(folder, auto_class, config, attention)
    inside = f"{model.base_model_prefix}."
    pooler = f"{inside}pooler."
    check_complete(
        folder, "whole encoder", {n for n in missing if n.startswith(inside) and not n.startswith(pooler)}
    )
    _check_shapes(folder, {name for name in misshapen if name.startswith(inside)})
    return model, missing


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


def load_with_own_head(
    source: str | Path,
    make: Callable[[int], nn.Module],
    *,
    labels: Sequence[str],
    seed: int,
    attention: str = "sdpa",
) -> HeadedEncoder:
    """Load an encoder with the head that ``make`` returns for its hidden size, in fp32 and evaluation mode.

    A saved head for the same labels is loaded, any other replaced. New weights depend on the seed and their
    names alone. ModelError for a saved head of other shapes.
    """
    folder = model_folder(source)
    encoder = load_model(folder, attention=attention)
    encoder.pooler = None  # Unused by these heads: it would be saved untrained.
    with torch.random.fork_rng(devices=[]):
        model = HeadedEncoder(encoder, make(encoder.config.hidden_size))
    saved = _head_weights(folder) if tuple(encoder.config.id2label.values()) == tuple(labels) else {}
    _set_labels(encoder.config, labels)
    if saved:
        _load_head(model.head, saved, folder)
    else:
        draw_parameters(model, [f"{HEAD}{name}" for name, _ in model.head.named_parameters()], seed=seed)
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
    base, encoder = load_model(base_folder(folder, difference)), model.base_model
    with torch.no_grad():
        for name, weight in base.named_parameters():
            if not name.startswith("pooler."):
                encoder.get_parameter(name).copy_(weight)
    load_adapters(model, folder)


def _set_labels(config: Config, labels: Sequence[str]) -> None:
    config.id2label = dict(enumerate(labels))
    config.label2id = {label: number for number, label in enumerate(labels)}


def _set_problem(config: Config, problem_type: str) -> None:
    """Set a problem type other than classification, and remove that of another head."""
    if problem_type or config.problem_type in ("regression", "multi_label_classification"):
        config.problem_type = problem_type or None


def _read_model(
    folder: Path, auto_class: AutoClass, config: Config, attention: str
) -> tuple[Model, set[str], set[str]]:
    """Return the model, and the names of its parameters missing from the weights or of another shape."""
    import transformers

    folders.check_weights(folder, auto_class)
    if difference := difference_of(folder):
        base = base_folder(folder, difference)
        model, missing, misshapen = _read_model(base, auto_class, config, attention)
        head = FORMATS[difference.format](model, folder)
        return model, missing - head, misshapen - head
    family = FAMILIES[config.model_type]
    choices = dict(family.renamed_choices) if _is_choice(config) and auto_class.endswith(CHOICE_AS[1]) else {}
    config.update(dict(family.loaded_with))
    options = {
        "config": config,
        "attn_implementation": "eager" if "attention-kinds" in family.lacks else attention,
        "key_mapping": {**family.renamed_weights, **choices} or None,
        "dtype": torch.float32,
        "use_safetensors": True,
        "ignore_mismatched_sizes": True,
        "output_loading_info": True,
    }
    with torch.random.fork_rng(devices=[]):
        kind = family.encoder_class if auto_class == "AutoModel" else auto_class
        model, info = from_pretrained(attrgetter(kind)(transformers), folder, options)
    if family.renamed_weights or choices:
        model._weight_conversions = None  # It is saved by its own names.
    cast_outputs_back(model)
    maps = read_language_maps(folder, config.hidden_size)
    if maps is not None:
        attach_language_maps(model, maps)
    read_language_modules(model, folder)
    read_task_adapter(model, folder)
    return model.eval(), set(info["missing_keys"]), {name for name, *_ in info["mismatched_keys"]}


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


def _shortened(names: set[str]) -> str:
    first, *others = sorted(names)
    return f"{first} (and {len(others)} more)" if others else first
