"""Masks: the gates that were learned for a language, on disk and put to use.

A measurement of gates (the diagnostic language-gates) leaves them beside its record. With one, an encoder is
pruned for its language and saved as an ordinary folder that everything else can start from.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from isogloss.core.errors import ConfigError, ModelError, StorageError, unknown_name
from isogloss.core.records import Value
from isogloss.data.tensor_file import ENDING, read_tensors
from isogloss.encoders.gates import GateKinds, gate_groups, prune
from isogloss.encoders.loading import load_tokenizer, load_whole, save_model
from isogloss.nn.hard_concrete import CLOSED_BELOW

FILE = "masks"
"""Name, without its ending, of the file beside a record."""

LOG_ALPHA, ABOVE = "log_alpha", "above"
"""What names in the file begin with: gates, and the log α above which they are kept. What begins otherwise
was derived from these."""


@dataclass(frozen=True, kw_only=True)
class Mask:
    """The gates of one language, learned once."""

    language: str
    draw: int
    """Number of the time they were learned, from 0."""
    kinds: GateKinds
    log_alpha: Mapping[str, Tensor]
    """π, by group of gates."""
    above: float = CLOSED_BELOW
    """A gate is kept whose log α is above this."""

    def kept(self, group: str) -> Tensor:
        """Return which gates of a group are kept."""
        return self.log_alpha[group] > self.above

    def gates(self) -> dict[str, Tensor]:
        """Return the binary gates a model is used with: 0 (pruned) or 1 (as it is)."""
        return {name: self.kept(name).to(one.dtype) for name, one in self.log_alpha.items()}


def mask_tensors(masks: Iterable[Mask]) -> dict[str, Tensor]:
    """Name the tensors of masks as they stand in a file."""
    found: dict[str, Tensor] = {}
    for mask in masks:
        place = f"{mask.language}/{mask.draw}"
        found[f"{ABOVE}/{place}"] = torch.tensor(mask.above)
        found |= {f"{LOG_ALPHA}/{place}/{name}": one for name, one in mask.log_alpha.items()}
    return found


def about_masks(kinds: GateKinds) -> dict[str, Value]:
    """Say what a file must know of its masks."""
    return {"attention": kinds.attention, "feed_forward": kinds.feed_forward}


def read_masks(path: Path) -> list[Mask]:
    """Read all masks of a file, by language, and then in the order they were learned.

    StorageError where it is damaged, not there, or holds no masks.
    """
    tensors, about = read_tensors(path)
    parts = [(name.split("/", 3), torch.from_numpy(one)) for name, one in tensors.items()]
    above = {(key[1], int(key[2])): float(one) for key, one in parts if key[0] == ABOVE}
    if not above or not {"attention", "feed_forward"} <= about.keys():
        raise StorageError(f"{path}: this file holds no masks. Give the {FILE}{ENDING} of language-gates.")
    kinds = GateKinds(attention=str(about["attention"]), feed_forward=str(about["feed_forward"]))
    gates: dict[tuple[str, int], dict[str, Tensor]] = {place: {} for place in sorted(above)}
    for key, one in parts:
        if key[0] == LOG_ALPHA:
            gates[key[1], int(key[2])][key[3]] = one
    return [
        Mask(language=place[0], draw=place[1], kinds=kinds, log_alpha=own, above=above[place])
        for place, own in gates.items()
    ]


def read_mask(path: Path, language: str, *, draw: int = 0) -> Mask:
    """Read a language's mask; ConfigError, naming those there are, where there is none."""
    masks = {(mask.language, mask.draw): mask for mask in read_masks(path)}
    if (language, draw) in masks:
        return masks[language, draw]
    known = sorted({code for code, _ in masks})
    if language not in known:
        raise unknown_name(str(path), "mask of", language, known)
    draws = sum(code == language for code, _ in masks)
    raise ConfigError(f"{path}: no draw {draw} of {language}. There are {draws}, counted from 0.")


def prune_encoder(source: str | Path, mask: Mask, folder: Path) -> None:
    """Save an encoder, pruned by a mask, as an ordinary folder: head, pooler and tokenizer with it.

    Of an encoder with language modules those of the mask's language are pruned, and what all share.

    ModelError where the mask was learned on an encoder of another shape.
    """
    model, tokenizer = load_whole(source), load_tokenizer(source)
    groups = gate_groups(model, mask.kinds, language=mask.language)
    expected = {group.name: group.shape for group in groups}
    found = {name: tuple(one.shape) for name, one in mask.log_alpha.items()}
    if expected != found:
        name = min(name for name in expected | found if expected.get(name) != found.get(name))
        raise ModelError(
            f"{source}: this mask of {mask.language} belongs to another encoder: {name} has gates of "
            f"the shape {found.get(name)} in the mask and {expected.get(name)} here. Give the encoder it was "
            f"learned on, or one made from it."
        )
    prune(model, groups, mask.gates())
    save_model(model, tokenizer, folder)
