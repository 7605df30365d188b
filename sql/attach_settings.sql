-- No setting of a session changes what is made, or how it works.
SET client_min_messages = warning;
CREATE FUNCTION made(source regclass) RETURNS text LANGUAGE sql SET extra_float_digits = 1 SET standard_conforming_strings = on SET quote_all_identifiers = off SET search_path = public AS $$
	SELECT string_agg(format('%s %s %s %s %s', c.relname, c.relkind, c.relpersistence, c.reltablespace, am.amname)
			|| coalesce((SELECT string_agg(concat_ws(' ', attname, format_type(atttypid, atttypmod), attnotnull, attstorage, nullif(attcompression, ''), pg_get_expr(adbin, adrelid)), ', ' ORDER BY attnum)
				FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum WHERE attrelid = c.oid AND attnum > 0), '')
			|| coalesce((SELECT string_agg(pg_get_triggerdef(oid) || tgenabled::text, ', ' ORDER BY tgname) FROM pg_trigger WHERE tgrelid = c.oid), '')
			|| CASE WHEN relkind = 'v' THEN pg_get_viewdef(c.oid) ELSE '' END, E'\n' ORDER BY c.relname COLLATE "C")
		|| E'\n' || (SELECT string_agg(pg_get_functiondef(oid), E'\n' ORDER BY oid) FROM pg_proc WHERE pronamespace = c.relnamespace)
	FROM pg_class c LEFT JOIN pg_am am ON am.oid = relam WHERE relnamespace = (SELECT relnamespace FROM pg_class s WHERE s.oid = source) GROUP BY relnamespace
$$;
CREATE PROCEDURE try(command text) LANGUAGE plpgsql AS $$
DECLARE
	made_now text;
	found record;
BEGIN
	BEGIN
		EXECUTE command;
	EXCEPTION
		-- not every version lets sessions change everything
		WHEN undefined_object OR invalid_parameter_value OR feature_not_supported THEN NULL;
	END;
	CREATE SCHEMA settled;
	CREATE TABLE settled.hidden (k text COLLATE "C", e bigint, PRIMARY KEY (k, e)) USING heap;
	CREATE TABLE settled.seen (k text COLLATE "C", e bigint) USING heap;
	INSERT INTO settled.hidden SELECT 'a\b''c' || i % 3, i FROM generate_series(1, 1000) i;
	PERFORM public.fav_attach('settled.hidden', 'k', 'e', error_rate => 0.0123456, seed => 7);
	PERFORM public.fav_sink('settled.seen', 'k', 'e', error_rate => 0.00123456789012345);
	made_now := regexp_replace(public.made('settled.hidden'), '''-?\d+''::bigint(?=\)|, ''0''::bigint\))', '(seed)', 'g');
	INSERT INTO settled.seen VALUES ('x', 1);
	INSERT INTO settled.hidden SELECT 'a\b''c' || i % 3, i FROM generate_series(1001, 2000) i;
	DELETE FROM settled.hidden WHERE e % 2 = 0;
	UPDATE settled.hidden SET e = -e WHERE e < 10;
	PERFORM public.fav_rebuild('settled.hidden', 'a\b''c1');
	PERFORM public.fav_rebuild('settled.hidden');
	SELECT * INTO found FROM public.fav_verify('settled.hidden');
	IF found.missing > 0 OR found.stale > 0 OR found.elements <> 1000 THEN RAISE WARNING '%: %', command, found; END IF;
	SET LOCAL client_min_messages = error;
	PERFORM public.fav_detach('settled.hidden'), public.fav_detach('settled.seen');
	ROLLBACK;
	INSERT INTO public.seen_made VALUES (command, made_now);
END $$;
CREATE TABLE seen_made (command text, made text);
CREATE ACCESS METHOD another TYPE TABLE HANDLER heap_tableam_handler;
CALL try('SELECT');
CALL try('SET LOCAL extra_float_digits = -12');
CALL try('SET LOCAL datestyle = ''SQL, DMY''; SET LOCAL intervalstyle = iso_8601; SET LOCAL bytea_output = escape; SET LOCAL timezone = ''Pacific/Chatham''');
CALL try('SET LOCAL escape_string_warning = off; SET LOCAL standard_conforming_strings = off; SET LOCAL backslash_quote = off');
CALL try('SET LOCAL quote_all_identifiers = on');
CALL try('SET LOCAL default_table_access_method = another');
CALL try('SET LOCAL default_tablespace = pg_default');
CALL try('SET LOCAL check_function_bodies = off');
CALL try('SET LOCAL session_replication_role = replica');
CALL try('SET LOCAL session_replication_role = local');
CALL try('SET LOCAL row_security = off');
CALL try('SET LOCAL default_toast_compression = pglz; SET LOCAL xmloption = document; SET LOCAL xmlbinary = hex');
CALL try('SET LOCAL transform_null_equals = on; SET LOCAL array_nulls = off');
CALL try('SET LOCAL search_path = ''''');
CALL try('SET LOCAL search_path = pg_temp, settled, pg_catalog');
CALL try('SET LOCAL plan_cache_mode = force_custom_plan; SET LOCAL from_collapse_limit = 1; SET LOCAL join_collapse_limit = 1; SET LOCAL enable_hashjoin = off; SET LOCAL enable_indexscan = off');
CALL try('SET LOCAL work_mem = 64; SET LOCAL cursor_tuple_fraction = 1; SET LOCAL constraint_exclusion = on; SET LOCAL enable_partition_pruning = off');
CALL try('SET LOCAL client_encoding = latin1; SET LOCAL lc_messages = ''C''; SET LOCAL lc_numeric = ''C''');
CALL try('SET LOCAL default_transaction_isolation = serializable; SET LOCAL default_transaction_read_only = on');
CALL try('SET LOCAL client_min_messages = error; SET LOCAL plpgsql.variable_conflict = use_column; SET LOCAL plpgsql.extra_errors = ''all''');
SELECT a.command FROM seen_made a, seen_made b WHERE b.command = 'SELECT' AND a.made <> b.made;
SELECT regexp_matches(made, 'fav_[a-z_]*recent\([^)]*', 'g') FROM seen_made WHERE command = 'SELECT';
DROP ACCESS METHOD another;
DROP TABLE seen_made;
DROP PROCEDURE try;
DROP FUNCTION made;
