-- What a repository takes, of its contents, folders and commits; counted when one is added.
ALTER TABLE repos ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
CREATE INDEX repos_of_owner ON repos (owner_id, bytes);
CREATE TRIGGER objects_counted AFTER INSERT ON objects
BEGIN UPDATE repos SET bytes = bytes + NEW.size WHERE id = NEW.repo_id; END;
CREATE TRIGGER trees_counted AFTER INSERT ON trees
BEGIN UPDATE repos SET bytes = bytes + length(NEW.entries) WHERE id = NEW.repo_id; END;
CREATE TRIGGER commits_counted AFTER INSERT ON commits
BEGIN UPDATE repos SET bytes = bytes + 200 + length(NEW.title || NEW.description) WHERE id = NEW.repo_id; END;
UPDATE repos SET bytes = (SELECT coalesce(sum(size), 0) FROM objects WHERE repo_id = repos.id);
