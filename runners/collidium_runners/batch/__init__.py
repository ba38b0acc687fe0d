"""What runners on batch systems share: parts of a job, its script, Slurm's states, outputs."""
