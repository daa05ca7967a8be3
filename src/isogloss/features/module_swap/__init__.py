"""Module swap: scores of models in which one part comes from another model, or is removed."""
