"""Floor 6: where runs lie: records, leases, checkpoints, in a folder or mirrored from a bucket."""
