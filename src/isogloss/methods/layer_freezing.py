"""Layer freezing: the embeddings, and some of the lowest layers, stay as they were pretrained.

Wu & Dredze (2019), "Beto, Bentz, Becas: The Surprising Cross-Lingual Effectiveness of BERT": frozen lower
layers of multilingual BERT help zero-shot transfer in several tasks. Embeddings of a quarter million subwords
are most of a small multilingual encoder, and labels in one language move the rows of its own words alone.
"""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from isogloss.core.errors import ConfigError
from isogloss.core.run_parts import Count
from isogloss.encoders import family_of
from isogloss.encoders.added.differences import encoder_weights, write_sparse
from isogloss.encoders.added.language_modules import TREE
from isogloss.encoders.family import Model
from isogloss.nn.frozen import freeze, thaw, unfrozen
from isogloss.training.memory import Shape
from isogloss.training.setting import ExtraWriter, Peft, PeftSetting, Prepared


@dataclass(frozen=True, kw_only=True)
class LayerFreezing(Peft):
    """Leave the embeddings and the lowest layers as they are; the rest is trained wholly."""

    name: ClassVar[str] = "layer-freezing"

    layers: Count = 0
    """How many layers, from the lowest, are frozen; 0: the embeddings alone."""

    def trained(self, shape: Shape) -> int:
        """Return the parameters of the layers that are not frozen."""
        inside = shape.parameters - shape.vocabulary * shape.dim
        return inside * max(0, shape.layers - self.layers) // shape.layers

    def prepare(self, setting: PeftSetting) -> Prepared:
        """Freeze what comes before the first trained layer; ConfigError where there are fewer layers."""
        blocks = [site.block for site in family_of(setting.model).sites(setting.model)]
        if self.layers > len(blocks):
            raise ConfigError(
                f"peft {self.name}: layers: found {self.layers}; this encoder has {len(blocks)}. Freeze at "
                f"most so many."
            )
        lower, upper = (
            tuple(f"{block}." for block in some) for some in (blocks[: self.layers], blocks[self.layers :])
        )
        weights = encoder_weights(setting.model)
        first = next(n for n, name in enumerate(weights) if name.startswith(f"{blocks[0]}."))
        for n, (name, one) in enumerate(weights.items()):
            place = _place(name)  # A language's own modules stand in layers, or at the embeddings, too.
            if n < first or name.startswith(lower) or (place != name and not place.startswith(upper)):
                freeze([one])
        return Prepared()

    def finish(self, model: Model, base: str) -> ExtraWriter:
        """Keep what was trained."""
        trained = {name: one.detach().cpu().clone() for name, one in unfrozen(model).items()}
        thaw(model)
        return partial(write_sparse, trained, base)


def _place(name: str) -> str:
    """Return the name of a weight as that of the module of the encoder that it replaces or follows."""
    before, added, inside = name.partition(f"{TREE}.")
    return before + inside.partition(".")[2] if added else name
