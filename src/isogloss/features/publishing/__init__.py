"""Publishing: models as folders for other programs, with cards, ONNX files and adapters, and on the hub."""
