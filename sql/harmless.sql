-- Installing the extension changes no query that does not mention it: an untyped parameter is
-- resolved to the same type as before.

-- The types of the server, of a user, and of other extensions if these are installed
CREATE SCHEMA harmless;
SET search_path = public, harmless;
SET client_min_messages = warning;
DO $$
DECLARE
	extension text;
BEGIN
	FOR extension IN SELECT name FROM pg_available_extensions
		WHERE name IN ('citext', 'cube', 'hstore', 'intarray', 'isn', 'ltree', 'seg') AND installed_version IS NULL ORDER BY name
	LOOP
		EXECUTE format('CREATE EXTENSION %I SCHEMA harmless', extension);
	END LOOP;
END
$$;
RESET client_min_messages;
CREATE TYPE harmless.mood AS ENUM ('calm', 'angry');
CREATE TYPE harmless.place AS (x float8, y float8);
CREATE TYPE harmless.floats AS RANGE (subtype = float8);
CREATE DOMAIN harmless.handle AS text;
CREATE DOMAIN harmless.number AS bigint;

-- Which type does PostgreSQL choose for $1 in "$1 operator type" and in "type operator $1", and for
-- $1 and $2 in "$1 operator $2"?  Of which type is the result, also with a literal?  An SQLSTATE if
-- it cannot choose.
CREATE TYPE harmless.meaning AS (operator text, type text, side text, parameter text, result text);
CREATE FUNCTION harmless.meanings(operators text[]) RETURNS SETOF harmless.meaning LANGUAGE plpgsql AS $$
DECLARE
	m harmless.meaning;
	template text;
BEGIN
	FOR m.operator, m.type, m.side IN
		SELECT o, format_type(t.oid, NULL), s FROM unnest(operators) o, pg_type t, unnest(ARRAY['left', 'right']) s
		WHERE t.typnamespace IN ('pg_catalog'::regnamespace, 'harmless'::regnamespace) AND t.typtype <> 'p'
			AND NOT EXISTS (SELECT FROM pg_class WHERE oid = t.typrelid AND relkind <> 'c')
		UNION ALL SELECT o, '', 'both' FROM unnest(operators) o
	LOOP
		template := CASE m.side WHEN 'left' THEN format('$1 %s NULL::%s', m.operator, m.type)
			WHEN 'right' THEN format('NULL::%s %s $1', m.type, m.operator) ELSE format('$1 %s $2', m.operator) END;
		BEGIN
			EXECUTE 'PREPARE harmless AS SELECT ' || template;
			SELECT parameter_types::text INTO m.parameter FROM pg_prepared_statements WHERE name = 'harmless';
			DEALLOCATE harmless;
		EXCEPTION WHEN OTHERS THEN
			m.parameter := SQLSTATE;
		END;
		BEGIN
			EXECUTE format('SELECT pg_typeof(%s)', regexp_replace(template, '\$\d', 'NULL', 'g')) INTO m.result;
		EXCEPTION WHEN OTHERS THEN
			m.result := SQLSTATE;
		END;
		RETURN NEXT m;
	END LOOP;
END
$$;

-- Every operator name of the extension, with the extension and without it.  (A variable survives a
-- rollback.)
CREATE TABLE harmless.before OF harmless.meaning;
CREATE TABLE harmless.after OF harmless.meaning;
INSERT INTO harmless.after
SELECT m.* FROM (SELECT array_agg(DISTINCT oprname::text) AS names FROM pg_operator WHERE 'fav'::regtype IN (oprleft, oprright)) o, harmless.meanings(names) m;
SET client_min_messages = warning;
DO $$
DECLARE
	names text[] := (SELECT array_agg(DISTINCT operator) FROM harmless.after);
	found harmless.meaning[];
BEGIN
	BEGIN
		DROP EXTENSION fav CASCADE;
		found := ARRAY(SELECT m FROM harmless.meanings(names) m);
		RAISE EXCEPTION USING ERRCODE = 'FAV00';
	EXCEPTION WHEN SQLSTATE 'FAV00' THEN
		NULL;
	END;
	INSERT INTO harmless.before SELECT * FROM unnest(found);
END
$$;
RESET client_min_messages;
SELECT array_agg(DISTINCT operator COLLATE "C") AS operators, count(*) > 3000 AS tried, count(*) FILTER (WHERE b.parameter LIKE '{%') > 1000 AS valid,
	count(*) FILTER (WHERE a.operator IS NULL) AS missing
FROM harmless.before b LEFT JOIN harmless.after a USING (operator, type, side);

-- Every expression that had a meaning has the same meaning.
SELECT operator, side, type, b.parameter AS before, a.parameter AS after, b.result AS result_before, a.result AS result_after
FROM harmless.before b JOIN harmless.after a USING (operator, type, side)
WHERE (b.parameter LIKE '{%' AND a.parameter <> b.parameter) OR (b.result !~ '^[0-9A-Z]{5}$' AND a.result <> b.result)
ORDER BY 1, 2, 3;

-- Every expression that has a meaning only now has a filter as an argument
SELECT operator, side, a.parameter, bool_and(a.result IN ('fav', 'boolean')) AS result FROM harmless.before b JOIN harmless.after a USING (operator, type, side)
WHERE b.parameter NOT LIKE '{%' AND a.parameter LIKE '{%' GROUP BY operator, side, a.parameter ORDER BY operator COLLATE "C", side, a.parameter;

-- Queries that operators with arrays or text would break (without the types of other extensions)
RESET search_path;
CREATE TABLE harmless.posts (id bigint, tags text[], ids bigint[], meta jsonb, key text, day date, span int4range);
PREPARE tags AS SELECT FROM harmless.posts WHERE tags && $1;
PREPARE tags_left AS SELECT FROM harmless.posts WHERE $1 && tags;
PREPARE all_tags AS SELECT FROM harmless.posts WHERE $1 @> tags;
PREPARE ids AS SELECT FROM harmless.posts WHERE $1 @> ids AND ids <@ $2 AND $3 && ids;
PREPARE json AS SELECT meta - $1, $2 - key, $3 || meta FROM harmless.posts WHERE $4 @> meta;
PREPARE dates AS SELECT $1 - day, day - $2 FROM harmless.posts WHERE span @> $3 AND $4 <@ span;
PREPARE numbers AS SELECT $1 + id, $2 - id, id || $3, $4 || key FROM harmless.posts WHERE id = $5 AND $6 < key;
SELECT name, parameter_types FROM pg_prepared_statements ORDER BY name COLLATE "C";
DEALLOCATE ALL;
SET client_min_messages = warning;
DROP SCHEMA harmless CASCADE;
RESET client_min_messages;
