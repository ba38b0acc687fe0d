CREATE TRIGGER ledger_no_update BEFORE UPDATE ON credit_transactions
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_no_delete BEFORE DELETE ON credit_transactions
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER balance_insert BEFORE INSERT ON accounts WHEN CAST(NEW.credits AS NUMERIC) < 0
BEGIN SELECT RAISE(ABORT, 'a balance below zero'); END;
CREATE TRIGGER balance_update BEFORE UPDATE ON accounts WHEN CAST(NEW.credits AS NUMERIC) < 0
BEGIN SELECT RAISE(ABORT, 'a balance below zero'); END;
CREATE TRIGGER request_has_ended BEFORE UPDATE ON simulation_requests
WHEN OLD.state IN ('completed', 'failed', 'cancelled') AND (
    NEW.state <> OLD.state OR NEW.credits_charged <> OLD.credits_charged OR NEW.step <> ''
    OR CAST(NEW.credits_refunded AS NUMERIC) < CAST(OLD.credits_refunded AS NUMERIC)
    OR (NEW.credits_refunded <> OLD.credits_refunded AND OLD.state <> 'failed'))
BEGIN SELECT RAISE(ABORT, 'the request has ended'); END;
CREATE TRIGGER request_refund BEFORE UPDATE ON simulation_requests
WHEN CAST(NEW.credits_refunded AS NUMERIC) < 0
    OR CAST(NEW.credits_refunded AS NUMERIC) > CAST(NEW.credits_charged AS NUMERIC)
BEGIN SELECT RAISE(ABORT, 'a refund of more than was charged'); END;
INSERT INTO global_config (name, submissions_frozen, updated_at) VALUES ('platform', 0, CURRENT_TIMESTAMP);
