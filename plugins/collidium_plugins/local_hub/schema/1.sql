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
    expires_at TEXT
) WITHOUT ROWID;
CREATE INDEX tokens_of_account ON tokens (account_id);
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
    UNIQUE (kind, owner_id, name)
);
CREATE INDEX repos_by_modification ON repos (kind, modified_at, id);
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
