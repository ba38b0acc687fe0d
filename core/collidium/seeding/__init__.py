"""``collidium seed``: fills a server with datasets, truth and baselines.

``plan`` says what is made and what it takes, ``events`` makes it, ``state`` is kept by the server,
``checks`` says what stands against it, ``steps`` does what is missing.
"""
