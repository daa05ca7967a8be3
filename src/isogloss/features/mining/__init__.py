"""Mining: find the sentences of two languages that translate each other, in unaligned text."""
