--
-- PostgreSQL database dump
--


-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 15.18 (Debian 15.18-0+deb12u1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: ledger_append_only(); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.ledger_append_only() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN RAISE EXCEPTION 'the ledger is append-only' USING ERRCODE = 'integrity_constraint_violation'; END $$;


--
-- Name: request_has_ended(); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.request_has_ended() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN RAISE EXCEPTION 'the request has ended' USING ERRCODE = 'integrity_constraint_violation'; END $$;


SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: accounts; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.accounts (
    id bigint NOT NULL,
    hub_username character varying(96) NOT NULL,
    name_key character varying(96) NOT NULL,
    credits numeric(18,3) NOT NULL,
    banned boolean NOT NULL,
    baseline boolean NOT NULL,
    created_at timestamp with time zone NOT NULL,
    signed_up_at timestamp with time zone,
    last_seen_at timestamp with time zone,
    CONSTRAINT balance_not_negative CHECK ((credits >= (0)::numeric))
);


--
-- Name: TABLE accounts; Type: COMMENT; Schema: public; Owner: -
--

COMMENT ON TABLE public.accounts IS 'Someone with a hub account (the row may exist (banned) before the first sign-in).';


--
-- Name: accounts_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

CREATE SEQUENCE public.accounts_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: accounts_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: -
--

ALTER SEQUENCE public.accounts_id_seq OWNED BY public.accounts.id;


--
-- Name: arrivals; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.arrivals (
    id character varying(32) NOT NULL,
    challenge character varying(64) NOT NULL,
    received_at timestamp with time zone,
    leased_until timestamp with time zone NOT NULL,
    sha256 character varying(64)
);


--
-- Name: TABLE arrivals; Type: COMMENT; Schema: public; Owner: -
--

COMMENT ON TABLE public.arrivals IS 'A file on its way to a challenge, for whose end it may count.';


--
-- Name: audit_log; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.audit_log (
    id bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    actor character varying(96) NOT NULL,
    action character varying(32) NOT NULL,
    target character varying(160) NOT NULL,
    details jsonb NOT NULL,
    http_request_id character varying(64) NOT NULL
);


--
-- Name: TABLE audit_log; Type: COMMENT; Schema: public; Owner: -
--

COMMENT ON TABLE public.audit_log IS 'Who did what, when, to whom.';


--
-- Name: audit_log_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

CREATE SEQUENCE public.audit_log_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: audit_log_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: -
--

ALTER SEQUENCE public.audit_log_id_seq OWNED BY public.audit_log.id;


--
-- Name: benchmark_bests; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.benchmark_bests (
    id bigint NOT NULL,
    challenge character varying(64) NOT NULL,
    truth_version character varying(64) NOT NULL,
    metric character varying(64) NOT NULL,
    value double precision NOT NULL,
    submission_id character varying(32) NOT NULL
);


--
-- Name: TABLE benchmark_bests; Type: COMMENT; Schema: public; Owner: -
--

COMMENT ON TABLE public.benchmark_bests IS 'The best value of a metric so far, which only ever gets better.';


--
-- Name: benchmark_bests_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

CREATE SEQUENCE public.benchmark_bests_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: benchmark_bests_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: -
--

ALTER SEQUENCE public.benchmark_bests_id_seq OWNED BY public.benchmark_bests.id;


--
-- Name: challenge_members; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.challenge_members (
    id bigint NOT NULL,
    challenge character varying(64) NOT NULL,
    hub_username character varying(96) NOT NULL,
    name_key character varying(96) NOT NULL,
    added_at timestamp with time zone NOT NULL
);


--
-- Name: TABLE challenge_members; Type: COMMENT; Schema: public; Owner: -
--

COMMENT ON TABLE public.challenge_members IS 'Someone who may submit to a challenge for members only, who may not have signed in yet.';


--
-- Name: challenge_members_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

CREATE SEQUENCE public.challenge_members_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: challenge_members_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: -
--

ALTER SEQUENCE public.challenge_members_id_seq OWNED BY public.challenge_members.id;


--
-- Name: challenges; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.challenges (
    name character varying(64) NOT NULL,
    task character varying(64) NOT NULL,
    title character varying(200) NOT NULL,
    listed boolean NOT NULL,
    opens_at timestamp with time zone,
    closes_at timestamp with time zone,
    notice character varying(64) NOT NULL,
    ended_at timestamp with time zone,
    practice boolean NOT NULL,
    submissions_per_day integer,
    final_submissions integer NOT NULL,
    rewarded boolean NOT NULL,
    rules text NOT NULL,
    announcements jsonb NOT NULL,
    access character varying(16) NOT NULL,
    organisation character varying(96),
    team_size integer NOT NULL,
    teams_frozen_at timestamp with time zone,
    truth_version character varying(64),
    revision bigint NOT NULL,
    changed_at timestamp with time zone NOT NULL
);


--
-- Name: TABLE challenges; Type: COMMENT; Schema: public; Owner: -
--

COMMENT ON TABLE public.challenges IS 'A task, its truth and its leaderboard. Each task has one of its own name, which has no dates.';


--
-- Name: credit_transactions; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.credit_transactions (
    id bigint NOT NULL,
    delta numeric(18,3) NOT NULL,
    balance_after numeric(18,3) NOT NULL,
    reason character varying(32) NOT NULL,
    reference character varying(160) NOT NULL,
    note text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    account_id bigint NOT NULL
);


--
-- Name: TABLE credit_transactions; Type: COMMENT; Schema: public; Owner: -
--

COMMENT ON TABLE public.credit_transactions IS 'A ledger entry, never changed and never deleted (the database refuses both).';


--
-- Name: credit_transactions_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

CREATE SEQUENCE public.credit_transactions_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: credit_transactions_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: -
--

ALTER SEQUENCE public.credit_transactions_id_seq OWNED BY public.credit_transactions.id;


--
-- Name: evaluations; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.evaluations (
    id character varying(32) NOT NULL,
    challenge character varying(64) NOT NULL,
    task character varying(64) NOT NULL,
    account_id bigint NOT NULL,
    hub_username character varying(96) NOT NULL,
    participant character varying(48) NOT NULL,
    sha256 character varying(64) NOT NULL,
    size_bytes bigint NOT NULL,
    manifest text NOT NULL,
    model_repo character varying(200),
    model_claim character varying(16),
    scorer_version character varying(32) NOT NULL,
    truth_version character varying(64) NOT NULL,
    state character varying(16) NOT NULL,
    code character varying(32),
    detail character varying(500) NOT NULL,
    received_at timestamp with time zone NOT NULL,
    checking_at timestamp with time zone,
    running_at timestamp with time zone,
    ended_at timestamp with time zone,
    events integer NOT NULL,
    events_done integer NOT NULL,
    facts jsonb,
    timed jsonb NOT NULL,
    submission_id character varying(32),
    again boolean NOT NULL,
    public boolean NOT NULL,
    predictions character varying(64),
    price numeric(18,3) NOT NULL,
    turn integer,
    due_at timestamp with time zone,
    lease character varying(32) NOT NULL,
    machine character varying(64) NOT NULL,
    attempts integer NOT NULL
);


--
-- Name: TABLE evaluations; Type: COMMENT; Schema: public; Owner: -
--

COMMENT ON TABLE public.evaluations IS 'A model that the platform runs on the events of a challenge, and how far that is.';


--
-- Name: followers; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.followers (
    process character varying(128) NOT NULL,
    looked_at timestamp with time zone NOT NULL,
    release character varying(64) NOT NULL,
    key character varying(16) NOT NULL,
    follows boolean NOT NULL
);


--
-- Name: TABLE followers; Type: COMMENT; Schema: public; Owner: -
--

COMMENT ON TABLE public.followers IS 'A process that serves or follows requests, and since when every lane of it has looked for work.';


--
-- Name: global_config; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.global_config (
    name character varying(16) NOT NULL,
    submissions_frozen boolean NOT NULL,
    frozen_at timestamp with time zone,
    frozen_by character varying(96),
    frozen_note character varying(1000),
    backed_up_at timestamp with time zone,
    updated_at timestamp with time zone NOT NULL
);


--
-- Name: TABLE global_config; Type: COMMENT; Schema: public; Owner: -
--

COMMENT ON TABLE public.global_config IS 'What holds for the whole platform (one row, named platform).';


--
-- Name: idempotency_keys; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.idempotency_keys (
    id bigint NOT NULL,
    owner character varying(128) NOT NULL,
    key character varying(128) NOT NULL,
    question character varying(64) NOT NULL,
    answer text
);


--
-- Name: TABLE idempotency_keys; Type: COMMENT; Schema: public; Owner: -
--

COMMENT ON TABLE public.idempotency_keys IS 'The answer that a key of an owner was given, None while what was asked is being done.';


--
-- Name: idempotency_keys_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

CREATE SEQUENCE public.idempotency_keys_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: idempotency_keys_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: -
--

ALTER SEQUENCE public.idempotency_keys_id_seq OWNED BY public.idempotency_keys.id;


--
-- Name: invitations; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.invitations (
    digest character varying(64) NOT NULL,
    challenge character varying(64) NOT NULL,
    team_id bigint,
    uses_left integer NOT NULL,
    expires_at timestamp with time zone NOT NULL
);


--
-- Name: TABLE invitations; Type: COMMENT; Schema: public; Owner: -
--

COMMENT ON TABLE public.invitations IS 'A code that admits to the members of a challenge, or to a team, so many times until its end.';


--
-- Name: mail_recipients; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.mail_recipients (
    id bigint NOT NULL,
    account_id bigint NOT NULL,
    address character varying(254),
    confirmed_at timestamp with time zone,
    rejections integer NOT NULL,
    off jsonb NOT NULL
);


--
-- Name: TABLE mail_recipients; Type: COMMENT; Schema: public; Owner: -
--

COMMENT ON TABLE public.mail_recipients IS 'What an account wants to be notified of, and its e-mail address.';


--
-- Name: mail_recipients_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

CREATE SEQUENCE public.mail_recipients_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: mail_recipients_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: -
--

ALTER SEQUENCE public.mail_recipients_id_seq OWNED BY public.mail_recipients.id;


--
-- Name: operators; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.operators (
    name character varying(64) NOT NULL,
    digest character varying(64) NOT NULL,
    scopes text NOT NULL,
    challenge character varying(64),
    created_at timestamp with time zone NOT NULL,
    withdrawn_at timestamp with time zone
);


--
-- Name: TABLE operators; Type: COMMENT; Schema: public; Owner: -
--

COMMENT ON TABLE public.operators IS 'An operator with a token of its own.';


--
-- Name: outbox_events; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.outbox_events (
    id character varying(40) NOT NULL,
    type character varying(64) NOT NULL,
    reference character varying(64) NOT NULL,
    body text NOT NULL,
    created_at timestamp with time zone NOT NULL
);


--
-- Name: TABLE outbox_events; Type: COMMENT; Schema: public; Owner: -
--

COMMENT ON TABLE public.outbox_events IS 'An event, as it is sent to every receiver.';


--
-- Name: pending_sign_ins; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.pending_sign_ins (
    digest character varying(64) NOT NULL,
    redirect_uri text NOT NULL,
    return_to text NOT NULL,
    scopes text NOT NULL,
    ends_at timestamp with time zone NOT NULL
);


--
-- Name: TABLE pending_sign_ins; Type: COMMENT; Schema: public; Owner: -
--

COMMENT ON TABLE public.pending_sign_ins IS 'A sign-in whose browser was sent to the hub and is not back.';


--
-- Name: rescorings; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.rescorings (
    challenge character varying(64) NOT NULL,
    public_percent integer,
    applies boolean NOT NULL,
    pays boolean NOT NULL,
    actor character varying(96) NOT NULL,
    http_request_id character varying(64) NOT NULL,
    asked_at timestamp with time zone NOT NULL,
    done integer NOT NULL,
    submissions integer NOT NULL,
    ended_at timestamp with time zone,
    problem text NOT NULL,
    changes jsonb NOT NULL,
    unscored jsonb NOT NULL,
    lease character varying(32) NOT NULL,
    leased_until timestamp with time zone NOT NULL
);


--
-- Name: TABLE rescorings; Type: COMMENT; Schema: public; Owner: -
--

COMMENT ON TABLE public.rescorings IS 'The last order of an operator to score the submissions to a challenge again, and what became of it.';


--
-- Name: scorings; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.scorings (
    id bigint NOT NULL,
    submission_id character varying(32) NOT NULL,
    scorer_version character varying(32) NOT NULL,
    truth_version character varying(64) NOT NULL,
    scores jsonb NOT NULL,
    uncertainties jsonb,
    replicates jsonb,
    primary_draws bytea,
    curves jsonb,
    warnings jsonb NOT NULL,
    scored_at timestamp with time zone NOT NULL,
    applied_at timestamp with time zone
);


--
-- Name: TABLE scorings; Type: COMMENT; Schema: public; Owner: -
--

COMMENT ON TABLE public.scorings IS 'What one scorer made of a submission against one truth. What counts stands in its row, too.';


--
-- Name: scorings_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

CREATE SEQUENCE public.scorings_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: scorings_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: -
--

ALTER SEQUENCE public.scorings_id_seq OWNED BY public.scorings.id;


--
-- Name: sign_in_attempts; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.sign_in_attempts (
    key character varying(128) NOT NULL,
    minute bigint NOT NULL,
    count integer NOT NULL
);


--
-- Name: TABLE sign_in_attempts; Type: COMMENT; Schema: public; Owner: -
--

COMMENT ON TABLE public.sign_in_attempts IS 'How many attempts of one kind came from one network within a minute.';


--
-- Name: simulation_history; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.simulation_history (
    id bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    state character varying(16) NOT NULL,
    reason character varying(500),
    request_id bigint NOT NULL
);


--
-- Name: TABLE simulation_history; Type: COMMENT; Schema: public; Owner: -
--

COMMENT ON TABLE public.simulation_history IS 'A moment in the life of a request: a state it came to, or something worth telling on the way.';


--
-- Name: simulation_history_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

CREATE SEQUENCE public.simulation_history_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: simulation_history_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: -
--

ALTER SEQUENCE public.simulation_history_id_seq OWNED BY public.simulation_history.id;


--
-- Name: simulation_parts; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.simulation_parts (
    id bigint NOT NULL,
    part integer NOT NULL,
    stored boolean NOT NULL,
    files jsonb NOT NULL,
    request_id bigint NOT NULL
);


--
-- Name: TABLE simulation_parts; Type: COMMENT; Schema: public; Owner: -
--

COMMENT ON TABLE public.simulation_parts IS 'The files of a part in the storage backend, until the output of the request is whole, or deleted.';


--
-- Name: simulation_parts_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

CREATE SEQUENCE public.simulation_parts_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: simulation_parts_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: -
--

ALTER SEQUENCE public.simulation_parts_id_seq OWNED BY public.simulation_parts.id;


--
-- Name: simulation_readers; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.simulation_readers (
    id bigint NOT NULL,
    account_id bigint NOT NULL,
    request_id bigint NOT NULL
);


--
-- Name: TABLE simulation_readers; Type: COMMENT; Schema: public; Owner: -
--

COMMENT ON TABLE public.simulation_readers IS 'An account that was answered with another account''s request, and may read it.';


--
-- Name: simulation_readers_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

CREATE SEQUENCE public.simulation_readers_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: simulation_readers_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: -
--

ALTER SEQUENCE public.simulation_readers_id_seq OWNED BY public.simulation_readers.id;


--
-- Name: simulation_requests; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.simulation_requests (
    id bigint NOT NULL,
    request_id character varying(32) NOT NULL,
    account_id bigint NOT NULL,
    hub_username character varying(96) NOT NULL,
    channel character varying(64) NOT NULL,
    events integer NOT NULL,
    pileup integer NOT NULL,
    seed character varying(39) NOT NULL,
    vary character varying(200) NOT NULL,
    pipeline_version character varying(64) NOT NULL,
    config_hash character varying(64) NOT NULL,
    private boolean NOT NULL,
    webhook_url character varying(2000),
    state character varying(16) NOT NULL,
    reason character varying(500),
    created_at timestamp with time zone NOT NULL,
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    created_day character varying(10) NOT NULL,
    finished_month character varying(7),
    credits_charged numeric(18,3) NOT NULL,
    credits_refunded numeric(18,3) NOT NULL,
    estimated_node_hours numeric(18,3) NOT NULL,
    node_hours numeric(18,3) NOT NULL,
    node_hours_used numeric(18,3),
    runner character varying(64) NOT NULL,
    is_mock boolean NOT NULL,
    handle character varying(200),
    node_seconds double precision NOT NULL,
    parts_stored integer DEFAULT 0 NOT NULL,
    output jsonb,
    output_hub_repo character varying(500),
    encrypted_token text,
    step character varying(16) NOT NULL,
    due_at timestamp with time zone,
    deadline_at timestamp with time zone,
    cancel_requested_at timestamp with time zone,
    attempts integer NOT NULL,
    denials integer NOT NULL,
    lost_collections integer DEFAULT 0 NOT NULL,
    lease character varying(32) NOT NULL,
    leased_until timestamp with time zone,
    CONSTRAINT request_refund CHECK (((credits_refunded >= (0)::numeric) AND (credits_refunded <= credits_charged)))
);


--
-- Name: TABLE simulation_requests; Type: COMMENT; Schema: public; Owner: -
--

COMMENT ON TABLE public.simulation_requests IS 'An order of events that was paid for, and what became of it.';


--
-- Name: simulation_requests_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

CREATE SEQUENCE public.simulation_requests_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: simulation_requests_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: -
--

ALTER SEQUENCE public.simulation_requests_id_seq OWNED BY public.simulation_requests.id;


--
-- Name: sso_accounts; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.sso_accounts (
    id bigint NOT NULL,
    issuer character varying(255) NOT NULL,
    subject character varying(255) NOT NULL,
    hub_username character varying(96) NOT NULL,
    groups text NOT NULL,
    signed_in_at timestamp with time zone NOT NULL
);


--
-- Name: TABLE sso_accounts; Type: COMMENT; Schema: public; Owner: -
--

COMMENT ON TABLE public.sso_accounts IS 'Who stands behind an account of single sign-on: a subject of an issuer, and nothing else.';


--
-- Name: sso_accounts_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

CREATE SEQUENCE public.sso_accounts_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: sso_accounts_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: -
--

ALTER SEQUENCE public.sso_accounts_id_seq OWNED BY public.sso_accounts.id;


--
-- Name: sso_tokens; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.sso_tokens (
    digest character varying(64) NOT NULL,
    hub_username character varying(96) NOT NULL,
    of_session boolean NOT NULL,
    ends_at timestamp with time zone NOT NULL
);


--
-- Name: TABLE sso_tokens; Type: COMMENT; Schema: public; Owner: -
--

COMMENT ON TABLE public.sso_tokens IS 'A token that acts for an account of single sign-on.';


--
-- Name: submissions; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.submissions (
    id character varying(32) NOT NULL,
    challenge character varying(64) NOT NULL,
    task character varying(64) NOT NULL,
    account_id bigint NOT NULL,
    hub_username character varying(96) NOT NULL,
    sha256 character varying(64) NOT NULL,
    size_bytes bigint NOT NULL,
    rows bigint NOT NULL,
    scores jsonb NOT NULL,
    uncertainties jsonb,
    participant character varying(48) NOT NULL,
    team character varying(64),
    standing character varying(16) NOT NULL,
    standing_reason character varying(1000),
    chosen_at timestamp with time zone,
    rank_score double precision,
    represents boolean NOT NULL,
    warnings jsonb NOT NULL,
    credits_earned numeric(18,3) NOT NULL,
    model_repo character varying(200),
    model_claim character varying(16),
    code_url character varying(500),
    paper_url character varying(500),
    from_hub character varying(500),
    evaluation_id character varying(32),
    model jsonb,
    scorer_version character varying(32) NOT NULL,
    truth_version character varying(64) NOT NULL,
    submitted_at timestamp with time zone NOT NULL,
    verified_at timestamp with time zone,
    baseline boolean NOT NULL
);


--
-- Name: TABLE submissions; Type: COMMENT; Schema: public; Owner: -
--

COMMENT ON TABLE public.submissions IS 'Predictions of one account that were scored.';


--
-- Name: team_members; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.team_members (
    id bigint NOT NULL,
    challenge character varying(64) NOT NULL,
    team_id bigint NOT NULL,
    account_id bigint NOT NULL,
    hub_username character varying(96) NOT NULL
);


--
-- Name: TABLE team_members; Type: COMMENT; Schema: public; Owner: -
--

COMMENT ON TABLE public.team_members IS 'An account in its only team of a challenge.';


--
-- Name: team_members_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

CREATE SEQUENCE public.team_members_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: team_members_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: -
--

ALTER SEQUENCE public.team_members_id_seq OWNED BY public.team_members.id;


--
-- Name: teams; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.teams (
    id bigint NOT NULL,
    challenge character varying(64) NOT NULL,
    name character varying(64) NOT NULL,
    name_key character varying(64) NOT NULL,
    captain_id bigint NOT NULL,
    created_at timestamp with time zone NOT NULL
);


--
-- Name: TABLE teams; Type: COMMENT; Schema: public; Owner: -
--

COMMENT ON TABLE public.teams IS 'People who compete in a challenge as one participant.';


--
-- Name: teams_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

CREATE SEQUENCE public.teams_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: teams_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: -
--

ALTER SEQUENCE public.teams_id_seq OWNED BY public.teams.id;


--
-- Name: tortoise_migrations; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.tortoise_migrations (
    id integer NOT NULL,
    app character varying(255) NOT NULL,
    name character varying(255) NOT NULL,
    applied_at timestamp with time zone NOT NULL
);


--
-- Name: tortoise_migrations_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

CREATE SEQUENCE public.tortoise_migrations_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: tortoise_migrations_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: -
--

ALTER SEQUENCE public.tortoise_migrations_id_seq OWNED BY public.tortoise_migrations.id;


--
-- Name: truth_versions; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.truth_versions (
    id bigint NOT NULL,
    task character varying(64) NOT NULL,
    version character varying(64) NOT NULL,
    manifest jsonb NOT NULL,
    imported_at timestamp with time zone NOT NULL
);


--
-- Name: TABLE truth_versions; Type: COMMENT; Schema: public; Owner: -
--

COMMENT ON TABLE public.truth_versions IS 'Truth that was imported for a task (its files lie in the data directory and are never served).';


--
-- Name: truth_versions_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

CREATE SEQUENCE public.truth_versions_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: truth_versions_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: -
--

ALTER SEQUENCE public.truth_versions_id_seq OWNED BY public.truth_versions.id;


--
-- Name: uploads; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.uploads (
    id character varying(32) NOT NULL,
    account_id bigint NOT NULL,
    challenge character varying(64) NOT NULL,
    sha256 character varying(64) NOT NULL,
    size_bytes bigint NOT NULL,
    model_repo character varying(200),
    submission_id character varying(32),
    began_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL
);


--
-- Name: TABLE uploads; Type: COMMENT; Schema: public; Owner: -
--

COMMENT ON TABLE public.uploads IS 'A file of predictions that comes in several requests.';


--
-- Name: usage_totals; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.usage_totals (
    id character varying(120) NOT NULL,
    kind character varying(8) NOT NULL,
    period character varying(10) NOT NULL,
    key character varying(96) NOT NULL,
    requests bigint NOT NULL,
    milli_node_hours bigint NOT NULL,
    finished bigint NOT NULL,
    failed bigint NOT NULL
);


--
-- Name: TABLE usage_totals; Type: COMMENT; Schema: public; Owner: -
--

COMMENT ON TABLE public.usage_totals IS 'A running total: of a month, of a day, or of an account or a channel in a month.';


--
-- Name: web_sessions; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.web_sessions (
    digest character varying(64) NOT NULL,
    hub_username character varying(96) NOT NULL,
    token text NOT NULL,
    scopes text NOT NULL,
    begun_at timestamp with time zone NOT NULL,
    seen_at timestamp with time zone NOT NULL,
    ends_at timestamp with time zone NOT NULL
);


--
-- Name: TABLE web_sessions; Type: COMMENT; Schema: public; Owner: -
--

COMMENT ON TABLE public.web_sessions IS 'An account that is signed in, in one browser.';


--
-- Name: webhook_deliveries; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.webhook_deliveries (
    id bigint NOT NULL,
    account_id bigint NOT NULL,
    url character varying(2000) NOT NULL,
    host character varying(255) NOT NULL,
    state character varying(16) NOT NULL,
    attempts integer NOT NULL,
    last_status integer,
    last_error character varying(500),
    created_at timestamp with time zone NOT NULL,
    next_attempt_at timestamp with time zone,
    delivered_at timestamp with time zone,
    event_id character varying(40) NOT NULL
);


--
-- Name: TABLE webhook_deliveries; Type: COMMENT; Schema: public; Owner: -
--

COMMENT ON TABLE public.webhook_deliveries IS 'An event on its way to one address.';


--
-- Name: webhook_deliveries_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

CREATE SEQUENCE public.webhook_deliveries_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: webhook_deliveries_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: -
--

ALTER SEQUENCE public.webhook_deliveries_id_seq OWNED BY public.webhook_deliveries.id;


--
-- Name: webhooks; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.webhooks (
    id bigint NOT NULL,
    account_id bigint NOT NULL,
    url character varying(2000),
    secret text NOT NULL,
    created_at timestamp with time zone NOT NULL
);


--
-- Name: TABLE webhooks; Type: COMMENT; Schema: public; Owner: -
--

COMMENT ON TABLE public.webhooks IS 'The webhook of an account: its URL, and the secret that signs events.';


--
-- Name: webhooks_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

CREATE SEQUENCE public.webhooks_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: webhooks_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: -
--

ALTER SEQUENCE public.webhooks_id_seq OWNED BY public.webhooks.id;


--
-- Name: accounts id; Type: DEFAULT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.accounts ALTER COLUMN id SET DEFAULT nextval('public.accounts_id_seq'::regclass);


--
-- Name: audit_log id; Type: DEFAULT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.audit_log ALTER COLUMN id SET DEFAULT nextval('public.audit_log_id_seq'::regclass);


--
-- Name: benchmark_bests id; Type: DEFAULT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.benchmark_bests ALTER COLUMN id SET DEFAULT nextval('public.benchmark_bests_id_seq'::regclass);


--
-- Name: challenge_members id; Type: DEFAULT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.challenge_members ALTER COLUMN id SET DEFAULT nextval('public.challenge_members_id_seq'::regclass);


--
-- Name: credit_transactions id; Type: DEFAULT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.credit_transactions ALTER COLUMN id SET DEFAULT nextval('public.credit_transactions_id_seq'::regclass);


--
-- Name: idempotency_keys id; Type: DEFAULT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.idempotency_keys ALTER COLUMN id SET DEFAULT nextval('public.idempotency_keys_id_seq'::regclass);


--
-- Name: mail_recipients id; Type: DEFAULT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.mail_recipients ALTER COLUMN id SET DEFAULT nextval('public.mail_recipients_id_seq'::regclass);


--
-- Name: scorings id; Type: DEFAULT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.scorings ALTER COLUMN id SET DEFAULT nextval('public.scorings_id_seq'::regclass);


--
-- Name: simulation_history id; Type: DEFAULT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.simulation_history ALTER COLUMN id SET DEFAULT nextval('public.simulation_history_id_seq'::regclass);


--
-- Name: simulation_parts id; Type: DEFAULT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.simulation_parts ALTER COLUMN id SET DEFAULT nextval('public.simulation_parts_id_seq'::regclass);


--
-- Name: simulation_readers id; Type: DEFAULT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.simulation_readers ALTER COLUMN id SET DEFAULT nextval('public.simulation_readers_id_seq'::regclass);


--
-- Name: simulation_requests id; Type: DEFAULT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.simulation_requests ALTER COLUMN id SET DEFAULT nextval('public.simulation_requests_id_seq'::regclass);


--
-- Name: sso_accounts id; Type: DEFAULT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.sso_accounts ALTER COLUMN id SET DEFAULT nextval('public.sso_accounts_id_seq'::regclass);


--
-- Name: team_members id; Type: DEFAULT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.team_members ALTER COLUMN id SET DEFAULT nextval('public.team_members_id_seq'::regclass);


--
-- Name: teams id; Type: DEFAULT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.teams ALTER COLUMN id SET DEFAULT nextval('public.teams_id_seq'::regclass);


--
-- Name: tortoise_migrations id; Type: DEFAULT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.tortoise_migrations ALTER COLUMN id SET DEFAULT nextval('public.tortoise_migrations_id_seq'::regclass);


--
-- Name: truth_versions id; Type: DEFAULT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.truth_versions ALTER COLUMN id SET DEFAULT nextval('public.truth_versions_id_seq'::regclass);


--
-- Name: webhook_deliveries id; Type: DEFAULT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.webhook_deliveries ALTER COLUMN id SET DEFAULT nextval('public.webhook_deliveries_id_seq'::regclass);


--
-- Name: webhooks id; Type: DEFAULT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.webhooks ALTER COLUMN id SET DEFAULT nextval('public.webhooks_id_seq'::regclass);


--
-- Data for Name: accounts; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.accounts VALUES (1, 'alice', 'alice', 109.892, false, false, '2026-11-23 23:24:25.998864+00', '2026-11-23 23:24:26.000264+00', '2026-11-23 23:24:26.000264+00');
INSERT INTO public.accounts VALUES (2, 'bob', 'bob', 15.000, false, false, '2026-11-23 23:24:26.423559+00', '2026-11-23 23:24:26.424526+00', '2026-11-23 23:24:26.424526+00');
INSERT INTO public.accounts VALUES (3, 'mallory', 'mallory', 0.000, true, false, '2026-11-23 23:24:26.62911+00', NULL, NULL);


--
-- Data for Name: arrivals; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: audit_log; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.audit_log VALUES (1, '2026-11-23 23:24:26.504428+00', 'admin', 'new_challenge', 'spring-2026', '{"rewarded": "False", "team_size": "2"}', '5549ed7a57318b8ae6a86e8d50f3ef66');
INSERT INTO public.audit_log VALUES (2, '2026-11-23 23:24:26.53899+00', 'admin', 'add_members', 'spring-2026', '{"added": 1}', '5900aa0bedbc0769d43fd41373b54037');
INSERT INTO public.audit_log VALUES (3, '2026-11-23 23:24:26.613468+00', 'account:1', 'withdraw', '8c33c5f47c72494ea9755e24338fe3a9', '{"reason": "", "challenge": "spring-2026", "credits_paid": "0", "truth_version": "e1ad4baff1e5", "scorer_version": "2"}', '');
INSERT INTO public.audit_log VALUES (4, '2026-11-23 23:24:26.622072+00', 'admin', 'grant', 'bob', '{"note": "a talk", "delta": "5", "balance_after": "15.000"}', '676d1fa018c234404ac52db1a94c1383');
INSERT INTO public.audit_log VALUES (5, '2026-11-23 23:24:26.630244+00', 'admin', 'ban', 'mallory', '{}', 'f1f0376504f2b2eebdeb9cf0561a6b6e');
INSERT INTO public.audit_log VALUES (6, '2026-11-23 23:24:26.635492+00', 'admin', 'add_operator', 'operator anna', '{"scopes": "reports"}', 'a0b9e0c92b30a03a429c6e7cc51ea128');
INSERT INTO public.audit_log VALUES (7, '2026-11-23 23:24:26.657257+00', 'admin', 'rescore', 'spring-2026', '{"credits_paid": "0", "truth_version": "e1ad4baff1e5", "scorer_version": "2"}', 'aae6c091f61b9fa5a7afe0d56ebd674b');
INSERT INTO public.audit_log VALUES (8, '2026-11-23 23:24:26.679825+00', 'admin', 'freeze', 'submissions', '{}', 'eb143cbdb244893a434fbb3ecf37c4da');


--
-- Data for Name: benchmark_bests; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.benchmark_bests VALUES (1, 'tracking', 'e1ad4baff1e5', 'trackml_weighted_efficiency', 1, '063748450cb9480c9b368d5b327d101a');
INSERT INTO public.benchmark_bests VALUES (2, 'tracking', 'e1ad4baff1e5', 'physics_eff_pt1', 1, '063748450cb9480c9b368d5b327d101a');
INSERT INTO public.benchmark_bests VALUES (3, 'tracking', 'e1ad4baff1e5', 'double_majority_eff_pt1', 1, '063748450cb9480c9b368d5b327d101a');
INSERT INTO public.benchmark_bests VALUES (7, 'spring-2026', 'e1ad4baff1e5', 'trackml_weighted_efficiency', 1, 'a20fe1e1b98b43c891d684789d1041a8');
INSERT INTO public.benchmark_bests VALUES (8, 'spring-2026', 'e1ad4baff1e5', 'physics_eff_pt1', 1, 'a20fe1e1b98b43c891d684789d1041a8');
INSERT INTO public.benchmark_bests VALUES (9, 'spring-2026', 'e1ad4baff1e5', 'double_majority_eff_pt1', 1, 'a20fe1e1b98b43c891d684789d1041a8');


--
-- Data for Name: challenge_members; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.challenge_members VALUES (1, 'spring-2026', 'alice', 'alice', '2026-11-23 23:24:26.538196+00');


--
-- Data for Name: challenges; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.challenges VALUES ('anomaly', 'anomaly', '', true, NULL, NULL, '', NULL, false, NULL, 2, true, '', '[]', 'open', NULL, 0, NULL, NULL, 0, '2026-11-23 23:24:25.105314+00');
INSERT INTO public.challenges VALUES ('data_loading', 'data_loading', '', true, NULL, NULL, '', NULL, false, NULL, 2, true, '', '[]', 'open', NULL, 0, NULL, NULL, 0, '2026-11-23 23:24:25.105557+00');
INSERT INTO public.challenges VALUES ('jets', 'jets', '', true, NULL, NULL, '', NULL, false, NULL, 2, true, '', '[]', 'open', NULL, 0, NULL, NULL, 0, '2026-11-23 23:24:25.10557+00');
INSERT INTO public.challenges VALUES ('tracking_latency', 'tracking_latency', '', true, NULL, NULL, '', NULL, false, NULL, 2, true, '', '[]', 'open', NULL, 0, NULL, NULL, 0, '2026-11-23 23:24:25.105591+00');
INSERT INTO public.challenges VALUES ('tracking_small', 'tracking_small', '', true, NULL, NULL, '', NULL, false, NULL, 2, true, '', '[]', 'open', NULL, 0, NULL, NULL, 0, '2026-11-23 23:24:25.105602+00');
INSERT INTO public.challenges VALUES ('tracking', 'tracking', '', true, NULL, NULL, '', NULL, false, NULL, 2, true, '', '[]', 'open', NULL, 0, NULL, 'e1ad4baff1e5', 2, '2026-11-23 23:24:25.865074+00');
INSERT INTO public.challenges VALUES ('spring-2026', 'tracking', '', true, NULL, NULL, '', NULL, false, NULL, 2, false, '', '[]', 'open', NULL, 2, NULL, 'e1ad4baff1e5', 4, '2026-11-23 23:24:26.503551+00');


--
-- Data for Name: credit_transactions; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.credit_transactions VALUES (1, 10.000, 10.000, 'signup_grant', 'signup', '', '2026-11-23 23:24:26.002256+00', 1);
INSERT INTO public.credit_transactions VALUES (2, 50.000, 60.000, 'benchmark_best', '063748450cb9480c9b368d5b327d101a:trackml_weighted_efficiency', 'tracking: best trackml_weighted_efficiency', '2026-11-23 23:24:26.401701+00', 1);
INSERT INTO public.credit_transactions VALUES (3, 50.000, 110.000, 'benchmark_best', '063748450cb9480c9b368d5b327d101a:physics_eff_pt1', 'tracking: best physics_eff_pt1', '2026-11-23 23:24:26.405813+00', 1);
INSERT INTO public.credit_transactions VALUES (4, 10.000, 10.000, 'signup_grant', 'signup', '', '2026-11-23 23:24:26.425467+00', 2);
INSERT INTO public.credit_transactions VALUES (5, -0.108, 109.892, 'simulation_charge', 'f3c051dc64bc4af28adc2812f5ea9cec', '', '2026-11-23 23:24:26.454627+00', 1);
INSERT INTO public.credit_transactions VALUES (6, 5.000, 15.000, 'admin_grant', 'grant:676d1fa018c234404ac52db1a94c1383', 'a talk', '2026-11-23 23:24:26.621582+00', 2);


--
-- Data for Name: evaluations; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: followers; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.followers VALUES ('vm:926', '2026-11-23 23:24:25.137676+00', '0.4.0', '6939589d51c3e57c', true);


--
-- Data for Name: global_config; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.global_config VALUES ('platform', true, '2026-11-23 23:24:26.679207+00', 'admin', NULL, NULL, '2026-11-23 23:24:26.679268+00');


--
-- Data for Name: idempotency_keys; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: invitations; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.invitations VALUES ('1a041352a99519847179baee78f0d2f80fa81567331a5325938d1440d6617814', 'spring-2026', 1, 0, '2026-12-07 23:24:26.520655+00');


--
-- Data for Name: mail_recipients; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: operators; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.operators VALUES ('anna', '855a78f852f94a5ad174b2a72c00cb65c89b8db09b9f4338c50c60591e98a64f', 'reports', NULL, '2026-11-23 23:24:26.635092+00', NULL);


--
-- Data for Name: outbox_events; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: pending_sign_ins; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: rescorings; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.rescorings VALUES ('spring-2026', NULL, true, true, '', 'aae6c091f61b9fa5a7afe0d56ebd674b', '2026-11-23 23:24:26.639123+00', 0, 0, '2026-11-23 23:24:26.658198+00', '', '[]', '{}', '1514f06308224464a829fb21a6732a03', '2026-11-23 23:25:26.642241+00');


--
-- Data for Name: scorings; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.scorings VALUES (1, '063748450cb9480c9b368d5b327d101a', '2', 'e1ad4baff1e5', '{"fake_rate": 0.0, "duplicate_rate": 0.0, "physics_eff_pt1": 1.0, "double_majority_eff_pt1": 1.0, "trackml_weighted_efficiency": 1.0}', '{"fake_rate": 0.007312101910828025, "duplicate_rate": 0.006833333333333333, "physics_eff_pt1": 0.01688235294117647, "double_majority_eff_pt1": 0.01979310344827586, "trackml_weighted_efficiency": 0.0}', '{"fake_rate": [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], "duplicate_rate": [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], "physics_eff_pt1": [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], "double_majority_eff_pt1": [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], "trackml_weighted_efficiency": [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]}', '\x0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f', '[]', '[]', '2026-11-23 23:24:26.388881+00', '2026-11-23 23:24:26.388881+00');
INSERT INTO public.scorings VALUES (2, 'f4fabd58c4a3420da64c8bc61f757ebb', '2', 'e1ad4baff1e5', '{"fake_rate": 0.0, "duplicate_rate": 0.0, "physics_eff_pt1": 0.6029411764705882, "double_majority_eff_pt1": 0.6379310344827587, "trackml_weighted_efficiency": 0.4836791787993124}', '{"fake_rate": 0.013195402298850573, "duplicate_rate": 0.006833333333333333, "physics_eff_pt1": 0.9139524049216016, "double_majority_eff_pt1": 0.9234456373622201, "trackml_weighted_efficiency": 0.869235983126681}', '{"fake_rate": [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], "duplicate_rate": [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], "physics_eff_pt1": [-0.8402533689681638, 1.7230087128330713, -0.8402533689681638, 0.705242886235522, -0.8402533689681638, 0.705242886235522, 1.7230087128330713, -0.8402533689681638, -0.8402533689681638, 1.7230087128330713, 1.7230087128330713, 1.7230087128330713, 0.705242886235522, -0.8402533689681638, 1.7230087128330713, 1.7230087128330713, -0.8402533689681638, 0.705242886235522, -0.8402533689681638, -0.8402533689681638, -0.8402533689681638, 0.705242886235522, 0.705242886235522, -0.8402533689681638, 0.705242886235522, 0.705242886235522, -0.8402533689681638, 0.705242886235522, 0.705242886235522, -0.8402533689681638, 0.705242886235522, 1.7230087128330713, 0.705242886235522, 0.705242886235522, 0.705242886235522, -0.8402533689681638, -0.8402533689681638, -0.8402533689681638, 1.7230087128330713, -0.8402533689681638, 0.705242886235522, -0.8402533689681638, 0.705242886235522, 0.705242886235522, 0.705242886235522, 0.705242886235522, 0.705242886235522, 0.705242886235522, 0.705242886235522, 0.705242886235522, 1.7230087128330713, 0.705242886235522, 0.705242886235522, 0.705242886235522, 1.7230087128330713, 0.705242886235522, 0.705242886235522, 1.7230087128330713, 0.705242886235522, 1.7230087128330713, -0.8402533689681638, 1.7230087128330713, 1.7230087128330713, -0.8402533689681638, -0.8402533689681638, -0.8402533689681638, 1.7230087128330713, 0.705242886235522, 1.7230087128330713, 0.705242886235522, 0.705242886235522, 0.705242886235522, 0.705242886235522, 0.705242886235522, 0.705242886235522, 1.7230087128330713, 1.7230087128330713, 0.705242886235522, -0.8402533689681638, -0.8402533689681638, 1.7230087128330713, 0.705242886235522, -0.8402533689681638, 0.705242886235522, 0.705242886235522, 1.7230087128330713, 1.7230087128330713, 0.705242886235522, 1.7230087128330713, 1.7230087128330713, 0.705242886235522, 0.705242886235522, 0.705242886235522, -0.8402533689681638, 0.705242886235522, 0.705242886235522, 0.705242886235522, 1.7230087128330713, 0.705242886235522, -0.8402533689681638, 0.705242886235522, 0.705242886235522, 0.705242886235522, 1.7230087128330713, -0.8402533689681638, 1.7230087128330713, 1.7230087128330713, 0.705242886235522, 1.7230087128330713, 0.705242886235522, 0.705242886235522, 0.705242886235522, 1.7230087128330713, 0.705242886235522, 1.7230087128330713, 0.705242886235522, -0.8402533689681638, 0.705242886235522, -0.8402533689681638, 0.705242886235522, 1.7230087128330713, 0.705242886235522, 0.705242886235522, -0.8402533689681638, -0.8402533689681638, 1.7230087128330713, 1.7230087128330713, 0.705242886235522, -0.8402533689681638, 0.705242886235522, 0.705242886235522, 1.7230087128330713, 1.7230087128330713, -0.8402533689681638, 0.705242886235522, 1.7230087128330713, -0.8402533689681638, 0.705242886235522, 0.705242886235522, -0.8402533689681638, 0.705242886235522, 0.705242886235522, 0.705242886235522, 0.705242886235522, -0.8402533689681638, 0.705242886235522, 1.7230087128330713, -0.8402533689681638, 0.705242886235522, 1.7230087128330713, -0.8402533689681638, 0.705242886235522, 0.705242886235522, -0.8402533689681638, -0.8402533689681638, 0.705242886235522, 0.705242886235522, -0.8402533689681638, 1.7230087128330713, -0.8402533689681638, -0.8402533689681638, 0.705242886235522, -0.8402533689681638, -0.8402533689681638, 0.705242886235522, 0.705242886235522, -0.8402533689681638, 0.705242886235522, 0.705242886235522, 1.7230087128330713, 0.705242886235522, 0.705242886235522, 1.7230087128330713, 0.705242886235522, -0.8402533689681638, 0.705242886235522, 1.7230087128330713, 0.705242886235522, 0.705242886235522, 0.705242886235522, 0.705242886235522, -0.8402533689681638, 0.705242886235522, 1.7230087128330713, 1.7230087128330713, 0.705242886235522, 0.705242886235522, 0.705242886235522, 0.705242886235522, 0.705242886235522, 0.705242886235522, 0.705242886235522, 0.705242886235522, -0.8402533689681638, 0.705242886235522, 0.705242886235522, 0.705242886235522, -0.8402533689681638, -0.8402533689681638, 1.7230087128330713], "double_majority_eff_pt1": [-0.8681495112899618, 1.6951125705112733, -0.8681495112899618, 0.7670349202039296, -0.8681495112899618, 0.7670349202039296, 1.6951125705112733, -0.8681495112899618, -0.8681495112899618, 1.6951125705112733, 1.6951125705112733, 1.6951125705112733, 0.7670349202039296, -0.8681495112899618, 1.6951125705112733, 1.6951125705112733, -0.8681495112899618, 0.7670349202039296, -0.8681495112899618, -0.8681495112899618, -0.8681495112899618, 0.7670349202039296, 0.7670349202039296, -0.8681495112899618, 0.7670349202039296, 0.7670349202039296, -0.8681495112899618, 0.7670349202039296, 0.7670349202039296, -0.8681495112899618, 0.7670349202039296, 1.6951125705112733, 0.7670349202039296, 0.7670349202039296, 0.7670349202039296, -0.8681495112899618, -0.8681495112899618, -0.8681495112899618, 1.6951125705112733, -0.8681495112899618, 0.7670349202039296, -0.8681495112899618, 0.7670349202039296, 0.7670349202039296, 0.7670349202039296, 0.7670349202039296, 0.7670349202039296, 0.7670349202039296, 0.7670349202039296, 0.7670349202039296, 1.6951125705112733, 0.7670349202039296, 0.7670349202039296, 0.7670349202039296, 1.6951125705112733, 0.7670349202039296, 0.7670349202039296, 1.6951125705112733, 0.7670349202039296, 1.6951125705112733, -0.8681495112899618, 1.6951125705112733, 1.6951125705112733, -0.8681495112899618, -0.8681495112899618, -0.8681495112899618, 1.6951125705112733, 0.7670349202039296, 1.6951125705112733, 0.7670349202039296, 0.7670349202039296, 0.7670349202039296, 0.7670349202039296, 0.7670349202039296, 0.7670349202039296, 1.6951125705112733, 1.6951125705112733, 0.7670349202039296, -0.8681495112899618, -0.8681495112899618, 1.6951125705112733, 0.7670349202039296, -0.8681495112899618, 0.7670349202039296, 0.7670349202039296, 1.6951125705112733, 1.6951125705112733, 0.7670349202039296, 1.6951125705112733, 1.6951125705112733, 0.7670349202039296, 0.7670349202039296, 0.7670349202039296, -0.8681495112899618, 0.7670349202039296, 0.7670349202039296, 0.7670349202039296, 1.6951125705112733, 0.7670349202039296, -0.8681495112899618, 0.7670349202039296, 0.7670349202039296, 0.7670349202039296, 1.6951125705112733, -0.8681495112899618, 1.6951125705112733, 1.6951125705112733, 0.7670349202039296, 1.6951125705112733, 0.7670349202039296, 0.7670349202039296, 0.7670349202039296, 1.6951125705112733, 0.7670349202039296, 1.6951125705112733, 0.7670349202039296, -0.8681495112899618, 0.7670349202039296, -0.8681495112899618, 0.7670349202039296, 1.6951125705112733, 0.7670349202039296, 0.7670349202039296, -0.8681495112899618, -0.8681495112899618, 1.6951125705112733, 1.6951125705112733, 0.7670349202039296, -0.8681495112899618, 0.7670349202039296, 0.7670349202039296, 1.6951125705112733, 1.6951125705112733, -0.8681495112899618, 0.7670349202039296, 1.6951125705112733, -0.8681495112899618, 0.7670349202039296, 0.7670349202039296, -0.8681495112899618, 0.7670349202039296, 0.7670349202039296, 0.7670349202039296, 0.7670349202039296, -0.8681495112899618, 0.7670349202039296, 1.6951125705112733, -0.8681495112899618, 0.7670349202039296, 1.6951125705112733, -0.8681495112899618, 0.7670349202039296, 0.7670349202039296, -0.8681495112899618, -0.8681495112899618, 0.7670349202039296, 0.7670349202039296, -0.8681495112899618, 1.6951125705112733, -0.8681495112899618, -0.8681495112899618, 0.7670349202039296, -0.8681495112899618, -0.8681495112899618, 0.7670349202039296, 0.7670349202039296, -0.8681495112899618, 0.7670349202039296, 0.7670349202039296, 1.6951125705112733, 0.7670349202039296, 0.7670349202039296, 1.6951125705112733, 0.7670349202039296, -0.8681495112899618, 0.7670349202039296, 1.6951125705112733, 0.7670349202039296, 0.7670349202039296, 0.7670349202039296, 0.7670349202039296, -0.8681495112899618, 0.7670349202039296, 1.6951125705112733, 1.6951125705112733, 0.7670349202039296, 0.7670349202039296, 0.7670349202039296, 0.7670349202039296, 0.7670349202039296, 0.7670349202039296, 0.7670349202039296, 0.7670349202039296, -0.8681495112899618, 0.7670349202039296, 0.7670349202039296, 0.7670349202039296, -0.8681495112899618, -0.8681495112899618, 1.6951125705112733], "trackml_weighted_efficiency": [-0.7334338000429942, 1.7461591951396556, -0.7334338000429942, 0.5063626987300431, -0.7334338000429942, 0.5063626987300431, 1.7461591951396556, -0.7334338000429942, -0.7334338000429942, 1.7461591951396556, 1.7461591951396556, 1.7461591951396556, 0.5063626987300431, -0.7334338000429942, 1.7461591951396556, 1.7461591951396556, -0.7334338000429942, 0.5063626987300431, -0.7334338000429942, -0.7334338000429942, -0.7334338000429942, 0.5063626987300431, 0.5063626987300431, -0.7334338000429942, 0.5063626987300431, 0.5063626987300431, -0.7334338000429942, 0.5063626987300431, 0.5063626987300431, -0.7334338000429942, 0.5063626987300431, 1.7461591951396556, 0.5063626987300431, 0.5063626987300431, 0.5063626987300431, -0.7334338000429942, -0.7334338000429942, -0.7334338000429942, 1.7461591951396556, -0.7334338000429942, 0.5063626987300431, -0.7334338000429942, 0.5063626987300431, 0.5063626987300431, 0.5063626987300431, 0.5063626987300431, 0.5063626987300431, 0.5063626987300431, 0.5063626987300431, 0.5063626987300431, 1.7461591951396556, 0.5063626987300431, 0.5063626987300431, 0.5063626987300431, 1.7461591951396556, 0.5063626987300431, 0.5063626987300431, 1.7461591951396556, 0.5063626987300431, 1.7461591951396556, -0.7334338000429942, 1.7461591951396556, 1.7461591951396556, -0.7334338000429942, -0.7334338000429942, -0.7334338000429942, 1.7461591951396556, 0.5063626987300431, 1.7461591951396556, 0.5063626987300431, 0.5063626987300431, 0.5063626987300431, 0.5063626987300431, 0.5063626987300431, 0.5063626987300431, 1.7461591951396556, 1.7461591951396556, 0.5063626987300431, -0.7334338000429942, -0.7334338000429942, 1.7461591951396556, 0.5063626987300431, -0.7334338000429942, 0.5063626987300431, 0.5063626987300431, 1.7461591951396556, 1.7461591951396556, 0.5063626987300431, 1.7461591951396556, 1.7461591951396556, 0.5063626987300431, 0.5063626987300431, 0.5063626987300431, -0.7334338000429942, 0.5063626987300431, 0.5063626987300431, 0.5063626987300431, 1.7461591951396556, 0.5063626987300431, -0.7334338000429942, 0.5063626987300431, 0.5063626987300431, 0.5063626987300431, 1.7461591951396556, -0.7334338000429942, 1.7461591951396556, 1.7461591951396556, 0.5063626987300431, 1.7461591951396556, 0.5063626987300431, 0.5063626987300431, 0.5063626987300431, 1.7461591951396556, 0.5063626987300431, 1.7461591951396556, 0.5063626987300431, -0.7334338000429942, 0.5063626987300431, -0.7334338000429942, 0.5063626987300431, 1.7461591951396556, 0.5063626987300431, 0.5063626987300431, -0.7334338000429942, -0.7334338000429942, 1.7461591951396556, 1.7461591951396556, 0.5063626987300431, -0.7334338000429942, 0.5063626987300431, 0.5063626987300431, 1.7461591951396556, 1.7461591951396556, -0.7334338000429942, 0.5063626987300431, 1.7461591951396556, -0.7334338000429942, 0.5063626987300431, 0.5063626987300431, -0.7334338000429942, 0.5063626987300431, 0.5063626987300431, 0.5063626987300431, 0.5063626987300431, -0.7334338000429942, 0.5063626987300431, 1.7461591951396556, -0.7334338000429942, 0.5063626987300431, 1.7461591951396556, -0.7334338000429942, 0.5063626987300431, 0.5063626987300431, -0.7334338000429942, -0.7334338000429942, 0.5063626987300431, 0.5063626987300431, -0.7334338000429942, 1.7461591951396556, -0.7334338000429942, -0.7334338000429942, 0.5063626987300431, -0.7334338000429942, -0.7334338000429942, 0.5063626987300431, 0.5063626987300431, -0.7334338000429942, 0.5063626987300431, 0.5063626987300431, 1.7461591951396556, 0.5063626987300431, 0.5063626987300431, 1.7461591951396556, 0.5063626987300431, -0.7334338000429942, 0.5063626987300431, 1.7461591951396556, 0.5063626987300431, 0.5063626987300431, 0.5063626987300431, 0.5063626987300431, -0.7334338000429942, 0.5063626987300431, 1.7461591951396556, 1.7461591951396556, 0.5063626987300431, 0.5063626987300431, 0.5063626987300431, 0.5063626987300431, 0.5063626987300431, 0.5063626987300431, 0.5063626987300431, 0.5063626987300431, -0.7334338000429942, 0.5063626987300431, 0.5063626987300431, 0.5063626987300431, -0.7334338000429942, -0.7334338000429942, 1.7461591951396556]}', '\x51c23bbf2582df3f51c23bbffca0013f51c23bbffca0013f2582df3f51c23bbf51c23bbf2582df3f2582df3f2582df3ffca0013f51c23bbf2582df3f2582df3f51c23bbffca0013f51c23bbf51c23bbf51c23bbffca0013ffca0013f51c23bbffca0013ffca0013f51c23bbffca0013ffca0013f51c23bbffca0013f2582df3ffca0013ffca0013ffca0013f51c23bbf51c23bbf51c23bbf2582df3f51c23bbffca0013f51c23bbffca0013ffca0013ffca0013ffca0013ffca0013ffca0013ffca0013ffca0013f2582df3ffca0013ffca0013ffca0013f2582df3ffca0013ffca0013f2582df3ffca0013f2582df3f51c23bbf2582df3f2582df3f51c23bbf51c23bbf51c23bbf2582df3ffca0013f2582df3ffca0013ffca0013ffca0013ffca0013ffca0013ffca0013f2582df3f2582df3ffca0013f51c23bbf51c23bbf2582df3ffca0013f51c23bbffca0013ffca0013f2582df3f2582df3ffca0013f2582df3f2582df3ffca0013ffca0013ffca0013f51c23bbffca0013ffca0013ffca0013f2582df3ffca0013f51c23bbffca0013ffca0013ffca0013f2582df3f51c23bbf2582df3f2582df3ffca0013f2582df3ffca0013ffca0013ffca0013f2582df3ffca0013f2582df3ffca0013f51c23bbffca0013f51c23bbffca0013f2582df3ffca0013ffca0013f51c23bbf51c23bbf2582df3f2582df3ffca0013f51c23bbffca0013ffca0013f2582df3f2582df3f51c23bbffca0013f2582df3f51c23bbffca0013ffca0013f51c23bbffca0013ffca0013ffca0013ffca0013f51c23bbffca0013f2582df3f51c23bbffca0013f2582df3f51c23bbffca0013ffca0013f51c23bbf51c23bbffca0013ffca0013f51c23bbf2582df3f51c23bbf51c23bbffca0013f51c23bbf51c23bbffca0013ffca0013f51c23bbffca0013ffca0013f2582df3ffca0013ffca0013f2582df3ffca0013f51c23bbffca0013f2582df3ffca0013ffca0013ffca0013ffca0013f51c23bbffca0013f2582df3f2582df3ffca0013ffca0013ffca0013ffca0013ffca0013ffca0013ffca0013ffca0013f51c23bbffca0013ffca0013ffca0013f51c23bbf51c23bbf2582df3f', '[]', '["903 of 1,903 hits have no prediction"]', '2026-11-23 23:24:26.442971+00', '2026-11-23 23:24:26.442971+00');
INSERT INTO public.scorings VALUES (3, 'a20fe1e1b98b43c891d684789d1041a8', '2', 'e1ad4baff1e5', '{"fake_rate": 0.0, "duplicate_rate": 0.0, "physics_eff_pt1": 1.0, "double_majority_eff_pt1": 1.0, "trackml_weighted_efficiency": 1.0}', '{"fake_rate": 0.007312101910828025, "duplicate_rate": 0.006833333333333333, "physics_eff_pt1": 0.01688235294117647, "double_majority_eff_pt1": 0.01979310344827586, "trackml_weighted_efficiency": 0.0}', '{"fake_rate": [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], "duplicate_rate": [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], "physics_eff_pt1": [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], "double_majority_eff_pt1": [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], "trackml_weighted_efficiency": [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]}', '\x0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f', '[]', '[]', '2026-11-23 23:24:26.562407+00', '2026-11-23 23:24:26.562407+00');
INSERT INTO public.scorings VALUES (4, '8c33c5f47c72494ea9755e24338fe3a9', '2', 'e1ad4baff1e5', '{"fake_rate": 0.0, "duplicate_rate": 0.0, "physics_eff_pt1": 0.5882352941176471, "double_majority_eff_pt1": 0.08620689655172414, "trackml_weighted_efficiency": 0.11963600073980986}', '{"fake_rate": 0.013666666666666666, "duplicate_rate": 0.006833333333333333, "physics_eff_pt1": 0.891660882850343, "double_majority_eff_pt1": 0.1247899509948946, "trackml_weighted_efficiency": 0.21500184684104656}', '{"fake_rate": [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], "duplicate_rate": [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], "physics_eff_pt1": [-0.8197593843591842, 1.680984110081045, -0.8197593843591842, 0.6880418402297775, -0.8197593843591842, 0.6880418402297775, 1.680984110081045, -0.8197593843591842, -0.8197593843591842, 1.680984110081045, 1.680984110081045, 1.680984110081045, 0.6880418402297775, -0.8197593843591842, 1.680984110081045, 1.680984110081045, -0.8197593843591842, 0.6880418402297775, -0.8197593843591842, -0.8197593843591842, -0.8197593843591842, 0.6880418402297775, 0.6880418402297775, -0.8197593843591842, 0.6880418402297775, 0.6880418402297775, -0.8197593843591842, 0.6880418402297775, 0.6880418402297775, -0.8197593843591842, 0.6880418402297775, 1.680984110081045, 0.6880418402297775, 0.6880418402297775, 0.6880418402297775, -0.8197593843591842, -0.8197593843591842, -0.8197593843591842, 1.680984110081045, -0.8197593843591842, 0.6880418402297775, -0.8197593843591842, 0.6880418402297775, 0.6880418402297775, 0.6880418402297775, 0.6880418402297775, 0.6880418402297775, 0.6880418402297775, 0.6880418402297775, 0.6880418402297775, 1.680984110081045, 0.6880418402297775, 0.6880418402297775, 0.6880418402297775, 1.680984110081045, 0.6880418402297775, 0.6880418402297775, 1.680984110081045, 0.6880418402297775, 1.680984110081045, -0.8197593843591842, 1.680984110081045, 1.680984110081045, -0.8197593843591842, -0.8197593843591842, -0.8197593843591842, 1.680984110081045, 0.6880418402297775, 1.680984110081045, 0.6880418402297775, 0.6880418402297775, 0.6880418402297775, 0.6880418402297775, 0.6880418402297775, 0.6880418402297775, 1.680984110081045, 1.680984110081045, 0.6880418402297775, -0.8197593843591842, -0.8197593843591842, 1.680984110081045, 0.6880418402297775, -0.8197593843591842, 0.6880418402297775, 0.6880418402297775, 1.680984110081045, 1.680984110081045, 0.6880418402297775, 1.680984110081045, 1.680984110081045, 0.6880418402297775, 0.6880418402297775, 0.6880418402297775, -0.8197593843591842, 0.6880418402297775, 0.6880418402297775, 0.6880418402297775, 1.680984110081045, 0.6880418402297775, -0.8197593843591842, 0.6880418402297775, 0.6880418402297775, 0.6880418402297775, 1.680984110081045, -0.8197593843591842, 1.680984110081045, 1.680984110081045, 0.6880418402297775, 1.680984110081045, 0.6880418402297775, 0.6880418402297775, 0.6880418402297775, 1.680984110081045, 0.6880418402297775, 1.680984110081045, 0.6880418402297775, -0.8197593843591842, 0.6880418402297775, -0.8197593843591842, 0.6880418402297775, 1.680984110081045, 0.6880418402297775, 0.6880418402297775, -0.8197593843591842, -0.8197593843591842, 1.680984110081045, 1.680984110081045, 0.6880418402297775, -0.8197593843591842, 0.6880418402297775, 0.6880418402297775, 1.680984110081045, 1.680984110081045, -0.8197593843591842, 0.6880418402297775, 1.680984110081045, -0.8197593843591842, 0.6880418402297775, 0.6880418402297775, -0.8197593843591842, 0.6880418402297775, 0.6880418402297775, 0.6880418402297775, 0.6880418402297775, -0.8197593843591842, 0.6880418402297775, 1.680984110081045, -0.8197593843591842, 0.6880418402297775, 1.680984110081045, -0.8197593843591842, 0.6880418402297775, 0.6880418402297775, -0.8197593843591842, -0.8197593843591842, 0.6880418402297775, 0.6880418402297775, -0.8197593843591842, 1.680984110081045, -0.8197593843591842, -0.8197593843591842, 0.6880418402297775, -0.8197593843591842, -0.8197593843591842, 0.6880418402297775, 0.6880418402297775, -0.8197593843591842, 0.6880418402297775, 0.6880418402297775, 1.680984110081045, 0.6880418402297775, 0.6880418402297775, 1.680984110081045, 0.6880418402297775, -0.8197593843591842, 0.6880418402297775, 1.680984110081045, 0.6880418402297775, 0.6880418402297775, 0.6880418402297775, 0.6880418402297775, -0.8197593843591842, 0.6880418402297775, 1.680984110081045, 1.680984110081045, 0.6880418402297775, 0.6880418402297775, 0.6880418402297775, 0.6880418402297775, 0.6880418402297775, 0.6880418402297775, 0.6880418402297775, 0.6880418402297775, -0.8197593843591842, 0.6880418402297775, 0.6880418402297775, 0.6880418402297775, -0.8197593843591842, -0.8197593843591842, 1.680984110081045], "double_majority_eff_pt1": [-0.11731750152567051, 0.22906926628530722, -0.11731750152567051, 0.10365336759512563, -0.11731750152567051, 0.10365336759512563, 0.22906926628530722, -0.11731750152567051, -0.11731750152567051, 0.22906926628530722, 0.22906926628530722, 0.22906926628530722, 0.10365336759512563, -0.11731750152567051, 0.22906926628530722, 0.22906926628530722, -0.11731750152567051, 0.10365336759512563, -0.11731750152567051, -0.11731750152567051, -0.11731750152567051, 0.10365336759512563, 0.10365336759512563, -0.11731750152567051, 0.10365336759512563, 0.10365336759512563, -0.11731750152567051, 0.10365336759512563, 0.10365336759512563, -0.11731750152567051, 0.10365336759512563, 0.22906926628530722, 0.10365336759512563, 0.10365336759512563, 0.10365336759512563, -0.11731750152567051, -0.11731750152567051, -0.11731750152567051, 0.22906926628530722, -0.11731750152567051, 0.10365336759512563, -0.11731750152567051, 0.10365336759512563, 0.10365336759512563, 0.10365336759512563, 0.10365336759512563, 0.10365336759512563, 0.10365336759512563, 0.10365336759512563, 0.10365336759512563, 0.22906926628530722, 0.10365336759512563, 0.10365336759512563, 0.10365336759512563, 0.22906926628530722, 0.10365336759512563, 0.10365336759512563, 0.22906926628530722, 0.10365336759512563, 0.22906926628530722, -0.11731750152567051, 0.22906926628530722, 0.22906926628530722, -0.11731750152567051, -0.11731750152567051, -0.11731750152567051, 0.22906926628530722, 0.10365336759512563, 0.22906926628530722, 0.10365336759512563, 0.10365336759512563, 0.10365336759512563, 0.10365336759512563, 0.10365336759512563, 0.10365336759512563, 0.22906926628530722, 0.22906926628530722, 0.10365336759512563, -0.11731750152567051, -0.11731750152567051, 0.22906926628530722, 0.10365336759512563, -0.11731750152567051, 0.10365336759512563, 0.10365336759512563, 0.22906926628530722, 0.22906926628530722, 0.10365336759512563, 0.22906926628530722, 0.22906926628530722, 0.10365336759512563, 0.10365336759512563, 0.10365336759512563, -0.11731750152567051, 0.10365336759512563, 0.10365336759512563, 0.10365336759512563, 0.22906926628530722, 0.10365336759512563, -0.11731750152567051, 0.10365336759512563, 0.10365336759512563, 0.10365336759512563, 0.22906926628530722, -0.11731750152567051, 0.22906926628530722, 0.22906926628530722, 0.10365336759512563, 0.22906926628530722, 0.10365336759512563, 0.10365336759512563, 0.10365336759512563, 0.22906926628530722, 0.10365336759512563, 0.22906926628530722, 0.10365336759512563, -0.11731750152567051, 0.10365336759512563, -0.11731750152567051, 0.10365336759512563, 0.22906926628530722, 0.10365336759512563, 0.10365336759512563, -0.11731750152567051, -0.11731750152567051, 0.22906926628530722, 0.22906926628530722, 0.10365336759512563, -0.11731750152567051, 0.10365336759512563, 0.10365336759512563, 0.22906926628530722, 0.22906926628530722, -0.11731750152567051, 0.10365336759512563, 0.22906926628530722, -0.11731750152567051, 0.10365336759512563, 0.10365336759512563, -0.11731750152567051, 0.10365336759512563, 0.10365336759512563, 0.10365336759512563, 0.10365336759512563, -0.11731750152567051, 0.10365336759512563, 0.22906926628530722, -0.11731750152567051, 0.10365336759512563, 0.22906926628530722, -0.11731750152567051, 0.10365336759512563, 0.10365336759512563, -0.11731750152567051, -0.11731750152567051, 0.10365336759512563, 0.10365336759512563, -0.11731750152567051, 0.22906926628530722, -0.11731750152567051, -0.11731750152567051, 0.10365336759512563, -0.11731750152567051, -0.11731750152567051, 0.10365336759512563, 0.10365336759512563, -0.11731750152567051, 0.10365336759512563, 0.10365336759512563, 0.22906926628530722, 0.10365336759512563, 0.10365336759512563, 0.22906926628530722, 0.10365336759512563, -0.11731750152567051, 0.10365336759512563, 0.22906926628530722, 0.10365336759512563, 0.10365336759512563, 0.10365336759512563, 0.10365336759512563, -0.11731750152567051, 0.10365336759512563, 0.22906926628530722, 0.22906926628530722, 0.10365336759512563, 0.10365336759512563, 0.10365336759512563, 0.10365336759512563, 0.10365336759512563, 0.10365336759512563, 0.10365336759512563, 0.10365336759512563, -0.11731750152567051, 0.10365336759512563, 0.10365336759512563, 0.10365336759512563, -0.11731750152567051, -0.11731750152567051, 0.22906926628530722], "trackml_weighted_efficiency": [-0.1814117507856427, 0.43190509725917225, -0.1814117507856427, 0.12524667352905638, -0.1814117507856427, 0.12524667352905638, 0.43190509725917225, -0.1814117507856427, -0.1814117507856427, 0.43190509725917225, 0.43190509725917225, 0.43190509725917225, 0.12524667352905638, -0.1814117507856427, 0.43190509725917225, 0.43190509725917225, -0.1814117507856427, 0.12524667352905638, -0.1814117507856427, -0.1814117507856427, -0.1814117507856427, 0.12524667352905638, 0.12524667352905638, -0.1814117507856427, 0.12524667352905638, 0.12524667352905638, -0.1814117507856427, 0.12524667352905638, 0.12524667352905638, -0.1814117507856427, 0.12524667352905638, 0.43190509725917225, 0.12524667352905638, 0.12524667352905638, 0.12524667352905638, -0.1814117507856427, -0.1814117507856427, -0.1814117507856427, 0.43190509725917225, -0.1814117507856427, 0.12524667352905638, -0.1814117507856427, 0.12524667352905638, 0.12524667352905638, 0.12524667352905638, 0.12524667352905638, 0.12524667352905638, 0.12524667352905638, 0.12524667352905638, 0.12524667352905638, 0.43190509725917225, 0.12524667352905638, 0.12524667352905638, 0.12524667352905638, 0.43190509725917225, 0.12524667352905638, 0.12524667352905638, 0.43190509725917225, 0.12524667352905638, 0.43190509725917225, -0.1814117507856427, 0.43190509725917225, 0.43190509725917225, -0.1814117507856427, -0.1814117507856427, -0.1814117507856427, 0.43190509725917225, 0.12524667352905638, 0.43190509725917225, 0.12524667352905638, 0.12524667352905638, 0.12524667352905638, 0.12524667352905638, 0.12524667352905638, 0.12524667352905638, 0.43190509725917225, 0.43190509725917225, 0.12524667352905638, -0.1814117507856427, -0.1814117507856427, 0.43190509725917225, 0.12524667352905638, -0.1814117507856427, 0.12524667352905638, 0.12524667352905638, 0.43190509725917225, 0.43190509725917225, 0.12524667352905638, 0.43190509725917225, 0.43190509725917225, 0.12524667352905638, 0.12524667352905638, 0.12524667352905638, -0.1814117507856427, 0.12524667352905638, 0.12524667352905638, 0.12524667352905638, 0.43190509725917225, 0.12524667352905638, -0.1814117507856427, 0.12524667352905638, 0.12524667352905638, 0.12524667352905638, 0.43190509725917225, -0.1814117507856427, 0.43190509725917225, 0.43190509725917225, 0.12524667352905638, 0.43190509725917225, 0.12524667352905638, 0.12524667352905638, 0.12524667352905638, 0.43190509725917225, 0.12524667352905638, 0.43190509725917225, 0.12524667352905638, -0.1814117507856427, 0.12524667352905638, -0.1814117507856427, 0.12524667352905638, 0.43190509725917225, 0.12524667352905638, 0.12524667352905638, -0.1814117507856427, -0.1814117507856427, 0.43190509725917225, 0.43190509725917225, 0.12524667352905638, -0.1814117507856427, 0.12524667352905638, 0.12524667352905638, 0.43190509725917225, 0.43190509725917225, -0.1814117507856427, 0.12524667352905638, 0.43190509725917225, -0.1814117507856427, 0.12524667352905638, 0.12524667352905638, -0.1814117507856427, 0.12524667352905638, 0.12524667352905638, 0.12524667352905638, 0.12524667352905638, -0.1814117507856427, 0.12524667352905638, 0.43190509725917225, -0.1814117507856427, 0.12524667352905638, 0.43190509725917225, -0.1814117507856427, 0.12524667352905638, 0.12524667352905638, -0.1814117507856427, -0.1814117507856427, 0.12524667352905638, 0.12524667352905638, -0.1814117507856427, 0.43190509725917225, -0.1814117507856427, -0.1814117507856427, 0.12524667352905638, -0.1814117507856427, -0.1814117507856427, 0.12524667352905638, 0.12524667352905638, -0.1814117507856427, 0.12524667352905638, 0.12524667352905638, 0.43190509725917225, 0.12524667352905638, 0.12524667352905638, 0.43190509725917225, 0.12524667352905638, -0.1814117507856427, 0.12524667352905638, 0.43190509725917225, 0.12524667352905638, 0.12524667352905638, 0.12524667352905638, 0.12524667352905638, -0.1814117507856427, 0.12524667352905638, 0.43190509725917225, 0.43190509725917225, 0.12524667352905638, 0.12524667352905638, 0.12524667352905638, 0.12524667352905638, 0.12524667352905638, 0.12524667352905638, 0.12524667352905638, 0.12524667352905638, -0.1814117507856427, 0.12524667352905638, 0.12524667352905638, 0.12524667352905638, -0.1814117507856427, -0.1814117507856427, 0.43190509725917225]}', '\x01c439beaa22dd3e01c439beaa40003e01c439beaa40003eaa22dd3e01c439be01c439beaa22dd3eaa22dd3eaa22dd3eaa40003e01c439beaa22dd3eaa22dd3e01c439beaa40003e01c439be01c439be01c439beaa40003eaa40003e01c439beaa40003eaa40003e01c439beaa40003eaa40003e01c439beaa40003eaa22dd3eaa40003eaa40003eaa40003e01c439be01c439be01c439beaa22dd3e01c439beaa40003e01c439beaa40003eaa40003eaa40003eaa40003eaa40003eaa40003eaa40003eaa40003eaa22dd3eaa40003eaa40003eaa40003eaa22dd3eaa40003eaa40003eaa22dd3eaa40003eaa22dd3e01c439beaa22dd3eaa22dd3e01c439be01c439be01c439beaa22dd3eaa40003eaa22dd3eaa40003eaa40003eaa40003eaa40003eaa40003eaa40003eaa22dd3eaa22dd3eaa40003e01c439be01c439beaa22dd3eaa40003e01c439beaa40003eaa40003eaa22dd3eaa22dd3eaa40003eaa22dd3eaa22dd3eaa40003eaa40003eaa40003e01c439beaa40003eaa40003eaa40003eaa22dd3eaa40003e01c439beaa40003eaa40003eaa40003eaa22dd3e01c439beaa22dd3eaa22dd3eaa40003eaa22dd3eaa40003eaa40003eaa40003eaa22dd3eaa40003eaa22dd3eaa40003e01c439beaa40003e01c439beaa40003eaa22dd3eaa40003eaa40003e01c439be01c439beaa22dd3eaa22dd3eaa40003e01c439beaa40003eaa40003eaa22dd3eaa22dd3e01c439beaa40003eaa22dd3e01c439beaa40003eaa40003e01c439beaa40003eaa40003eaa40003eaa40003e01c439beaa40003eaa22dd3e01c439beaa40003eaa22dd3e01c439beaa40003eaa40003e01c439be01c439beaa40003eaa40003e01c439beaa22dd3e01c439be01c439beaa40003e01c439be01c439beaa40003eaa40003e01c439beaa40003eaa40003eaa22dd3eaa40003eaa40003eaa22dd3eaa40003e01c439beaa40003eaa22dd3eaa40003eaa40003eaa40003eaa40003e01c439beaa40003eaa22dd3eaa22dd3eaa40003eaa40003eaa40003eaa40003eaa40003eaa40003eaa40003eaa40003e01c439beaa40003eaa40003eaa40003e01c439be01c439beaa22dd3e', '[]', '["1,403 of 1,903 hits have no prediction"]', '2026-11-23 23:24:26.597294+00', '2026-11-23 23:24:26.597294+00');


--
-- Data for Name: sign_in_attempts; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: simulation_history; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.simulation_history VALUES (1, '2026-11-23 23:24:26.475238+00', 'running', NULL, 1);
INSERT INTO public.simulation_history VALUES (2, '2026-11-23 23:24:26.482703+00', 'completed', NULL, 1);


--
-- Data for Name: simulation_parts; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: simulation_readers; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: simulation_requests; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.simulation_requests VALUES (1, 'f3c051dc64bc4af28adc2812f5ea9cec', 1, 'alice', 'ttbar', 1, 0, '42', '', 'acts-4', '1e931dc906cbebcf23fce18a75d9980308b7b2fcca25919e99e2654934409bf6', false, NULL, 'completed', NULL, '2026-11-23 23:24:26.454327+00', '2026-11-23 23:24:26.475937+00', '2026-11-23 23:24:26.482563+00', '2026-11-23', '2026-11', 0.108, 0.000, 0.108, 0.108, NULL, 'mock', true, 'f3c051dc64bc4af28adc2812f5ea9cec', 390, 0, NULL, 'http://127.0.0.1:37301/hub/datasets/alice/ttbar-pu0-1ev-seed42-2026-11-23', NULL, '', NULL, NULL, NULL, 0, 0, 0, '', NULL);


--
-- Data for Name: sso_accounts; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: sso_tokens; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: submissions; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.submissions VALUES ('063748450cb9480c9b368d5b327d101a', 'tracking', 'tracking', 1, 'alice', '6efe9cc28104992b81d2c8e956af4176625ca840991f5c2878c88a888ef43bb5', 12642, 1903, '{"fake_rate": 0.0, "duplicate_rate": 0.0, "physics_eff_pt1": 1.0, "double_majority_eff_pt1": 1.0, "trackml_weighted_efficiency": 1.0}', '{"fake_rate": 0.007312101910828025, "duplicate_rate": 0.006833333333333333, "physics_eff_pt1": 0.01688235294117647, "double_majority_eff_pt1": 0.01979310344827586, "trackml_weighted_efficiency": 0.0}', 'account:1', NULL, 'ranked', NULL, NULL, 1, true, '[]', 100.000, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2', 'e1ad4baff1e5', '2026-11-23 23:24:26.388881+00', NULL, false);
INSERT INTO public.submissions VALUES ('f4fabd58c4a3420da64c8bc61f757ebb', 'tracking', 'tracking', 2, 'bob', 'e35c61ab9dfa07ddbe60f6563a7d838e8a8030584da8bb9ff25ebb8f98e54b9b', 7515, 1000, '{"fake_rate": 0.0, "duplicate_rate": 0.0, "physics_eff_pt1": 0.6029411764705882, "double_majority_eff_pt1": 0.6379310344827587, "trackml_weighted_efficiency": 0.4836791787993124}', '{"fake_rate": 0.013195402298850573, "duplicate_rate": 0.006833333333333333, "physics_eff_pt1": 0.9139524049216016, "double_majority_eff_pt1": 0.9234456373622201, "trackml_weighted_efficiency": 0.869235983126681}', 'account:2', NULL, 'ranked', NULL, NULL, 0.4836791787993124, true, '["903 of 1,903 hits have no prediction"]', 0.000, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2', 'e1ad4baff1e5', '2026-11-23 23:24:26.442971+00', NULL, false);
INSERT INTO public.submissions VALUES ('a20fe1e1b98b43c891d684789d1041a8', 'spring-2026', 'tracking', 2, 'bob', '6efe9cc28104992b81d2c8e956af4176625ca840991f5c2878c88a888ef43bb5', 12642, 1903, '{"fake_rate": 0.0, "duplicate_rate": 0.0, "physics_eff_pt1": 1.0, "double_majority_eff_pt1": 1.0, "trackml_weighted_efficiency": 1.0}', '{"fake_rate": 0.007312101910828025, "duplicate_rate": 0.006833333333333333, "physics_eff_pt1": 0.01688235294117647, "double_majority_eff_pt1": 0.01979310344827586, "trackml_weighted_efficiency": 0.0}', 'team:1', 'Überflieger', 'ranked', NULL, NULL, 1, true, '[]', 0.000, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2', 'e1ad4baff1e5', '2026-11-23 23:24:26.562407+00', NULL, false);
INSERT INTO public.submissions VALUES ('8c33c5f47c72494ea9755e24338fe3a9', 'spring-2026', 'tracking', 1, 'alice', 'b68e6332e709c7b9d509857b697fce125b15ffd7d8602ce5a940094338ed1e63', 4388, 500, '{"fake_rate": 0.0, "duplicate_rate": 0.0, "physics_eff_pt1": 0.5882352941176471, "double_majority_eff_pt1": 0.08620689655172414, "trackml_weighted_efficiency": 0.11963600073980986}', '{"fake_rate": 0.013666666666666666, "duplicate_rate": 0.006833333333333333, "physics_eff_pt1": 0.891660882850343, "double_majority_eff_pt1": 0.1247899509948946, "trackml_weighted_efficiency": 0.21500184684104656}', 'team:1', 'Überflieger', 'withdrawn', NULL, NULL, NULL, false, '["1,403 of 1,903 hits have no prediction"]', 0.000, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2', 'e1ad4baff1e5', '2026-11-23 23:24:26.597294+00', NULL, false);


--
-- Data for Name: team_members; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.team_members VALUES (1, 'spring-2026', 1, 1, 'alice');
INSERT INTO public.team_members VALUES (2, 'spring-2026', 1, 2, 'bob');


--
-- Data for Name: teams; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.teams VALUES (1, 'spring-2026', 'Überflieger', 'überflieger', 1, '2026-11-23 23:24:26.510705+00');


--
-- Data for Name: tortoise_migrations; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.tortoise_migrations VALUES (1, 'collidium', '0001_initial', '2026-11-23 23:24:24.829887+00');


--
-- Data for Name: truth_versions; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.truth_versions VALUES (1, 'tracking', 'e1ad4baff1e5', '{"data": {}, "form": "arrow-2", "task": "tracking", "notes": {"hit_order": "distance from the origin", "pt_factor": "TrackML", "hit_weights": "TrackML"}, "events": {"stop": 5, "start": 3}, "floors": {"fake_rate": 0.13432835820895522, "duplicate_rate": 0.1488095238095238, "physics_eff_pt1": 0.8235294117647058, "double_majority_eff_pt1": 0.1724137931034483, "trackml_weighted_efficiency": 0.14270648457638707}, "inputs": {"tracker_hits": {"bytes": 21317, "sha256": "2ac9fc147710506609cee7e395e1d8cdf1ec2e0f8e4c5269a0638228cfb07bf3", "columns": ["event_id", "hit_id", "x", "y", "z", "volume_id"]}}, "public": false, "tables": {"hits": {"rows": 1903, "bytes": 18898, "sha256": "b3eab78598f86eac0ec3293ae498ff3f3127c7b6744175028600862a296ee3a7"}, "particles": {"rows": 168, "bytes": 6434, "sha256": "7f04d177f47727c8d5de3c0e82f50d03b018efd8124d9506feba9b737757889a"}}, "dataset": "ttbar_pu0", "version": "e1ad4baff1e5", "revision": "local", "created_at": "2026-11-23T23:24:25Z", "scorer_version": "2"}', '2026-11-23 23:24:25.859084+00');


--
-- Data for Name: uploads; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: usage_totals; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.usage_totals VALUES ('day:2026-11-23:', 'day', '2026-11-23', '', 1, 108, 0, 0);
INSERT INTO public.usage_totals VALUES ('channel:2026-11:ttbar', 'channel', '2026-11', 'ttbar', 1, 108, 0, 0);
INSERT INTO public.usage_totals VALUES ('account:2026-11:alice', 'account', '2026-11', 'alice', 1, 108, 0, 0);
INSERT INTO public.usage_totals VALUES ('month:2026-11:', 'month', '2026-11', '', 1, 108, 1, 0);


--
-- Data for Name: web_sessions; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: webhook_deliveries; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: webhooks; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Name: accounts_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.accounts_id_seq', 3, true);


--
-- Name: audit_log_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.audit_log_id_seq', 8, true);


--
-- Name: benchmark_bests_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.benchmark_bests_id_seq', 9, true);


--
-- Name: challenge_members_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.challenge_members_id_seq', 1, true);


--
-- Name: credit_transactions_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.credit_transactions_id_seq', 6, true);


--
-- Name: idempotency_keys_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.idempotency_keys_id_seq', 1, false);


--
-- Name: mail_recipients_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.mail_recipients_id_seq', 1, false);


--
-- Name: scorings_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.scorings_id_seq', 4, true);


--
-- Name: simulation_history_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.simulation_history_id_seq', 2, true);


--
-- Name: simulation_parts_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.simulation_parts_id_seq', 1, false);


--
-- Name: simulation_readers_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.simulation_readers_id_seq', 1, false);


--
-- Name: simulation_requests_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.simulation_requests_id_seq', 1, true);


--
-- Name: sso_accounts_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.sso_accounts_id_seq', 1, false);


--
-- Name: team_members_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.team_members_id_seq', 2, true);


--
-- Name: teams_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.teams_id_seq', 1, true);


--
-- Name: tortoise_migrations_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.tortoise_migrations_id_seq', 1, true);


--
-- Name: truth_versions_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.truth_versions_id_seq', 1, true);


--
-- Name: webhook_deliveries_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.webhook_deliveries_id_seq', 1, false);


--
-- Name: webhooks_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.webhooks_id_seq', 1, false);


--
-- Name: accounts accounts_hub_username_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.accounts
    ADD CONSTRAINT accounts_hub_username_key UNIQUE (hub_username);


--
-- Name: accounts accounts_name_key_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.accounts
    ADD CONSTRAINT accounts_name_key_key UNIQUE (name_key);


--
-- Name: accounts accounts_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.accounts
    ADD CONSTRAINT accounts_pkey PRIMARY KEY (id);


--
-- Name: arrivals arrivals_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.arrivals
    ADD CONSTRAINT arrivals_pkey PRIMARY KEY (id);


--
-- Name: audit_log audit_log_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.audit_log
    ADD CONSTRAINT audit_log_pkey PRIMARY KEY (id);


--
-- Name: benchmark_bests benchmark_bests_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.benchmark_bests
    ADD CONSTRAINT benchmark_bests_pkey PRIMARY KEY (id);


--
-- Name: challenge_members challenge_members_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.challenge_members
    ADD CONSTRAINT challenge_members_pkey PRIMARY KEY (id);


--
-- Name: challenges challenges_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.challenges
    ADD CONSTRAINT challenges_pkey PRIMARY KEY (name);


--
-- Name: credit_transactions credit_transactions_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.credit_transactions
    ADD CONSTRAINT credit_transactions_pkey PRIMARY KEY (id);


--
-- Name: evaluations evaluations_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.evaluations
    ADD CONSTRAINT evaluations_pkey PRIMARY KEY (id);


--
-- Name: followers followers_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.followers
    ADD CONSTRAINT followers_pkey PRIMARY KEY (process);


--
-- Name: global_config global_config_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.global_config
    ADD CONSTRAINT global_config_pkey PRIMARY KEY (name);


--
-- Name: idempotency_keys idempotency_keys_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.idempotency_keys
    ADD CONSTRAINT idempotency_keys_pkey PRIMARY KEY (id);


--
-- Name: invitations invitations_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.invitations
    ADD CONSTRAINT invitations_pkey PRIMARY KEY (digest);


--
-- Name: mail_recipients mail_recipients_account_id_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.mail_recipients
    ADD CONSTRAINT mail_recipients_account_id_key UNIQUE (account_id);


--
-- Name: mail_recipients mail_recipients_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.mail_recipients
    ADD CONSTRAINT mail_recipients_pkey PRIMARY KEY (id);


--
-- Name: operators operators_digest_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.operators
    ADD CONSTRAINT operators_digest_key UNIQUE (digest);


--
-- Name: operators operators_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.operators
    ADD CONSTRAINT operators_pkey PRIMARY KEY (name);


--
-- Name: outbox_events outbox_events_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.outbox_events
    ADD CONSTRAINT outbox_events_pkey PRIMARY KEY (id);


--
-- Name: pending_sign_ins pending_sign_ins_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.pending_sign_ins
    ADD CONSTRAINT pending_sign_ins_pkey PRIMARY KEY (digest);


--
-- Name: rescorings rescorings_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.rescorings
    ADD CONSTRAINT rescorings_pkey PRIMARY KEY (challenge);


--
-- Name: scorings scorings_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.scorings
    ADD CONSTRAINT scorings_pkey PRIMARY KEY (id);


--
-- Name: sign_in_attempts sign_in_attempts_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.sign_in_attempts
    ADD CONSTRAINT sign_in_attempts_pkey PRIMARY KEY (key);


--
-- Name: simulation_history simulation_history_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.simulation_history
    ADD CONSTRAINT simulation_history_pkey PRIMARY KEY (id);


--
-- Name: simulation_parts simulation_parts_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.simulation_parts
    ADD CONSTRAINT simulation_parts_pkey PRIMARY KEY (id);


--
-- Name: simulation_readers simulation_readers_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.simulation_readers
    ADD CONSTRAINT simulation_readers_pkey PRIMARY KEY (id);


--
-- Name: simulation_requests simulation_requests_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.simulation_requests
    ADD CONSTRAINT simulation_requests_pkey PRIMARY KEY (id);


--
-- Name: simulation_requests simulation_requests_request_id_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.simulation_requests
    ADD CONSTRAINT simulation_requests_request_id_key UNIQUE (request_id);


--
-- Name: sso_accounts sso_accounts_hub_username_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.sso_accounts
    ADD CONSTRAINT sso_accounts_hub_username_key UNIQUE (hub_username);


--
-- Name: sso_accounts sso_accounts_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.sso_accounts
    ADD CONSTRAINT sso_accounts_pkey PRIMARY KEY (id);


--
-- Name: sso_tokens sso_tokens_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.sso_tokens
    ADD CONSTRAINT sso_tokens_pkey PRIMARY KEY (digest);


--
-- Name: submissions submissions_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.submissions
    ADD CONSTRAINT submissions_pkey PRIMARY KEY (id);


--
-- Name: team_members team_members_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.team_members
    ADD CONSTRAINT team_members_pkey PRIMARY KEY (id);


--
-- Name: teams teams_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.teams
    ADD CONSTRAINT teams_pkey PRIMARY KEY (id);


--
-- Name: tortoise_migrations tortoise_migrations_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.tortoise_migrations
    ADD CONSTRAINT tortoise_migrations_pkey PRIMARY KEY (id);


--
-- Name: truth_versions truth_versions_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.truth_versions
    ADD CONSTRAINT truth_versions_pkey PRIMARY KEY (id);


--
-- Name: benchmark_bests uid_benchmark_b_challen_f73720; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.benchmark_bests
    ADD CONSTRAINT uid_benchmark_b_challen_f73720 UNIQUE (challenge, truth_version, metric);


--
-- Name: challenge_members uid_challenge_m_challen_e20759; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.challenge_members
    ADD CONSTRAINT uid_challenge_m_challen_e20759 UNIQUE (challenge, name_key);


--
-- Name: credit_transactions uid_credit_tran_account_7752e9; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.credit_transactions
    ADD CONSTRAINT uid_credit_tran_account_7752e9 UNIQUE (account_id, reason, reference);


--
-- Name: idempotency_keys uid_idempotency_owner_002e80; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.idempotency_keys
    ADD CONSTRAINT uid_idempotency_owner_002e80 UNIQUE (owner, key);


--
-- Name: scorings uid_scorings_submiss_6a37fb; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.scorings
    ADD CONSTRAINT uid_scorings_submiss_6a37fb UNIQUE (submission_id, scorer_version, truth_version);


--
-- Name: simulation_parts uid_simulation__request_b3472e; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.simulation_parts
    ADD CONSTRAINT uid_simulation__request_b3472e UNIQUE (request_id, part);


--
-- Name: simulation_readers uid_simulation__request_cf8ee0; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.simulation_readers
    ADD CONSTRAINT uid_simulation__request_cf8ee0 UNIQUE (request_id, account_id);


--
-- Name: simulation_requests uid_simulation__runner_d42326; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.simulation_requests
    ADD CONSTRAINT uid_simulation__runner_d42326 UNIQUE (runner, handle);


--
-- Name: sso_accounts uid_sso_account_issuer_910c26; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.sso_accounts
    ADD CONSTRAINT uid_sso_account_issuer_910c26 UNIQUE (issuer, subject);


--
-- Name: submissions uid_submissions_account_aa8d8b; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.submissions
    ADD CONSTRAINT uid_submissions_account_aa8d8b UNIQUE (account_id, challenge, sha256, scorer_version, truth_version, participant);


--
-- Name: team_members uid_team_member_challen_fa890a; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.team_members
    ADD CONSTRAINT uid_team_member_challen_fa890a UNIQUE (challenge, account_id);


--
-- Name: teams uid_teams_challen_7c8008; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.teams
    ADD CONSTRAINT uid_teams_challen_7c8008 UNIQUE (challenge, name_key);


--
-- Name: tortoise_migrations uid_tortoise_mi_app_3803a5; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.tortoise_migrations
    ADD CONSTRAINT uid_tortoise_mi_app_3803a5 UNIQUE (app, name);


--
-- Name: truth_versions uid_truth_versi_task_e07245; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.truth_versions
    ADD CONSTRAINT uid_truth_versi_task_e07245 UNIQUE (task, version);


--
-- Name: uploads uploads_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.uploads
    ADD CONSTRAINT uploads_pkey PRIMARY KEY (id);


--
-- Name: usage_totals usage_totals_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.usage_totals
    ADD CONSTRAINT usage_totals_pkey PRIMARY KEY (id);


--
-- Name: web_sessions web_sessions_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.web_sessions
    ADD CONSTRAINT web_sessions_pkey PRIMARY KEY (digest);


--
-- Name: webhook_deliveries webhook_deliveries_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.webhook_deliveries
    ADD CONSTRAINT webhook_deliveries_pkey PRIMARY KEY (id);


--
-- Name: webhooks webhooks_account_id_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.webhooks
    ADD CONSTRAINT webhooks_account_id_key UNIQUE (account_id);


--
-- Name: webhooks webhooks_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.webhooks
    ADD CONSTRAINT webhooks_pkey PRIMARY KEY (id);


--
-- Name: idx_arrivals_challen_b9a79c; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX idx_arrivals_challen_b9a79c ON public.arrivals USING btree (challenge);


--
-- Name: idx_challenge_m_name_ke_0ae896; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX idx_challenge_m_name_ke_0ae896 ON public.challenge_members USING btree (name_key);


--
-- Name: idx_credit_tran_account_fe0e7a; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX idx_credit_tran_account_fe0e7a ON public.credit_transactions USING btree (account_id, id);


--
-- Name: idx_evaluations_account_67c1a5; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX idx_evaluations_account_67c1a5 ON public.evaluations USING btree (account_id, received_at, id);


--
-- Name: idx_evaluations_challen_44e758; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX idx_evaluations_challen_44e758 ON public.evaluations USING btree (challenge, participant, received_at);


--
-- Name: idx_evaluations_challen_f534ab; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX idx_evaluations_challen_f534ab ON public.evaluations USING btree (challenge, turn, received_at);


--
-- Name: idx_evaluations_sha256_5c3f00; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX idx_evaluations_sha256_5c3f00 ON public.evaluations USING btree (sha256);


--
-- Name: idx_evaluations_submiss_0395a3; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX idx_evaluations_submiss_0395a3 ON public.evaluations USING btree (submission_id);


--
-- Name: idx_evaluations_turn_7229a9; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX idx_evaluations_turn_7229a9 ON public.evaluations USING btree (turn, due_at, challenge);


--
-- Name: idx_followers_looked__e3fe61; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX idx_followers_looked__e3fe61 ON public.followers USING btree (looked_at);


--
-- Name: idx_invitations_challen_c6b2bd; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX idx_invitations_challen_c6b2bd ON public.invitations USING btree (challenge);


--
-- Name: idx_sign_in_att_minute_621703; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX idx_sign_in_att_minute_621703 ON public.sign_in_attempts USING btree (minute);


--
-- Name: idx_simulation__account_43add5; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX idx_simulation__account_43add5 ON public.simulation_requests USING btree (account_id, id);


--
-- Name: idx_simulation__account_78fb7f; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX idx_simulation__account_78fb7f ON public.simulation_requests USING btree (account_id, created_at);


--
-- Name: idx_simulation__account_be3f62; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX idx_simulation__account_be3f62 ON public.simulation_requests USING btree (account_id, state);


--
-- Name: idx_simulation__channel_d2b8ab; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX idx_simulation__channel_d2b8ab ON public.simulation_requests USING btree (channel, id);


--
-- Name: idx_simulation__config__93a1b9; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX idx_simulation__config__93a1b9 ON public.simulation_requests USING btree (config_hash, state, finished_at);


--
-- Name: idx_simulation__due_at_a7f77c; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX idx_simulation__due_at_a7f77c ON public.simulation_requests USING btree (due_at);


--
-- Name: idx_simulation__lease_27613f; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX idx_simulation__lease_27613f ON public.simulation_requests USING btree (lease);


--
-- Name: idx_simulation__state_341195; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX idx_simulation__state_341195 ON public.simulation_requests USING btree (state, id);


--
-- Name: idx_simulation__state_a3499d; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX idx_simulation__state_a3499d ON public.simulation_requests USING btree (state, finished_at);


--
-- Name: idx_sso_tokens_ends_at_0753bd; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX idx_sso_tokens_ends_at_0753bd ON public.sso_tokens USING btree (ends_at);


--
-- Name: idx_sso_tokens_hub_use_d0d88f; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX idx_sso_tokens_hub_use_d0d88f ON public.sso_tokens USING btree (hub_username);


--
-- Name: idx_submissions_account_d4e41b; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX idx_submissions_account_d4e41b ON public.submissions USING btree (account_id, submitted_at, id);


--
-- Name: idx_submissions_challen_239671; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX idx_submissions_challen_239671 ON public.submissions USING btree (challenge, participant, submitted_at);


--
-- Name: idx_submissions_challen_451f76; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX idx_submissions_challen_451f76 ON public.submissions USING btree (challenge, truth_version, model_repo, rank_score);


--
-- Name: idx_submissions_challen_6c86e9; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX idx_submissions_challen_6c86e9 ON public.submissions USING btree (challenge, truth_version, hub_username, rank_score);


--
-- Name: idx_submissions_challen_9ab55b; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX idx_submissions_challen_9ab55b ON public.submissions USING btree (challenge, truth_version, rank_score, submitted_at, id);


--
-- Name: idx_submissions_challen_f8ca2f; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX idx_submissions_challen_f8ca2f ON public.submissions USING btree (challenge, truth_version, represents, rank_score, submitted_at, id);


--
-- Name: idx_submissions_submitt_55b7a8; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX idx_submissions_submitt_55b7a8 ON public.submissions USING btree (submitted_at, id);


--
-- Name: idx_submissions_task_75500b; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX idx_submissions_task_75500b ON public.submissions USING btree (task, submitted_at, id);


--
-- Name: idx_team_member_account_2df12c; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX idx_team_member_account_2df12c ON public.team_members USING btree (account_id);


--
-- Name: idx_team_member_team_id_080a68; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX idx_team_member_team_id_080a68 ON public.team_members USING btree (team_id);


--
-- Name: idx_uploads_account_4f4315; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX idx_uploads_account_4f4315 ON public.uploads USING btree (account_id);


--
-- Name: idx_uploads_expires_efc0fa; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX idx_uploads_expires_efc0fa ON public.uploads USING btree (expires_at);


--
-- Name: idx_usage_total_kind_ae8f91; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX idx_usage_total_kind_ae8f91 ON public.usage_totals USING btree (kind, period, milli_node_hours);


--
-- Name: idx_web_session_hub_use_f1fb0a; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX idx_web_session_hub_use_f1fb0a ON public.web_sessions USING btree (hub_username, begun_at);


--
-- Name: idx_webhook_del_account_3c9fb6; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX idx_webhook_del_account_3c9fb6 ON public.webhook_deliveries USING btree (account_id, id);


--
-- Name: idx_webhook_del_event_i_9d8063; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX idx_webhook_del_event_i_9d8063 ON public.webhook_deliveries USING btree (event_id);


--
-- Name: idx_webhook_del_state_2bdf50; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX idx_webhook_del_state_2bdf50 ON public.webhook_deliveries USING btree (state, next_attempt_at, id);


--
-- Name: idx_webhook_del_state_756626; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX idx_webhook_del_state_756626 ON public.webhook_deliveries USING btree (state, account_id, host, next_attempt_at, id);


--
-- Name: credit_transactions ledger_append_only; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER ledger_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.credit_transactions FOR EACH STATEMENT EXECUTE FUNCTION public.ledger_append_only();


--
-- Name: simulation_requests request_has_ended; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER request_has_ended BEFORE UPDATE ON public.simulation_requests FOR EACH ROW WHEN ((((old.state)::text = ANY ((ARRAY['completed'::character varying, 'failed'::character varying, 'cancelled'::character varying])::text[])) AND (((new.state)::text <> (old.state)::text) OR (new.credits_charged <> old.credits_charged) OR ((new.step)::text <> ''::text) OR (new.credits_refunded < old.credits_refunded) OR ((new.credits_refunded <> old.credits_refunded) AND ((old.state)::text <> 'failed'::text))))) EXECUTE FUNCTION public.request_has_ended();


--
-- Name: credit_transactions credit_transactions_account_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.credit_transactions
    ADD CONSTRAINT credit_transactions_account_id_fkey FOREIGN KEY (account_id) REFERENCES public.accounts(id) ON DELETE RESTRICT;


--
-- Name: simulation_history simulation_history_request_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.simulation_history
    ADD CONSTRAINT simulation_history_request_id_fkey FOREIGN KEY (request_id) REFERENCES public.simulation_requests(id) ON DELETE RESTRICT;


--
-- Name: simulation_parts simulation_parts_request_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.simulation_parts
    ADD CONSTRAINT simulation_parts_request_id_fkey FOREIGN KEY (request_id) REFERENCES public.simulation_requests(id) ON DELETE RESTRICT;


--
-- Name: simulation_readers simulation_readers_request_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.simulation_readers
    ADD CONSTRAINT simulation_readers_request_id_fkey FOREIGN KEY (request_id) REFERENCES public.simulation_requests(id) ON DELETE RESTRICT;


--
-- Name: webhook_deliveries webhook_deliveries_event_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.webhook_deliveries
    ADD CONSTRAINT webhook_deliveries_event_id_fkey FOREIGN KEY (event_id) REFERENCES public.outbox_events(id) ON DELETE RESTRICT;


--
-- PostgreSQL database dump complete
--



