"""Groups of an encoder's parameters: by layer, and by attention, feed-forward, embeddings and head."""

from dataclasses import dataclass

from isogloss.encoders.added.added_weights import shared_parameters
from isogloss.encoders.computation import transformer_layers
from isogloss.encoders.families import family_of, has_known_layers
from isogloss.encoders.family import Model, encoder_prefix


@dataclass(frozen=True)
class ParameterGroup:
    """A subset of a model's parameters."""

    layer: int | None
    """Layer, counted from 1. 0 is the embeddings; None means several layers."""

    module: str
    """attention, feed-forward, embeddings, head, other, or "all" for the whole layer or model."""


def parts_of(model: Model) -> dict[str, ParameterGroup]:
    """Return the smallest part of the model that contains each parameter that languages share.

    Modules of single languages are excluded. An output layer tied to the embeddings belongs to these.
    """
    if not has_known_layers(model):
        return _undivided_parts(model)
    family = family_of(model)
    prefix = encoder_prefix(model)
    embeddings = {id(weight) for weight in family.embeddings(model).parameters()}
    sites: dict[str, ParameterGroup] = {}
    for site in family.sites(model):
        sites |= {name: ParameterGroup(site.layer, "other") for name, _ in site.parameters(model, "block")}
        sites |= {
            name: ParameterGroup(site.layer, "attention") for name, _ in site.parameters(model, "attention")
        }
        inner = site.parameters(model, "feed_forward")
        sites |= {name: ParameterGroup(site.layer, "feed-forward") for name, _ in inner}
    return {
        name: ParameterGroup(0, "embeddings")
        if id(weight) in embeddings
        else sites.get(name, ParameterGroup(None, "other" if name.startswith(prefix) else "head"))
        for name, weight in shared_parameters(model).items()
    }


def _undivided_parts(model: Model) -> dict[str, ParameterGroup]:
    """Return the part of each parameter for a family without described layers. Layers are not divided."""
    layers = list(transformer_layers(model))
    if len(layers) != model.config.num_hidden_layers:  # The layers of an encoder and a decoder, for example.
        layers = []
    prefix = encoder_prefix(model)
    embeddings = {id(weight) for weight in model.get_input_embeddings().parameters()}
    parts = {}
    for name, weight in model.named_parameters():
        layer_numbers = [index for index, layer in enumerate(layers, 1) if name.startswith(f"{layer}.")]
        if id(weight) in embeddings:
            parts[name] = ParameterGroup(0, "embeddings")
        elif layer_numbers:
            parts[name] = ParameterGroup(layer_numbers[0], "other")
        else:
            parts[name] = ParameterGroup(None, "other" if name.startswith(prefix) else "head")
    return parts
