"""What runners on the server's own machine share: a queue on disk, its slots, and the final status of jobs.

What runs a job (a container engine, the operating system) is an :class:`~.engine.Engine`; the rest is here.
"""
