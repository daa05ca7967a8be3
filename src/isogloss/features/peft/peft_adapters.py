"""Adapters made by the library peft (LoRA, IA3): added to a model, merged, written, and loaded.

They are put into the modules that the family's sites name, with the weights around them frozen, and merged
after training: the model is an ordinary one again. On disk they are an ordinary peft folder with the head
among ``modules_to_save``.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from isogloss.core.atomic_files import disk_error, reading_error
from isogloss.core.errors import ConfigError, ModelError, StorageError, one_line
from isogloss.encoders import folders
from isogloss.encoders.added.added_weights import read_weights, write_weights
from isogloss.encoders.added.differences import DifferenceFormat
from isogloss.encoders.added.language_modules import encoder_of
from isogloss.encoders.added.peft_folders import CONFIG, PREFIX, WEIGHTS, check_type
from isogloss.encoders.families import family_of
from isogloss.encoders.family import (
    Config,
    EncoderFamily,
    Model,
    encoder_prefix,
    freeze,
    head_parameters,
    thaw,
)
from isogloss.features.peft.adapted_modules import ModuleChoice, check_peft

if TYPE_CHECKING:
    from peft import PeftConfig

ADAPTER = "default"

TASK_TYPES = {
    "ForTokenClassification": "TOKEN_CLS",
    "ForSequenceClassification": "SEQ_CLS",
    "ForQuestionAnswering": "QUESTION_ANS",
}
"""The task type of peft for the class of a model."""


def module_names(model: Model, modules: Sequence[ModuleChoice]) -> list[str]:
    """Return the names, in the encoder, of these modules of all layers.

    ConfigError for modules after which the encoder has language adapters.
    """
    inside = encoder_prefix(model)
    names = []
    for site in family_of(model).sites(model):
        for name in modules:
            if "forward" in vars(site.module(model, name)):
                raise ConfigError(
                    f"peft: modules: {name}: this encoder has language adapters after it. Choose others, as "
                    f'in modules = ["query", "value"].'
                )
            names.append(str(getattr(site, name)).removeprefix(inside))
    return names


def add_adapters(model: nn.Module, config: "PeftConfig", *, seed: int) -> None:
    """Put a peft configuration's adapters into a model and freeze the encoder, but not the head.

    The initial weights of the adapters depend only on the seed, and change no output.
    """
    from peft import inject_adapter_in_model

    head = head_parameters(model)
    encoder_parameters = [weight for name, weight in model.named_parameters() if name not in head]
    device = next(model.parameters()).device
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"peft\.")
        torch.manual_seed(seed)
        inject_adapter_in_model(config, model, adapter_name=ADAPTER)
    thaw(model)
    freeze(encoder_parameters)
    model.to(device)


def adapter_weights(model: nn.Module) -> dict[str, Tensor]:
    """Return copies of the weights of adapters and head by their names in a peft folder."""
    from peft import get_peft_model_state_dict

    weights = {**get_peft_model_state_dict(model, adapter_name=ADAPTER), **head_parameters(model)}
    return {f"{PREFIX}{name}": weight.detach().cpu().clone() for name, weight in weights.items()}


def merge_adapters(model: nn.Module) -> "PeftConfig":
    """Merge the adapters into the weights; return their configuration. All weights are trainable again."""
    from peft.tuners.tuners_utils import BaseTunerLayer

    def merge(layer: Any) -> nn.Module:
        layer.merge()
        return cast(nn.Module, layer.get_base_layer())

    _replace(model, BaseTunerLayer, merge)
    config = cast(Any, model).peft_config[ADAPTER]
    del cast(Any, model).peft_config
    thaw(model)
    return config


def _replace(model: nn.Module, kind: type, replacement: Callable[[Any], nn.Module]) -> None:
    """Replace the modules of a kind, but for those inside a replaced one."""
    prefixes = tuple[str, ...]()
    for name, module in list(model.named_modules()):
        if isinstance(module, kind) and not name.startswith(prefixes):
            parent, _, attribute = name.rpartition(".")
            setattr(model.get_submodule(parent), attribute, replacement(module))
            prefixes += (f"{name}.",)


def write_adapters(
    folder: Path, weights: dict[str, Tensor], config: "PeftConfig", model: nn.Module, base: str
) -> None:
    """Write an ordinary peft folder: configuration and weights, the head's among ``modules_to_save``."""
    write_weights(folder / WEIGHTS, weights, {"format": "pt"})
    peft_config = copy(config)
    peft_config.base_model_name_or_path, _, revision = base.partition("@")
    peft_config.revision = revision or None
    peft_config.inference_mode = True
    tops = {name.removeprefix(encoder_prefix(model)).split(".")[0] for name in head_parameters(model)}
    peft_config.modules_to_save = sorted(tops) or None
    for name in ("target_modules", "feedforward_modules"):  # Sets, whose order differs each time.
        if hasattr(peft_config, name):
            setattr(peft_config, name, sorted(getattr(peft_config, name)))
    kind = type(model).__name__
    peft_config.task_type = next((task for end, task in TASK_TYPES.items() if kind.endswith(end)), None)
    peft_config.save_pretrained(str(folder))


def apply_adapters(model: nn.Module, folder: Path) -> set[str]:
    """Add and merge a peft folder's adapters.

    Returns the names of the weights that were saved with them.
    """
    names = load_adapters(model, folder)
    if hasattr(model, "peft_config"):
        merge_adapters(model)
    return names


class _Encoder(nn.Module):
    """A wrapper of an encoder under the name that it has in a model with a head."""

    def __init__(self, encoder: Model, prefix: str) -> None:
        super().__init__()
        self.config: Config = encoder.config
        self.base_model_prefix = prefix
        self.add_module(prefix, encoder)

    @property
    def base_model(self) -> nn.Module:
        """The encoder."""
        return self.get_submodule(self.base_model_prefix)

    def get_input_embeddings(self) -> nn.Module:
        """Return the embeddings. peft calls this method."""
        return cast(nn.Module, cast(Model, self.base_model).get_input_embeddings())


def load_adapters(model: nn.Module, folder: Path) -> set[str]:
    """Add a peft folder's adapters to a model, and copy the weights that were saved with them.

    peft adds them to the model that they were trained on, exactly as in training. If the model has no head or
    a different one, they are added to the encoder only. Returns the names of the copied weights. Raises
    ModelError if the file lacks weights of the configuration, or has weights without a place in the model.
    """
    family = family_of(cast(Model, model))
    check_peft(family, None, str(folder))
    config, weights = _read_adapters(folder)
    names = [name.removeprefix(PREFIX) for name in weights if name.startswith(PREFIX)]
    _check_no_decoder(family, names, folder)
    encoder = encoder_of(model)
    inside = f"{_trained_prefix(model, folder)}."
    parts = {name for name, _ in encoder.named_children()}
    if any(name.startswith(inside) for name in names) or parts.isdisjoint(n.split(".")[0] for n in names):
        target = model if _has_trained_head(model, folder) else _Encoder(encoder, inside[:-1])
    else:  # They were trained on an encoder without a head.
        target = encoder
        inside = ""
    pooler = getattr(encoder, "pooler", None)
    if target is not model:  # Adapters of the head, and of a pooler that this encoder lacks, are not needed.
        names = [name for name in names if name.startswith(inside)]
        pooler_names = [name for name in names if name.startswith(f"{inside}pooler.")]
        if pooler is None:
            names = [name for name in names if name not in pooler_names]
        elif not pooler_names:  # The model that they were trained on has none.
            encoder.pooler = None
    if names:
        full_names = {f"{PREFIX}{name}" for name in names}
        # Without the prefix are weights that all adapters share.
        adapter_weights_of = {
            name: weight
            for name, weight in weights.items()
            if name in full_names or not name.startswith(PREFIX)
        }
        _load_into(target, config, adapter_weights_of, folder)
        cast(Any, model).peft_config = vars(target).pop("peft_config")
    if pooler is not None:
        encoder.pooler = pooler
    if target is not model:
        names = [f"{encoder_prefix(cast(Model, model))}{name.removeprefix(inside)}" for name in names]
    return set(names) & dict(model.named_parameters()).keys()


def _check_no_decoder(family: EncoderFamily, names: Sequence[str], folder: Path) -> None:
    decoder_names = [name for name in names if "decoder" in name.split(".")[:2]]
    if decoder_names and family.encoder_class != "AutoModel":
        raise ModelError(
            f"{folder / WEIGHTS}: these adapters change the decoder of {family.name} ({decoder_names[0]}), "
            f"which is not run here. Give adapters of the encoder."
        )


def _read_adapters(folder: Path) -> tuple["PeftConfig", dict[str, Tensor]]:
    """Return the configuration and the weights in a peft folder."""
    from peft import PeftConfig

    check_type(folder, folders.read_json(folder / CONFIG))
    with folders.looking_at(folder):
        try:
            config = PeftConfig.from_pretrained(str(folder))
        except Exception as error:  # The library takes any value of its configuration.
            raise _adapter_error(folder / CONFIG, error) from error
    config.inference_mode = False
    return config, read_weights(folder / WEIGHTS)


def _trained_prefix(model: nn.Module, folder: Path) -> str:
    """Return the name of the encoder within the model that a folder's adapters were trained on."""
    import transformers

    kinds = (folders.load_encoder_config(folder).architectures if folders.has_config(folder) else None) or (
        "",
    )
    name = getattr(getattr(transformers, kinds[0], None), "base_model_prefix", "")
    return str(name or cast(Any, model).base_model_prefix)


def _has_trained_head(model: nn.Module, folder: Path) -> bool:
    """Return whether a model has the head that a folder's adapters were trained with."""
    if encoder_of(model) is model:
        return False
    config = folders.load_encoder_config(folder)
    ours = type(model).__name__
    kinds = config.architectures or []
    if ours.replace("ForSequenceClassification", "ForMultipleChoice") in kinds:
        return True  # Its scores are one, whatever the configuration says.
    return ours in kinds and cast(Config, model.config).num_labels == config.num_labels


def _class_of(model: nn.Module) -> str:
    config = cast(Config, model.config)
    encoder = encoder_of(model) if isinstance(model, _Encoder) else model
    return f"{type(encoder).__name__} of {config.num_hidden_layers} layers"


def _load_into(model: nn.Module, config: "PeftConfig", weights: Mapping[str, Tensor], folder: Path) -> None:
    """Add adapters to a model, then load their weights and the modules that were saved with them."""
    from peft import PeftModel, get_peft_model_state_dict, set_peft_model_state_dict
    from peft.utils.other import AuxiliaryTrainingWrapper, ModulesToSaveWrapper

    try:
        with torch.random.fork_rng(devices=[]), folders.quiet():
            warnings.filterwarnings("ignore", module=r"peft\.")
            torch.manual_seed(0)
            wrapper = PeftModel(cast(Model, model), config, adapter_name=ADAPTER)
    except Exception as error:
        raise ModelError(
            f"{folder / CONFIG}: peft cannot add these adapters to {_class_of(model)} "
            f"({one_line(error):.300}). Copy the folder again, or correct base_model_name_or_path."
        ) from error
    state = wrapper.state_dict()
    targets = get_peft_model_state_dict(wrapper, state, adapter_name=ADAPTER, save_embedding_layers=False)
    # Trained embeddings are saved with their adapters.
    targets |= {name: state[name] for name in weights.keys() - targets.keys() if name in state}
    for name, shape, expected_shape in folders.differing_shapes(targets, weights):
        problem = f"has the shape {shape}, and {expected_shape} is expected"
        if shape is None:
            problem = "is missing"
        elif expected_shape is None:
            problem = f"belongs to no part of {_class_of(model)} with these adapters"
        raise ModelError(
            f"{folder / WEIGHTS}: {name} {problem}. Either this file and {CONFIG} do not belong together, or "
            f"the adapters were trained on another model than it names. Copy the folder again, or correct "
            f"base_model_name_or_path."
        )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"peft\.")
        set_peft_model_state_dict(wrapper, dict(weights), adapter_name=ADAPTER)

    def unwrap(wrapper: Any) -> nn.Module:
        if isinstance(wrapper, ModulesToSaveWrapper):
            original: nn.Module = wrapper.original_module
            original.load_state_dict(wrapper.modules_to_save[ADAPTER].state_dict())
            return original
        module: nn.Module = wrapper.unload_and_optionally_merge_module(True, False, None)
        return module

    _replace(model, AuxiliaryTrainingWrapper, unwrap)


def _adapter_error(path: Path, error: Exception) -> ModelError | StorageError:
    if failure := disk_error(error):
        return reading_error(path, failure)
    return ModelError(
        f"{path}: these adapters are damaged ({one_line(error)}). Copy the folder again; if a run of "
        f"isogloss made it, delete the run's folder and run again."
    )


PEFT_FORMAT = DifferenceFormat(load=apply_adapters, load_unmerged=load_adapters)
"""Adapters of peft as the difference of a model from its base."""
