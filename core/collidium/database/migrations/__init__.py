"""Migrations of the schema, made with ``tortoise makemigrations`` and applied by ``collidium db migrate``."""
