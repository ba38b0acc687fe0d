"""Code shared by runners on the server's machine: a queue on disk, slots, and the final states of jobs.

An :class:`~.engine.Engine` runs the jobs: a container engine, or the operating system.
"""
