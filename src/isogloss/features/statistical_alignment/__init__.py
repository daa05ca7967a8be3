"""Statistical word alignment: fast_align and eflomal learn from sentence pairs, without an encoder."""
