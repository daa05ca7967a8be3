"""Floor 9: who makes the runs of a plan: processes, Ray tasks, Slurm jobs; search and single runs."""
