"""``collidium seed`` and ``collidium challenge create``: fill a server with datasets, truth and baselines.

``plan`` has what is made and what it takes, ``checks`` what stands against it, ``state`` what the server
keeps of it. ``steps`` does what is missing: ``making`` for datasets, ``baselines``, ``drafts`` of challenges.
"""
