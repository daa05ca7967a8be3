"""Statistical word alignment: fast_align and eflomal learn from the sentence pairs alone."""
