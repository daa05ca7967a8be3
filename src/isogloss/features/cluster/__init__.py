"""Clusters: Ray tasks and Slurm jobs that make the runs of a plan."""
