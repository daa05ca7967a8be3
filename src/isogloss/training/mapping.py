"""Language maps of an encoder from aligned sentence pairs: closed form, nothing is trained."""

from itertools import chain
from typing import Any

from isogloss.core.errors import ConfigError, DataError
from isogloss.encoders import load_tokenizer, load_whole
from isogloss.encoders.speaking import LanguageMaps, check_languages, keep_language_maps
from isogloss.nn.language_map import Kind, LanguageMap, Moments, language_map
from isogloss.training.adjusting import Adjusted, refuse_mapped
from isogloss.training.aligned_batches import collate_pairs, states_of
from isogloss.training.aligned_pairs import AlignedPairs, Reading, encode_pairs
from isogloss.training.batching import by_length
from isogloss.training.evaluation import BUDGET
from isogloss.training.precision import device, scoring
from isogloss.training.setting import AdjustSetting


def adjust_by_map(setting: AdjustSetting, kind: Kind, *, reading: Reading, precision: str) -> Adjusted:
    """Leave an encoder as it is, to the bit, and let it carry the maps that ``language_maps`` finds."""
    tokenizer, model = load_tokenizer(setting.start), load_whole(setting.start)
    refuse_mapped(model, setting.start)
    check_languages(model, chain.from_iterable(pair.split("-") for pair in setting.bitext))
    pairs = encode_pairs(setting.bitext, tokenizer, reading)
    keep_language_maps(model, language_maps(model, pairs, kind, precision=precision))
    return Adjusted(model, tokenizer, list(pairs.rows), pairs.warnings())


def language_maps(model: Any, pairs: AlignedPairs, kind: Kind, *, precision: str = "auto") -> LanguageMaps:
    """Find the map of each target language onto the source, from the last states of what is matched.

    All pairs of languages (en-es, en-ru) have one source. ConfigError when they do not, DataError when a pair
    has nothing that is matched.
    """
    sources = {languages.partition("-")[0] for languages in pairs.groups}
    if len(sources) != 1:
        raise ConfigError(
            f"language maps lead from each target language to one source: found the pairs "
            f"{', '.join(pairs.groups) or '(none)'}. Give pairs of one source (en-es, en-ru)."
        )
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
        states = states_of(model, batch.passes, layer=-1)
        moments.add(batch.source.of(states), batch.target.of(states))
    if not moments.count:
        raise DataError(
            f"{languages}: no word is linked in any sentence pair that was read, so there is nothing to map "
            f"by. Align the bitext, or read whole sentences."
        )
    return language_map(moments, kind)
