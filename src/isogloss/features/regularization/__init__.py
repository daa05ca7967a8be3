"""R3F and L2-SP: auxiliary losses that keep a fine-tuned encoder near its start."""
