-- The tables of the local hub; the version in database.py goes up with each change here.
CREATE TABLE accounts (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE COLLATE NOCASE,
    created_at TEXT NOT NULL
);
-- A token is known by its hash alone.
CREATE TABLE tokens (
    sha256 TEXT PRIMARY KEY,
    account_id INTEGER NOT NULL REFERENCES accounts ON DELETE CASCADE,
    label TEXT NOT NULL,
    created_at TEXT NOT NULL,
    expires_at TEXT,
    -- Of tokens made from a grant. Other tokens may do everything.
    scopes TEXT,
    grant_id INTEGER REFERENCES grants ON DELETE CASCADE
) WITHOUT ROWID;
CREATE INDEX tokens_of_account ON tokens (account_id);
CREATE INDEX tokens_of_grant ON tokens (grant_id);
-- AUTOINCREMENT: a signed address names a repository by its id, which must never name another.
CREATE TABLE repos (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL CHECK (kind IN ('models', 'datasets', 'spaces')),
    owner_id INTEGER NOT NULL REFERENCES accounts,
    name TEXT NOT NULL COLLATE NOCASE,
    private INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    modified_at TEXT NOT NULL,
    card TEXT NOT NULL DEFAULT '{}',
    -- What it takes, of its contents, folders and commits; counted when one is added.
    bytes INTEGER NOT NULL DEFAULT 0,
    UNIQUE (kind, owner_id, name)
);
CREATE INDEX repos_by_modification ON repos (kind, modified_at, id);
CREATE INDEX repos_of_owner ON repos (owner_id, bytes);
CREATE TABLE repo_tags (
    repo_id INTEGER NOT NULL REFERENCES repos ON DELETE CASCADE,
    tag TEXT NOT NULL,
    PRIMARY KEY (repo_id, tag)
) WITHOUT ROWID;
CREATE INDEX repos_of_tag ON repo_tags (tag, repo_id);
CREATE TABLE refs (
    repo_id INTEGER NOT NULL REFERENCES repos ON DELETE CASCADE,
    kind TEXT NOT NULL CHECK (kind IN ('branch', 'tag')),
    name TEXT NOT NULL,
    commit_oid TEXT NOT NULL,
    PRIMARY KEY (repo_id, kind, name)
) WITHOUT ROWID;
CREATE TABLE commits (
    repo_id INTEGER NOT NULL REFERENCES repos ON DELETE CASCADE,
    oid TEXT NOT NULL,
    parent TEXT,
    tree TEXT NOT NULL,
    title TEXT NOT NULL,
    description TEXT NOT NULL,
    author TEXT NOT NULL,
    created_at TEXT NOT NULL,
    PRIMARY KEY (repo_id, oid)
) WITHOUT ROWID;
CREATE TABLE trees (
    repo_id INTEGER NOT NULL REFERENCES repos ON DELETE CASCADE,
    oid TEXT NOT NULL,
    entries TEXT NOT NULL,
    PRIMARY KEY (repo_id, oid)
);
-- Which contents a repository may name. Kept per repository: who knows a hash does not have the file.
CREATE TABLE objects (
    repo_id INTEGER NOT NULL REFERENCES repos ON DELETE CASCADE,
    sha256 TEXT NOT NULL,
    size INTEGER NOT NULL,
    PRIMARY KEY (repo_id, sha256)
) WITHOUT ROWID;
CREATE INDEX objects_by_content ON objects (sha256);
CREATE TABLE secrets (name TEXT PRIMARY KEY, value BLOB NOT NULL);
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
CREATE TRIGGER objects_counted AFTER INSERT ON objects
BEGIN UPDATE repos SET bytes = bytes + NEW.size WHERE id = NEW.repo_id; END;
CREATE TRIGGER trees_counted AFTER INSERT ON trees
BEGIN UPDATE repos SET bytes = bytes + length(NEW.entries) WHERE id = NEW.repo_id; END;
CREATE TRIGGER commits_counted AFTER INSERT ON commits
BEGIN UPDATE repos SET bytes = bytes + 200 + length(NEW.title || NEW.description) WHERE id = NEW.repo_id; END;
