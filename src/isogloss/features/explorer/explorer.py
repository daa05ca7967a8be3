"""A folder of runs, explored: models on paths and planes answer any text, words of a pair move together.

Models of one route at a time are in memory. The package has the server and its page.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from isogloss.core.errors import ConfigError, DataError, add_location, unknown_name
from isogloss.core.identity import identity
from isogloss.core.languages import canonical_language, language_name
from isogloss.core.untrusted import parse_json
from isogloss.data.corpus import Split
from isogloss.data.examples import Example, ParsedSentence, Question, TaggedSentence, Translation
from isogloss.data.generated import GENERATED
from isogloss.data.projection.words import tokenize
from isogloss.data.sources import Sources
from isogloss.diagnostics.weight_space import (
    matching_weights,
    moves_on_path,
    moves_on_plane,
    parameter_names,
    weights_of,
)
from isogloss.functional.models import load_encoder
from isogloss.reports.comparison import rows_of
from isogloss.reports.frames import list_rows, split_by
from isogloss.reports.measurements import Measurements, PlannedRun
from isogloss.store import local_model
from isogloss.training.states import word_states
from isogloss.using import Model, load_model
from isogloss.using.formats import FileEntry
from isogloss.using.kinds import check_takes_inputs

PARSING = "parsing"
"""Name of the task of heads and relations."""

MEASURED_ON = ("corpus", "treebank", "inputs", "inputs.translator", "split", "metric")
"""Columns of which a route has the first values, where its models were measured in several ways."""

SHOWN = 8
"""Sentences of a language that are offered."""

CONSIDERED = 64
"""Dev examples among which those whose answers change most are found."""

MOST_TEXTS = 16
"""Texts of a question."""

NEIGHBOURHOOD = 100
NEIGHBOURS = 4
"""Translations whose words may be neighbours of a word, and neighbours that are shown."""

LONGEST_TEXT = 2_000
"""Characters of a text that is answered."""

FURTHEST = 3.0
"""Largest |α| of a point."""

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Route:
    """A path or a plane that the folder has measured."""

    id: str
    models: tuple[str, ...]
    """Ids of the runs: start and end of a path, or origin, first and second of a plane."""
    methods: tuple[str, ...]
    facts: Mapping[str, Any]
    """Facts of the last model: task, corpus, source, target, seed."""
    scores: pd.DataFrame
    """Columns: language, role, metric, score, and α or α₁ and α₂ (``alpha``, ``alpha_second``)."""


@dataclass(frozen=True)
class Loaded:
    """The models of a route: the first one moves."""

    route: str
    model: Model[Any]
    move: Callable[[Sequence[float]], None]

    def answers(self, point: Sequence[float], texts: Sequence[object], language: str = "") -> list[Json]:
        """Return what the model at a point predicts for texts, each as a JSON object."""
        kind = self.model.kind
        with add_location("text"):
            examples = [kind.example(text, "text", language) for text in texts]
        entries = [FileEntry(lines=(), example=example, body={}) for example in examples]
        with torch.no_grad():
            self.move([float(alpha) for alpha in point])
            predictions = self.model.predict_entries(entries, language=language)
        return [
            kind.to_json(example, prediction)
            for example, (_, prediction) in zip(examples, predictions, strict=True)
        ]


class Explorer:
    """Questions about the runs in a folder or at a URL, for a browser. Every answer is a JSON object.

    ``data`` is the folder with the corpora, for sentences to begin with; the built-in languages need none.
    """

    def __init__(self, measurements: Measurements, address: str, data: str = "") -> None:
        self.measurements, self.address = measurements, address
        self.sources = Sources(data)
        self.routes = {route.id: route for route in _routes(measurements)}
        self._lock = Lock()
        self._loaded: Loaded | None = None
        if not self.routes and not self._find_adjusted_runs():
            raise ConfigError(
                "explore: found no path, no plane and no adjusted encoder in this folder. Measure one: "
                '[[measure]] with name = "interpolation" or "plane" in the recipe.'
            )

    def study(self) -> Json:
        """Return the title, the routes with their measured scores, and the adjusted encoders."""
        return {
            "title": self.measurements.title,
            "routes": [_describe_route(route) for route in self.routes.values()],
            "adjusted": [
                {"id": run.id, "title": run.record.title, "example": self._translation(run)}
                for run in self._find_adjusted_runs()
            ],
        }

    def sentences(self, route: str, language: str) -> Json:
        """Return dev examples with their gold answers, beginning with those whose answers change most.

        The models are those at the ends of a path, or at the origin and the first corner of a plane. None
        where the corpus is not here.
        """
        route_found = self._route(route)
        facts = route_found.facts
        examples = self._examples(facts["corpus"], language, "dev", CONSIDERED)
        if len(examples) > SHOWN:
            changes = self._changes(route_found, examples, language)
            order = sorted(range(len(examples)), key=lambda index: -changes[index])
            examples = [examples[index] for index in order[:SHOWN]]
        return {
            "sentences": [
                {"text": _text(example), "gold": _gold(example, facts["task"])} for example in examples
            ]
        }

    def _changes(self, route: Route, examples: Sequence[Example], language: str) -> list[int]:
        """Count the labels of each example that differ between the first two models of a route."""
        axes = len(route.models) - 1
        texts = [_text(example) for example in examples]
        with self._lock:
            models = self._models_of(route)
            start_answers, end_answers = (
                models.answers([alpha, *[0.0] * (axes - 1)], texts, canonical_language(language))
                for alpha in (0.0, 1.0)
            )
        return [
            _differences([start_answer, end_answer])
            for start_answer, end_answer in zip(start_answers, end_answers, strict=True)
        ]

    def answer(self, route: str, point: Sequence[float], text: object, language: str = "") -> Json:
        """Return what the model at a point of a route predicts for a text, a pair of texts or a choice."""
        return {"answer": self.answers(route, point, [text], language)["answers"][0]}

    def answers(self, route: str, point: Sequence[float], texts: list[object], language: str = "") -> Json:
        """Return what the model at a point of a route predicts for several texts."""
        language = canonical_language(language) if language else ""
        if len(texts) > MOST_TEXTS:
            raise ConfigError(f"texts: found {len(texts)}; expected {MOST_TEXTS} or fewer.")
        for text in texts:
            _check_text(text)
        route_found = self._route(route)
        _check_point(route_found, point)
        with self._lock:
            return {"answers": self._models_of(route_found).answers(point, texts, language)}

    def disagreements(self, route: str, language: str) -> Json:
        """Return test examples on which seeds of the route's first method disagree, with their answers."""
        facts = self._route(route).facts
        scores = self.measurements.frame("scores")
        scores = scores[
            (scores["way"] == facts["way"]) & (scores["language"] == language) & (scores["inputs"] == "")
        ]
        answers = {
            str(row.seed): self.measurements.answers(row.run).get(language, {})
            for row in scores.drop_duplicates("seed").itertuples()
        }
        split: Split = "dev" if set(scores["split"]) == {"dev"} else "test"
        differing = []
        for example in self._examples(facts["corpus"], language, split):
            seed_answers = {
                seed: parse_json(answers_by_id[example.id])
                for seed, answers_by_id in answers.items()
                if example.id in answers_by_id
            }
            if len({json.dumps(answer) for answer in seed_answers.values()}) > 1:
                differing.append(_to_labelled_json(example, facts["task"]) | {"answers": seed_answers})
        differing.sort(key=lambda example_body: -_differences(list(example_body["answers"].values())))
        return {"examples": differing[:SHOWN], "count": len(differing)}

    def words(self, adjusted: str, first: str, second: str) -> Json:
        """Return the ranks of a translation's words by similarity to each word of a text.

        They are from 1, the most similar, before and after the adjustment. Adjusting raises all cosines, so
        that these cannot be compared.
        """
        _check_text([first, second])
        texts = [tokenize(first), tokenize(second)]
        with self._lock, torch.no_grad():
            ranks = {
                moment: _ranks(_cosines(*_word_states(folder, texts)[0]))
                for moment, folder in self._encoders(adjusted).items()
            }
        return {"first": texts[0], "second": texts[1], **ranks}

    def neighbours(self, adjusted: str, first: str, word: str) -> Json:
        """Return the words of translations that are most similar to a word of a text, in each layer.

        The words are from ``NEIGHBOURHOOD`` test translations of the adjustment's languages, before and
        after it. Means over all words of each language are subtracted from the states.
        """
        _check_text([first, word])
        run = self._adjusted_run(adjusted)
        pairs = self._translations(run, NEIGHBOURHOOD)
        texts = tokenize(first)
        if word not in texts or not pairs:
            raise DataError(f"word: {word!r} is not in the text, or no translations are on this machine.")
        sentences = [tokenize(pair[1]) for pair in pairs]
        names = [word_of_sentence for sentence in sentences for word_of_sentence in sentence]
        with self._lock, torch.no_grad():
            nearest_words = {
                moment: [
                    _nearest(
                        word_vectors[texts.index(word)] - word_vectors.mean(0), theirs - theirs.mean(0), names
                    )
                    for word_vectors, theirs in _word_states(folder, [texts, *sentences], every_layer=True)
                ]
                for moment, folder in self._encoders(adjusted).items()
            }
        return {"word": word, **nearest_words}

    def _adjusted_run(self, adjusted: str) -> PlannedRun:
        run = next((run for run in self._find_adjusted_runs() if run.id == adjusted), None)
        if run is None:
            raise unknown_name(
                "explore", "adjusted encoder", adjusted, [run.id for run in self._find_adjusted_runs()]
            )
        return run

    def _encoders(self, adjusted: str) -> dict[str, Any]:
        """Return the encoder before and after an adjustment: folders, or a name of the hub."""
        original = self._adjusted_run(adjusted).record.run["encoder"]
        start = identity(original)
        is_run = self.measurements.folder(start) is not None
        return {
            "before": self._folder(start) / "model" if is_run else original["source"],
            "after": self._folder(adjusted) / "model",
        }

    def _translation(self, run: PlannedRun) -> list[str]:
        """Return a text and its translation for an adjusted encoder. None if its bitext is missing."""
        return next(iter(self._translations(run, 1)), [])

    def _translations(self, run: PlannedRun, count: int) -> list[list[str]]:
        """Return test translations of the first pair of languages of an adjustment."""
        for bitext in run.record.run.get("aligned", [])[:1]:
            examples = self._examples(bitext["bitext"], bitext["languages"], "test", count)
            return [
                [example.first, example.second] for example in examples if isinstance(example, Translation)
            ]
        return []

    def _find_adjusted_runs(self) -> list[PlannedRun]:
        return self.measurements.finished("adjust")

    def _examples(self, corpus: str, language: str, split: Split, count: int = 0) -> list[Example]:
        try:
            return self.sources.examples(corpus, language, split, examples=count)
        except (ConfigError, DataError):
            return []

    def _folder(self, run: str) -> Path:
        """Return the folder of a finished run with its model, which a URL's copies may lack until now."""
        return local_model(f"{self.address}/{run}")

    def _route(self, name: str) -> Route:
        if name not in self.routes:
            raise unknown_name("explore", "route", name, self.routes)
        return self.routes[name]

    def _models_of(self, route: Route) -> Loaded:
        """Return a route's models, loaded if another route's were: two at once may not fit into memory."""
        if self._loaded is None or self._loaded.route != route.id:
            self._loaded = None
            self._loaded = load_models(route, [self._folder(run) for run in route.models])
        return self._loaded


def _routes(measurements: Measurements) -> list[Route]:
    routes = []
    for frame, ends in (("interpolation", ("start", "end")), ("plane", ("origin", "first", "second"))):
        rows = measurements.frame(frame) if measurements.has_rows(frame) else pd.DataFrame()
        rows = rows[rows["part"] == "all"] if len(rows) else rows  # The models move as a whole.
        for ids, route_rows in split_by(rows, ends, sort=False) if len(rows) else ():
            if all(measurements.folder(run) for run in ids):
                scores = rows_of(route_rows, list_rows(route_rows[:1][list(MEASURED_ON)])[0])
                facts = measurements.models.loc[ids[0]]
                methods = tuple(str(measurements.models["method"].loc[run]) for run in ids)
                routes.append(
                    Route(
                        id="-".join(ids),
                        models=ids,
                        methods=methods,
                        facts={**list_rows(scores[:1])[0], "way": facts["way"]},
                        scores=scores.rename(columns={"alpha_first": "alpha"}),
                    )
                )
    return routes


def _describe_route(route: Route) -> Json:
    scores = route.scores
    columns = [name for name in ("alpha", "alpha_second", "score") if name in scores]
    names = {language: name for source in GENERATED.values() for language, name in source.names.items()}
    facts = {name: str(route.facts[name]) for name in ("task", "corpus", "source", "target", "seed", "split")}
    return {
        "id": route.id,
        "methods": route.methods,
        **facts,
        "metric": scores["metric"].iloc[0],
        "languages": [
            {
                "code": language,
                "name": names.get(language) or language_name(language),
                "role": rows["role"].iloc[0],
                "scores": rows.sort_values(columns[:-1])[columns].to_numpy().tolist(),
            }
            for (language,), rows in split_by(scores, ["language"], sort=False)
        ],
    }


def load_models(route: Route, folders: Sequence[Any]) -> Loaded:
    """Load the models of a route in float32."""
    models = [load_model(folder, precision="float32") for folder in folders]
    check_takes_inputs(models[0].task, models[0].tokenizer)
    networks = [model.network for model in models]
    names = parameter_names(networks[0], "all")
    corners = [[weight.clone() for weight in weights] for weights in matching_weights(names, networks)]
    moving = weights_of(networks[0], names)

    current: list[Sequence[float]] = []

    def move(point: Sequence[float]) -> None:
        if current == [point]:
            return
        current[:] = [point]
        if len(point) == 1:
            moves_on_path(*corners)(point[0], moving)
        else:
            moves_on_plane(*corners)((point[0], point[1]), moving)

    return Loaded(route.id, models[0], move)


def _differences(answers: Sequence[Json]) -> int:
    """Count the places at which the labels of answers differ, or 1 for other answers that differ."""
    labels = [answer.get("labels") if isinstance(answer, dict) else answer for answer in answers]
    if all(isinstance(answer_labels, list) for answer_labels in labels):
        return sum(len({json.dumps(label) for label in place}) > 1 for place in zip(*labels, strict=False))
    return int(len({json.dumps(answer) for answer in answers}) > 1)


def _word_states(
    folder: Any, texts: Sequence[Sequence[str]], *, every_layer: bool = False
) -> list[tuple[Tensor, Tensor]]:
    """Return states [word dim] of the first text and of all others, in the last layer or in every layer."""
    model, tokenizer = load_encoder(folder)
    layers = range(model.config.num_hidden_layers + 1) if every_layer else (-1,)
    states = word_states(model, tokenizer, texts, layers=layers, precision="float32")
    return [
        (states[0][layer].float(), torch.cat([text_states[layer].float() for text_states in states[1:]]))
        for layer in range(len(layers))
    ]


def _cosines(vectors: Tensor, other_vectors: Tensor) -> Tensor:
    """Return the cosine of each state with each of others [first second]."""
    vectors, other_vectors = (
        torch.nn.functional.normalize(side, dim=-1) for side in (vectors, other_vectors)
    )
    return vectors @ other_vectors.T


def _ranks(cosines: Tensor) -> list[list[int]]:
    """Return the rank of each number in its row, 1 for the greatest."""
    ranks: list[list[int]] = (cosines.argsort(dim=1, descending=True).argsort(dim=1) + 1).tolist()
    return ranks


def _nearest(state: Tensor, states: Tensor, names: Sequence[str]) -> list[str]:
    """Return the names of the states most similar to one, each once."""
    order = _cosines(state[None], states)[0].argsort(descending=True).tolist()
    return list(dict.fromkeys(names[index] for index in order))[:NEIGHBOURS]


def _check_point(route: Route, point: Sequence[float]) -> None:
    if len(point) != len(route.models) - 1 or not all(abs(alpha) <= FURTHEST for alpha in point):
        raise ConfigError(
            f"point: found {list(point)}; expected {len(route.models) - 1} numbers "
            f"from {-FURTHEST} to {FURTHEST}."
        )


def _check_text(text: object) -> None:
    texts = text if isinstance(text, list) else [text]
    if not texts or not all(isinstance(part, str) and part.strip() for part in texts):
        raise DataError("text: this is empty; expected a text, or a list of two.")
    if sum(map(len, texts)) > LONGEST_TEXT:
        raise DataError(f"text: longer than {LONGEST_TEXT} characters. Shorten it.")


def _to_labelled_json(example: Example, task: str) -> Json:
    return {"text": _text(example), "gold": _gold(example, task)}


def _text(example: Example) -> str | list[str]:
    """Return an example as it is typed: words with spaces between them, one text or two."""
    words = getattr(example, "words", None)
    if words is not None:
        return " ".join(words)
    pairs = (("first", "second"), ("question", "passage"))
    names = next((names for names in pairs if all(hasattr(example, name) for name in names)), ("text",))
    texts = [str(getattr(example, name, "")) for name in names]
    return texts if len(texts) > 1 else texts[0]


def _gold(example: Example, task: str) -> Json:
    """Return gold labels under the names that predictions have."""
    match example:
        case ParsedSentence() if task == PARSING:
            return {"heads": list(example.heads), "relations": list(example.relations)}
        case ParsedSentence() | TaggedSentence():
            return {"labels": list(example.tags)}
        case Question():
            return {"answer": example.answers[0][1] if example.answers else ""}
    return {"label": getattr(example, "label", None)}
