-- What sessions keep about attachments: they notice every change, and old versions do not pile up.
SET client_min_messages = warning;
CREATE SCHEMA here;
CREATE SCHEMA names;

-- a key type with a name and an operator of its own
CREATE TYPE names.number;
CREATE FUNCTION names.number_in(cstring) RETURNS names.number LANGUAGE internal IMMUTABLE STRICT AS 'int4in';
CREATE FUNCTION names.number_out(names.number) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'int4out';
CREATE TYPE names.number (INPUT = names.number_in, OUTPUT = names.number_out, LIKE = int4);
CREATE FUNCTION names.lt(names.number, names.number) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT AS 'int4lt';
CREATE FUNCTION names.le(names.number, names.number) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT AS 'int4le';
CREATE FUNCTION names.eq(names.number, names.number) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT AS 'int4eq';
CREATE FUNCTION names.ge(names.number, names.number) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT AS 'int4ge';
CREATE FUNCTION names.gt(names.number, names.number) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT AS 'int4gt';
CREATE FUNCTION names.cmp(names.number, names.number) RETURNS int LANGUAGE internal IMMUTABLE STRICT AS 'btint4cmp';
CREATE OPERATOR names.< (LEFTARG = names.number, RIGHTARG = names.number, FUNCTION = names.lt);
CREATE OPERATOR names.<= (LEFTARG = names.number, RIGHTARG = names.number, FUNCTION = names.le);
CREATE OPERATOR names.= (LEFTARG = names.number, RIGHTARG = names.number, FUNCTION = names.eq);
CREATE OPERATOR names.>= (LEFTARG = names.number, RIGHTARG = names.number, FUNCTION = names.ge);
CREATE OPERATOR names.> (LEFTARG = names.number, RIGHTARG = names.number, FUNCTION = names.gt);
CREATE OPERATOR CLASS names.number_ops DEFAULT FOR TYPE names.number USING btree AS
	OPERATOR 1 names.<, OPERATOR 2 names.<=, OPERATOR 3 names.=, OPERATOR 4 names.>=, OPERATOR 5 names.>, FUNCTION 1 names.cmp(names.number, names.number);
CREATE DOMAIN names.id AS names.number;

CREATE TABLE here.pairs (k names.id, e int, note int, PRIMARY KEY (k, e));
CREATE INDEX ON here.pairs (note);
SELECT fav_attach('here.pairs', 'k', 'e');

-- one change of every sort, with look-ups before and after
CREATE PROCEDURE touch(source text) LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('INSERT INTO %s VALUES (''1'', 1), (''1'', 2), (''2'', 1) ON CONFLICT DO NOTHING', source);
	EXECUTE format('UPDATE %s SET e = e + 1 WHERE e = 2', source);
	EXECUTE format('DELETE FROM %s WHERE e = 3', source);
END $$;
CREATE PROCEDURE try(command text, source text) LANGUAGE plpgsql AS $$
BEGIN
	CALL touch('here.pairs');
	EXECUTE command;
	CALL touch(source);
END $$;
CALL touch('here.pairs');
CALL try('ALTER OPERATOR names.= (names.number, names.number) SET SCHEMA here', 'here.pairs');
CALL try('ALTER TYPE names.number RENAME TO numeral', 'here.pairs');
CALL try('ALTER TYPE names.numeral SET SCHEMA here', 'here.pairs');
CALL try('ALTER SCHEMA names RENAME TO elsewhere', 'here.pairs');
CALL try('ALTER SCHEMA here RENAME TO there', 'there.pairs');
ALTER SCHEMA there RENAME TO here;
CALL try('ALTER TABLE here.pairs RENAME k TO "key"', 'here.pairs');
CALL try('ALTER TABLE here.pairs_fav_levels SET SCHEMA elsewhere', 'here.pairs');
CALL try('ALTER TABLE elsewhere.pairs_fav_levels RENAME recent TO "old"', 'here.pairs');
CALL try('DROP INDEX here.pairs_note_idx', 'here.pairs');
CALL try('CREATE SCHEMA afield; ALTER EXTENSION fav SET SCHEMA afield', 'here.pairs');
CALL try('ALTER EXTENSION fav SET SCHEMA public', 'here.pairs');
CALL try('DROP SCHEMA afield', 'here.pairs');
SELECT keys, elements, missing, stale FROM fav_verify('here.pairs');

-- Within one transaction.  What is of no concern leaves the attachments alone, and replaced ones go.
CREATE TABLE other (k int, e int, PRIMARY KEY (k, e));
SELECT fav_attach('other', 'k', 'e');
DO $$
DECLARE
	commands text[] := ARRAY['CREATE FUNCTION made_%s() RETURNS int LANGUAGE sql AS ''SELECT 1''', 'CREATE OPERATOR %s (LEFTARG = int, RIGHTARG = int, FUNCTION = int4eq)',
		'CREATE SCHEMA made_%s', 'CREATE TYPE made_%s AS (a int)', 'ALTER TABLE here.pairs ALTER note SET STATISTICS %s', 'ALTER TABLE other SET (fillfactor = %s)'];
BEGIN
	FOR c IN 1 .. 6 LOOP
		FOR i IN 11 .. 40 LOOP
			EXECUTE format(commands[c], CASE WHEN c = 2 THEN repeat('=', i) ELSE i::text END);
			CALL touch('here.pairs');
			CALL touch('other');
		END LOOP;
	END LOOP;
	RAISE EXCEPTION USING MESSAGE = (SELECT CASE WHEN count(*) <= 4 THEN 'few' ELSE count(*) || ' attachments are kept' END
		FROM pg_backend_memory_contexts WHERE name = 'fav attachment');
END $$;
-- also when statements fail
DO $$
BEGIN
	FOR i IN 11 .. 60 LOOP
		BEGIN
			EXECUTE format('ALTER TABLE other SET (fillfactor = %s)', i);
			INSERT INTO other VALUES (9, i), (9, 9);
			DELETE FROM other WHERE e = 9;
			INSERT INTO other VALUES (9, i);
		EXCEPTION WHEN unique_violation THEN NULL;
		END;
	END LOOP;
	RAISE EXCEPTION USING MESSAGE = (SELECT CASE WHEN count(*) <= 4 THEN 'few' ELSE count(*) || ' attachments are kept' END
		FROM pg_backend_memory_contexts WHERE name = 'fav attachment');
END $$;

SELECT fav_detach('here.pairs'), fav_detach('other');
DROP TABLE other;
DROP PROCEDURE touch, try;
DROP SCHEMA here, elsewhere CASCADE;
