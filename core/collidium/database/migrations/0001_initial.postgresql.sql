CREATE FUNCTION ledger_append_only() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'the ledger is append-only' USING ERRCODE = 'integrity_constraint_violation'; END $$;
CREATE TRIGGER ledger_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON credit_transactions
FOR EACH STATEMENT EXECUTE FUNCTION ledger_append_only();
ALTER TABLE accounts ADD CONSTRAINT balance_not_negative CHECK (credits >= 0);
CREATE FUNCTION request_has_ended() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'the request has ended' USING ERRCODE = 'integrity_constraint_violation'; END $$;
CREATE TRIGGER request_has_ended BEFORE UPDATE ON simulation_requests FOR EACH ROW
WHEN (OLD.state IN ('completed', 'failed', 'cancelled') AND (
    NEW.state <> OLD.state OR NEW.credits_charged <> OLD.credits_charged OR NEW.step <> ''
    OR NEW.credits_refunded < OLD.credits_refunded
    OR (NEW.credits_refunded <> OLD.credits_refunded AND OLD.state <> 'failed')))
EXECUTE FUNCTION request_has_ended();
ALTER TABLE simulation_requests ADD CONSTRAINT request_refund
CHECK (credits_refunded BETWEEN 0 AND credits_charged);
INSERT INTO global_config (name, submissions_frozen, updated_at) VALUES ('platform', false, now());
