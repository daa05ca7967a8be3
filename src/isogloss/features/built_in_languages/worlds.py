"""Sentences without a translation: a language with a world of its own says something else instead.

The sentence that a language has in place of a meaning depends only on the meaning and the language's draw, so
text, bitext and translations agree. It is the same at every value of the dial that replaces it.
"""

from isogloss.core.identity import derive
from isogloss.features.built_in_languages import concepts as c
from isogloss.features.built_in_languages.concepts import Draws
from isogloss.features.built_in_languages.family import Language
from isogloss.features.built_in_languages.lexicon import Lexicon
from isogloss.features.built_in_languages.meaning import Rates, Sampler, Sentence
from isogloss.features.built_in_languages.rendering import Word, render


def express(sentence: Sentence, words: Lexicon, rates: Rates) -> list[Word]:
    """Render a meaning, or the sentence that the language of a lexicon has in its place."""
    draws = _replacing_draws(sentence, words.language)
    return render(sentence, words) if draws is None else _render_replacement(draws, sentence, words, rates)


def express_translation(sentence: Sentence, source: Lexicon, words: Lexicon, rates: Rates) -> list[Word]:
    """Render the translation of a sentence from the language of the lexicon ``source``.

    A sentence without a translation has its labels (tags, entities) from the words that it is linked with, at
    random, as a projection of labels does.
    """
    draws = _replacing_draws(sentence, words.language)
    if draws is None:
        return render(sentence, words)
    by_key = {key: word for word in render(sentence, source) for key in word.keys}
    translation = []
    for word in _render_replacement(draws, sentence, words, rates):
        linked = next((by_key[key] for key in word.keys if key in by_key), word)
        form = word.form._replace(tag=linked.form.tag)
        translation.append(word._replace(form=form, entity=linked.entity))
    return translation


def _replacing_draws(sentence: Sentence, language: Language) -> Draws | None:
    """Return the draws of the sentence in place of a meaning, or None if the language says the meaning."""
    relation = language.relation
    if relation is None or not relation.world:
        return None
    draws = Draws(derive(relation.draw, "own sentence", str(sentence)))
    return draws if draws.chance(relation.world) else None


def _render_replacement(draws: Draws, sentence: Sentence, words: Lexicon, rates: Rates) -> list[Word]:
    """Render a sentence of the other world. Its words have the keys of random words of the meaning."""
    relation = words.language.relation
    sampler = Sampler(draws, rates, world=c.other_world(relation.draw if relation else 0))
    keys = [word.keys for word in render(sentence, words)]
    return [word._replace(keys=draws.choice(keys)) for word in render(sampler.sentence(), words)]
