-- What an account allowed an application, once. Codes and tokens made from it end with it.
CREATE TABLE grants (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id INTEGER NOT NULL REFERENCES accounts ON DELETE CASCADE,
    client_id TEXT NOT NULL,
    scopes TEXT NOT NULL,
    nonce TEXT,
    granted_at TEXT NOT NULL,
    expires_at TEXT NOT NULL
);
CREATE INDEX grants_of_account ON grants (account_id);
CREATE INDEX grants_by_expiry ON grants (expires_at);
-- What an application gives once for tokens: a code, or a refresh token. Used ones stay, to be recognised.
CREATE TABLE single_use_tokens (
    sha256 TEXT PRIMARY KEY,
    grant_id INTEGER NOT NULL REFERENCES grants ON DELETE CASCADE,
    kind TEXT NOT NULL CHECK (kind IN ('code', 'refresh')),
    redirect_uri TEXT,
    code_challenge TEXT,
    expires_at TEXT NOT NULL,
    used_at TEXT
) WITHOUT ROWID;
CREATE INDEX single_use_tokens_of_grant ON single_use_tokens (grant_id);
-- Scopes of tokens made from a grant. Other tokens may do everything.
ALTER TABLE tokens ADD COLUMN scopes TEXT;
ALTER TABLE tokens ADD COLUMN grant_id INTEGER REFERENCES grants ON DELETE CASCADE;
CREATE INDEX tokens_of_grant ON tokens (grant_id);
