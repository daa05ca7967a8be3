"""Make the runs of a plan in processes, Ray tasks or Slurm jobs, search, and make single runs."""
