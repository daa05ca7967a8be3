"""Published numbers: what a paper prints, next to what runs measured."""
