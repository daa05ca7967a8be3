"""Lines that users write, as a type checker reads them: each is right, and mypy --strict finds nothing."""

import numpy as np
import torch

import isogloss

model, tokenizer = isogloss.load_encoder("shipped")
parsed_corpus = isogloss.load_corpus("ud", "qaa", "test")
bitext = isogloss.load_corpus("bitext", "qaa-qab", "test", examples=100)
pairs = isogloss.load_corpus("xnli", "qaa")
words: list[tuple[str, ...]] = [sentence.words for sentence in parsed_corpus]
first_item = [pair.first for pair in bitext]
second = [pair.second for pair in bitext]
labels = [pair.label for pair in pairs]
own_texts = [row.text for row in isogloss.load_corpus("my-corpus.toml", "sw")]

states_before = isogloss.states(model, tokenizer, first_item, layers=range(3))
table = isogloss.cka(states_before, states_before.vectors.numpy(), across=True)
cka_by_layer = isogloss.cka(model, tokenizer, first_item, second, precision="bfloat16")
mined_pairs = isogloss.mine(states_before, torch.rand(3, 4), margin="ratio")
links = isogloss.align(first_item, second, model, tokenizer, matching="itermax")
counted_value: tuple[str, ...] = links[0].first
distances = isogloss.word_distances(
    model, tokenizer, first_item, second, links, distance="cosine", words="last"
)
word_states = isogloss.states(model, tokenizer, first_item, words="average")
again = isogloss.word_distances(word_states, word_states, links=links)


def score(moved_module: torch.nn.Module) -> dict[str, float]:
    return {"en": sum(float(weight.sum()) for weight in moved_module.parameters())}


start = torch.nn.Linear(2, 1)
end = torch.nn.Linear(2, 1)
curve = isogloss.path(start, end, score, alphas=np.linspace(0, 1, 5))
isogloss.path(start, end, lambda moved_result: moved_result(torch.ones(2)))
mean: torch.nn.Linear = isogloss.average([start, end])
moved_value: torch.nn.Linear = isogloss.move(mean, isogloss.random_direction(mean), 0.1)

comparison = isogloss.compare(np.array([1, 0]), torch.tensor([0, 0]), [1, 0], margin=0.01)
difference: float = comparison.difference
frame = isogloss.compare("ours.jsonl", "theirs.jsonl").frame
ranked_sources: list[isogloss.SourceCandidate] = isogloss.rank_sources("sw", ["en", "fr"])
nearest_sources: list[isogloss.NearestSource] = isogloss.rank_sources_by_states(
    word_states, {"fr": word_states, "en": torch.rand(3, 4)}, neighbours=3
)

tagger: isogloss.Model[list[str]] = isogloss.load_model("runs/x")
tags: list[str] = tagger.predict("the cat")
many: list[list[str]] = tagger.to("cpu").predict(["the cat", "a dog"])
try:
    isogloss.read("nowhere")
except isogloss.InputError as error:
    message: str = str(error)
