"""Labels moved onto translations: tags, answers, tokenization."""
