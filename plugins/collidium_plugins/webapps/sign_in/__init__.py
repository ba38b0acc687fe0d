"""Signing in with the hub: OAuth's authorization code with PKCE, sessions, and forms of ours alone.

A browser holds one random key in a cookie, and the server its hash. All else that a sign-in or a form is
recognised by follows from that key (:mod:`~collidium_plugins.webapps.sign_in.cookies`) and is kept nowhere.
"""
