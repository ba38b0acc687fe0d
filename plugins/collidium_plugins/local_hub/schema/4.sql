ALTER TABLE accounts ADD COLUMN display_name TEXT NOT NULL DEFAULT '';
ALTER TABLE accounts ADD COLUMN email TEXT NOT NULL DEFAULT '';
-- A link that signs in once, and is gone then.
CREATE TABLE sign_in_links (
    sha256 TEXT PRIMARY KEY,
    account_id INTEGER NOT NULL REFERENCES accounts ON DELETE CASCADE,
    expires_at TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX sign_in_links_of_account ON sign_in_links (account_id);
