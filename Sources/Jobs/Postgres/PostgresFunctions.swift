/// Functions, operators and aggregates of the database that SQLite has and PostgreSQL lacks, so that statements and the
/// SQL of users read the same on both.
enum PostgresFunctions {
    /// For users: json_array('https://example.com/a.jpg', …). From version 16 on, PostgreSQL has it by itself.
    static let before16 = """
        CREATE FUNCTION json_array(VARIADIC TEXT[]) RETURNS TEXT LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
            $$ SELECT to_json($1)::TEXT $$;
        CREATE FUNCTION json_array() RETURNS TEXT LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT '[]' $$
        """

    static let all = """
        -- UTC milliseconds by the server's clock.
        CREATE FUNCTION worker_now() RETURNS BIGINT LANGUAGE sql VOLATILE PARALLEL SAFE
            AS $$ SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::BIGINT $$;
        -- Whether the session is one of a worker's, which alone writes to some tables.
        CREATE FUNCTION only_the_worker_writes_to_this_table() RETURNS BOOLEAN LANGUAGE sql STABLE
            AS $$ SELECT coalesce(current_setting('worker.session', true), '') = 'on' $$;
        -- The id of the job that this session inserted last, for the items that follow it.
        CREATE FUNCTION last_insert_rowid() RETURNS BIGINT LANGUAGE sql STABLE
            AS $$ SELECT nullif(current_setting('worker.last_id', true), '')::BIGINT $$;
        CREATE FUNCTION worker_note_id() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            PERFORM set_config('worker.last_id', NEW.id::TEXT, false);
            RETURN NULL;
        END $$;
        -- One program writes at a time, as on SQLite: rows are locked in any order then, and ids grow in the order of the
        -- commits.
        CREATE FUNCTION worker_turn() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            PERFORM pg_advisory_xact_lock('jobs'::REGCLASS::OID::BIGINT);
            RETURN NULL;
        END $$;
        -- Sent with the commit, and once a transaction.
        CREATE FUNCTION worker_changed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            PERFORM pg_notify('\(PostgresSchema.channel)' || 'jobs'::REGCLASS::OID::TEXT, '');
            RETURN NULL;
        END $$;
        CREATE FUNCTION worker_default_url() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            NEW.url := coalesce(NEW.url, '');
            RETURN NEW;
        END $$;

        CREATE FUNCTION worker_integer(TEXT) RETURNS BIGINT LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS
            $$ SELECT trunc(least(greatest(coalesce(substring(left($1, 100) from '^\\s*([+-]?[0-9]+)'), '0')::NUMERIC,
                -9223372036854775808), 9223372036854775807))::BIGINT $$;
        CREATE FUNCTION worker_integer(NUMERIC) RETURNS BIGINT LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS
            $$ SELECT trunc(least(greatest($1, -9223372036854775808), 9223372036854775807))::BIGINT $$;
        CREATE FUNCTION worker_integer(DOUBLE PRECISION) RETURNS BIGINT LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS
            $$ SELECT worker_integer($1::NUMERIC) $$;
        CREATE FUNCTION worker_integer(BIGINT) RETURNS BIGINT LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS
            $$ SELECT $1 $$;
        CREATE FUNCTION worker_integer(INTEGER) RETURNS BIGINT LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS
            $$ SELECT $1::BIGINT $$;
        CREATE FUNCTION worker_integer(BOOLEAN) RETURNS BIGINT LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS
            $$ SELECT CASE WHEN $1 THEN 1 ELSE 0 END::BIGINT $$;
        CREATE FUNCTION worker_typeof(ANYELEMENT) RETURNS TEXT LANGUAGE sql STABLE PARALLEL SAFE AS $$
            SELECT CASE WHEN $1 IS NULL THEN 'null' ELSE CASE pg_typeof($1)::TEXT WHEN 'bigint' THEN 'integer'
                WHEN 'integer' THEN 'integer' WHEN 'double precision' THEN 'real' WHEN 'numeric' THEN 'real'
                ELSE 'text' END END $$;
        CREATE FUNCTION worker_random() RETURNS BIGINT LANGUAGE sql VOLATILE PARALLEL SAFE AS
            $$ SELECT (random() * 9007199254740992)::BIGINT $$;
        CREATE FUNCTION worker_printf(TEXT, BIGINT) RETURNS TEXT LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS
            $$ SELECT lpad(to_hex($2), 16, '0') $$;
        CREATE FUNCTION strftime(TEXT, NUMERIC, TEXT) RETURNS TEXT LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
            SELECT CASE WHEN $2 BETWEEN -62135596800 AND 253402300799 THEN
                to_char(to_timestamp($2) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') END $$;
        CREATE FUNCTION glob_as_regex(TEXT) RETURNS TEXT LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
            SELECT '^' || replace(replace(regexp_replace($1, '([.+(){}|$\\\\])', '\\\\\\1', 'g'), '?', '.'), '*', '.*')
                || '$' $$;

        -- No parallel worker may begin the subtransaction that catching an error needs.
        CREATE FUNCTION json_valid(TEXT) RETURNS BOOLEAN LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL UNSAFE AS $$ BEGIN
            PERFORM $1::JSON;
            RETURN true;
        EXCEPTION WHEN others THEN
            RETURN false;
        END $$;
        CREATE FUNCTION worker_json_type_name(JSON) RETURNS TEXT LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
            SELECT CASE json_typeof($1) WHEN 'string' THEN 'text' WHEN 'number' THEN 'integer'
                WHEN 'boolean' THEN $1::TEXT ELSE json_typeof($1) END $$;
        CREATE FUNCTION json_type(TEXT) RETURNS TEXT LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS
            $$ SELECT worker_json_type_name($1::JSON) $$;
        CREATE FUNCTION json_extract(TEXT, TEXT) RETURNS TEXT LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS
            $$ SELECT jsonb_path_query_first($1::JSONB, $2::JSONPATH) #>> '{}' $$;
        CREATE FUNCTION json_array_length(TEXT) RETURNS BIGINT LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS
            $$ SELECT json_array_length($1::JSON)::BIGINT $$;
        -- In one line: valid JSON has no line breaks within its strings.
        CREATE FUNCTION worker_json(TEXT) RETURNS TEXT LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS
            $$ SELECT translate($1, chr(9) || chr(10) || chr(13), '') $$;
        CREATE FUNCTION worker_json_quote(TEXT) RETURNS TEXT LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS
            $$ SELECT to_json($1)::TEXT $$;
        CREATE FUNCTION worker_json_each(TEXT, OUT key BIGINT, OUT value TEXT, OUT type TEXT) RETURNS SETOF RECORD
            LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE ROWS 100 AS $$
            SELECT ordinality - 1, element #>> '{}', worker_json_type_name(element)
                FROM json_array_elements(CASE json_typeof($1::JSON) WHEN 'array' THEN $1::JSON ELSE '[]' END)
                    WITH ORDINALITY AS elements (element)
            UNION ALL SELECT NULL, pair.value #>> '{}', worker_json_type_name(pair.value)
                FROM json_each(CASE json_typeof($1::JSON) WHEN 'object' THEN $1::JSON ELSE '{}' END) AS pair $$;
        CREATE FUNCTION worker_json_closed(TEXT[]) RETURNS TEXT LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
            $$ SELECT to_json($1)::TEXT $$;
        CREATE AGGREGATE json_group_array(TEXT)
            (SFUNC = array_append, STYPE = TEXT[], FINALFUNC = worker_json_closed, INITCOND = '{}');
        CREATE AGGREGATE total(NUMERIC) (SFUNC = numeric_add, STYPE = NUMERIC, INITCOND = '0');

        -- A condition counts as 1 or 0.
        CREATE FUNCTION worker_plus(BIGINT, BOOLEAN) RETURNS BIGINT LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS
            $$ SELECT CASE WHEN $2 THEN $1 + 1 ELSE $1 END $$;
        CREATE FUNCTION worker_minus(BIGINT, BOOLEAN) RETURNS BIGINT LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS
            $$ SELECT CASE WHEN $2 THEN $1 - 1 ELSE $1 END $$;
        CREATE OPERATOR + (LEFTARG = BIGINT, RIGHTARG = BOOLEAN, FUNCTION = worker_plus);
        CREATE OPERATOR - (LEFTARG = BIGINT, RIGHTARG = BOOLEAN, FUNCTION = worker_minus);
        CREATE AGGREGATE sum(BOOLEAN) (SFUNC = worker_plus, STYPE = BIGINT, INITCOND = '0');
        """
}
