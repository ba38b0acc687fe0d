"""How records are shown: number formats, columns and sentences that commands, console, pages and files share.

It knows records alone. Each face does its own layout: terminals wrap, pages escape and link.
"""
