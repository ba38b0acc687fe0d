"""What runners of a pipeline share: its command, the names of its jobs, its outputs."""
