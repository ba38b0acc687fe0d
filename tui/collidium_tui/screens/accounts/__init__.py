"""Accounts: who there is, what they have and did, grants and bans."""
