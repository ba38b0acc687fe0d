"""How records are shown: number formats, columns and sentences that commands, console, pages and files share.

It knows records, the declarations of their fields, and the cards of tasks. Each face does its own layout:
terminals wrap, pages escape and link.
"""
