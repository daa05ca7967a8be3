"""Print the built-in languages: what they are like, a sentence with its tree, and its translations.

python examples/languages.py
"""

from isogloss.features.built_in_languages import LANGUAGES, BuiltInTranslator, card, examples


def main() -> None:
    for language in LANGUAGES:
        facts = card(language)
        print(f"{facts['language']}: {facts['word order']}, {facts['adpositions']}, {facts['script']} script")

    sentence = next(iter(examples("ud", "qaa", "test")))
    words = ("(root)", *sentence.words)
    print()
    for word, tag, head, relation in zip(
        sentence.words, sentence.tags, sentence.heads, sentence.relations, strict=True
    ):
        print(f"{word:12} {tag:6} {relation} of {words[head]}")

    print()
    for language in LANGUAGES:
        translated_word, links = BuiltInTranslator("qaa", language).translate_words(sentence.words)
        print(language, " ".join(translated_word), " ".join(f"{source}-{target}" for source, target in links))


if __name__ == "__main__":
    main()
