"""What runners on the server's own machine share: a queue on disk, its places, how the ends of jobs are told.

What runs a job (a container engine, the operating system) is an :class:`~.engine.Engine`; the rest is here.
"""
