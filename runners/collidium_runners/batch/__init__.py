"""Code shared by runners on batch systems: parts of a job, batch scripts, Slurm's states."""
