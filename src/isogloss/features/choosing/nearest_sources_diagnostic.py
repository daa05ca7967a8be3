"""NN-Rank as a measurement: every language is the target once, and all others are its candidates.

Ebrahimi et al. (EMNLP 2025). ``nearest_sources`` has the equation, and the function
``rank_sources_by_states`` for states of your own.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, cast

from isogloss.core.errors import add_location
from isogloss.core.progress import Progress
from isogloss.core.run_parts import Positive, Whole
from isogloss.diagnostics.setting import Diagnostic, MeasureSetting
from isogloss.features.choosing.rows import NearestSourceRow

if TYPE_CHECKING:
    from isogloss.core.run_parts import Precision


@dataclass(frozen=True, kw_only=True)
class NearestSources(Diagnostic):
    """Share of each language among the nearest neighbours of every other language's words (NN-Rank)."""

    name: ClassVar[str] = "nearest-sources"
    subject: ClassVar[str] = "examples"
    version: ClassVar[int] = 1
    needs_labels: ClassVar[bool] = False

    layer: Whole = -1
    """Layer whose states are compared. -1 is the last, as in the paper, 0 the embeddings."""

    neighbours: Positive = 5
    """k, the number of nearest words (or texts) of all candidates."""

    centred: bool = False
    """Whether the mean of each language's states is subtracted first."""

    limit: Positive = 128
    """Maximum length of a text in subwords, in tasks without labels of words. Longer ones are truncated."""

    def measure(self, setting: MeasureSetting) -> list[NearestSourceRow]:
        """Return a row for each target and candidate, the candidate with the largest share first."""
        from isogloss.features.choosing.nearest_sources import (
            explain_doubt,
            rank_sources_by_states,
            states_of_examples,
        )

        encoder = setting.encoder(setting.subjects[0])
        states = {}
        for count, language in enumerate(setting.languages, start=1):
            with add_location(f"{self.name}: {language} ({setting.split})"):
                states[language] = states_of_examples(
                    *encoder,
                    setting.examples(language),
                    language,
                    layers=(self.layer,),
                    limit=self.limit,
                    precision=cast("Precision", setting.precision),
                )
            setting.on_progress(Progress(self.name, count, len(setting.languages), language))
        rows: list[NearestSourceRow] = []
        for target in setting.languages:
            candidates = {language: part for language, part in states.items() if language != target}
            ranking = rank_sources_by_states(
                states[target], candidates, neighbours=self.neighbours, centred=self.centred
            )
            is_known = not explain_doubt(ranking)
            rows += [
                NearestSourceRow(
                    model=setting.subjects[0].id,
                    language=target,
                    candidate=candidate.language,
                    layer=states[target].layers[0],
                    neighbours=self.neighbours,
                    centred=self.centred,
                    items=len(states[target]),
                    share=candidate.share,
                    behind=candidate.behind,
                    chosen=is_known and index == 0,
                )
                for index, candidate in enumerate(ranking)
            ]
        return rows
