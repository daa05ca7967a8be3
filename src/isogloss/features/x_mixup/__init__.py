"""X-Mixup: source and target representations are mixed in one layer."""
