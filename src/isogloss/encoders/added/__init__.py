"""What is added to an encoder's own weights: for languages, for a task, or as a difference.

For languages: ``language_modules`` builds modules that each language has for itself, ``xmod_adapters`` are
those of the family X-MOD, ``active_language`` sets the language that is read, and has the maps of its states;
``added_weights`` reads, writes and counts.

For a task: ``task_adapter`` (MAD-X) and ``peft_adapters`` (the library peft).

As a difference from another model: ``sparse_deltas`` are some of its weights, and ``differences`` loads any
folder that has a part of the weights alone.
"""
