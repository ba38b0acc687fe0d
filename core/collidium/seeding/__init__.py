"""``collidium seed`` and ``collidium challenge create``: fill a server with datasets, truth and baselines.

``plan`` defines the datasets with their sizes and times, ``checks`` finds problems before anything is
created, and ``steps`` runs the missing steps, with ``baselines`` for submissions. ``access`` signs in at the
hub and stores the state of a run.
"""
