"""Made-up bitext with links, and the equations of adjustment done the slow way: two models, in float64."""

import random

import torch

from isogloss.data.examples import Translation
from isogloss.encoders.loading import load_whole
from isogloss.encoders.tokenizers import load_tokenizer
from made_up import TEXT


def translations(count, *, seed=0, longest=8):
    """Sentences with their words in a different order, every word except the last linked."""
    rng = random.Random(seed)
    result = []
    for index in range(count):
        words = rng.choices(TEXT.split(), k=rng.randint(2, longest))
        order = rng.sample(range(len(words)), len(words))
        second = [words[place][::-1] if words[place] != "." else "." for place in order]
        links = sorted((place, order.index(place)) for place in range(len(words) - 1))
        result.append(
            Translation(id=str(index), first=" ".join(words), second=" ".join(second), links=tuple(links))
        )
    return result


def load_in_float64(folder):
    """Load an encoder for the slow way."""
    return load_whole(folder, attention="eager").double().eval()


class Slowly:
    """Compute Eq. 1 for one sentence at a time, splitting each word into subwords separately."""

    def __init__(self, folder, *, layer=-1, word="average", aligned="all", drop_identical=False):
        self.tokenizer = load_tokenizer(folder)
        self.layer = layer
        self.word = word
        self.aligned = aligned
        self.drop_identical = drop_identical

    def split(self, text):
        """Return each word's subwords."""
        from isogloss.encoders.subwords import split_words

        words = text.split()
        (whole_word,) = split_words([words], self.tokenizer)
        return [
            [s for s, word in zip(whole_word.subwords, whole_word.words, strict=True) if word == n]
            for n in range(len(words))
        ]

    def states(self, model, text):
        """Return the states that represent each word, and the states of both special subwords."""
        parts = self.split(text)
        flat = [s for part in parts for s in part]
        ids = torch.tensor([[self.tokenizer.cls_token_id, *flat, self.tokenizer.sep_token_id]])
        hidden = model.base_model(input_ids=ids, output_hidden_states=True).hidden_states[self.layer][0]
        result = []
        place = 1
        for part in parts:
            hiddens = [hidden[place + n] for n in range(len(part))]
            place += len(part)
            mean = [sum(hiddens) / len(hiddens)]
            result.append(
                {"average": mean, "first": hiddens[:1], "last": hiddens[-1:], "subwords": hiddens}[self.word]
            )
        return result, [hidden[0], hidden[place]]

    def items(self, model, pair):
        """Return the pairs that are aligned and the states that are anchored."""
        (source, ends), (target, other_ends) = (
            self.states(model, text) for text in (pair.first, pair.second)
        )
        first_parts = pair.first.split()
        second = pair.second.split()
        linked_words = [
            (s, t)
            for i, j in pair.links
            if not (self.drop_identical and first_parts[i] == second[j])
            for s in source[i]
            for t in target[j]
        ]
        words = [state for states in source for state in states]
        special = list(zip(ends, other_ends, strict=True))
        aligned_words = {
            "all": linked_words + special,
            "words": linked_words,
            "special": special,
            "opening": special[:1],
        }[self.aligned]
        return aligned_words, words + (ends if self.aligned != "words" else [])

    def equation_1(self, model, before, pairs, *, form="sum", stay=1.0):
        """Return Eq. 1 over some pairs."""
        aligned_words = []
        anchored_value = []
        kept_values = []
        for pair in pairs:
            result, states = self.items(model, pair)
            aligned_words += result
            anchored_value += states
            with torch.no_grad():
                kept_values += self.items(before, pair)[1]
        neighbours = [(s - t).square() for s, t in aligned_words]
        moved_value = [
            (left - right).square() for left, right in zip(anchored_value, kept_values, strict=True)
        ]
        if form == "sum":
            return sum(x.sum() for x in neighbours) + stay * sum(x.sum() for x in moved_value)
        return torch.stack(neighbours).mean() + stay * torch.stack(moved_value).mean()
