"""Language maps of an encoder from aligned sentence pairs: closed form, nothing is trained."""

from collections.abc import Mapping
from typing import Any

from isogloss.core.errors import ConfigError, DataError
from isogloss.data.examples import Translation
from isogloss.encoders.language_maps import LanguageMaps
from isogloss.nn.language_map import Kind, LanguageMap, Moments, language_map
from isogloss.training.aligned_batches import collate_pairs, states_of
from isogloss.training.aligned_pairs import AlignedPairs, Reading, encode_pairs
from isogloss.training.batching import by_length
from isogloss.training.encoder_states import check_layers
from isogloss.training.evaluation import BUDGET
from isogloss.training.precision import device, scoring


def language_maps(
    model: Any,
    tokenizer: Any,
    bitext: Mapping[str, list[Translation]],
    kind: Kind,
    *,
    reading: Reading,
    precision: str = "auto",
) -> LanguageMaps:
    """Find the map of each target language onto the source, from matched words or sentences (``reading``).

    All pairs of ``bitext`` (en-es, en-ru) have one source. ConfigError when they do not, or for a layer
    other than the last, DataError when a pair has nothing that is matched.
    """
    check_layers(model, [reading.layer])
    sources = {pair.partition("-")[0] for pair in bitext}
    if len(sources) != 1 or reading.layer not in {-1, model.config.num_hidden_layers}:
        raise ConfigError(
            f"language maps lead from each target language to one source, after the last layer: found the "
            f"pairs {', '.join(bitext) or '(none)'} and layer {reading.layer}. Give pairs of one source "
            f"(en-es, en-ru) and layer -1."
        )
    pairs = encode_pairs(bitext, tokenizer, reading)
    model.to(device()).eval()
    with scoring(model.base_model, precision):
        maps = {
            languages.partition("-")[2]: _map(model, pairs, languages, rows, kind)
            for languages, rows in pairs.groups.items()
        }
    return LanguageMaps(sources.pop(), maps)


def _map(model: Any, pairs: AlignedPairs, languages: str, rows: range, kind: Kind) -> LanguageMap:
    moments = Moments(model.config.hidden_size)
    where = next(model.parameters()).device
    for group in by_length([pairs.length(row) for row in rows], BUDGET):
        batch = collate_pairs([pairs[rows[place]] for place in group], None, padding=pairs.padding)
        batch = batch.to(where)
        states = states_of(model, batch.passes, layer=pairs.layer)
        moments.add(batch.source.of(states), batch.target.of(states))
    if not moments.count:
        raise DataError(
            f"{languages}: no word is linked in any sentence pair that was read, so there is nothing to map "
            f"by. Align the bitext, or read whole sentences."
        )
    return language_map(moments, kind)
