"""What is added to an encoder's own weights: for languages, for a task, or as a difference.

For languages: ``language_modules`` builds modules for each language, ``active_language`` sets the language
that is read, and has X-MOD's adapters and the maps of a language's states; ``added_weights`` reads, writes
and counts.

For a task: ``adapters`` (MAD-X, and those of the library peft).

As a difference from another model: ``differences`` loads any folder with a part of the weights alone, and
has sparse deltas.
"""
