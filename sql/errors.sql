-- Every error, with its class, the value that was wrong and the range that is right.

CREATE FUNCTION complaint(query text) RETURNS TABLE (complaint text) LANGUAGE plpgsql AS $$
DECLARE
	detail text;
	hint text;
BEGIN
	EXECUTE query;
	complaint := 'none';
	RETURN NEXT;
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
	complaint := SQLSTATE || ' ' || SQLERRM;
	RETURN NEXT;
	FOREACH complaint IN ARRAY array_remove(ARRAY[detail, hint], '') LOOP
		complaint := '      ' || complaint;
		RETURN NEXT;
	END LOOP;
END
$$;
\pset tuples_only on
\pset format unaligned

-- Parameters
SELECT complaint('SELECT fav_new(0)');
SELECT complaint('SELECT fav_new(-1)');
SELECT complaint('SELECT fav_new(1000000000000)');
SELECT complaint('SELECT fav_new(9223372036854775807)');
SELECT complaint('SELECT fav_new(error_rate => 0)');
SELECT complaint('SELECT fav_new(error_rate => -0.25)');
SELECT complaint('SELECT fav_new(error_rate => 0.75)');
SELECT complaint('SELECT fav_new(error_rate => ''NaN'')');
SELECT complaint('SELECT fav_new(error_rate => ''Infinity'')');
SELECT complaint('SELECT fav_new(error_rate => 1e-7)');
SELECT complaint('SELECT fav_new(region_size => 0)');
SELECT complaint('SELECT fav_new(region_size => -1)');
SELECT complaint('SELECT fav_new(region_size => 32)');
-- the ends of the allowed ranges
SELECT complaint('SELECT fav_new(1, 0.5, 1), fav_new(1, 0.5, 31), fav_new(1, 1e-6, 1), fav_new(1000000, 1e-6, 31)');
SELECT complaint('SELECT fav_add(fav_new(1, 1e-6, r), ARRAY(SELECT generate_series(1, 1000))) FROM unnest(ARRAY[1, 31]) r');

-- Text
SELECT complaint($$SELECT ''::fav$$);
SELECT complaint($$SELECT 'post'::fav$$);
SELECT complaint($$SELECT '42'::fav$$);
SELECT complaint($$SELECT '{1,2}'::fav$$);
SELECT complaint($$SELECT '\'::fav$$);
SELECT complaint($$SELECT '\x'::fav$$);
SELECT complaint($$SELECT '\x010'::fav$$);
SELECT complaint($$SELECT '\x01zz'::fav$$);
SELECT complaint($$SELECT '\x0 '::fav$$);
SELECT complaint($$SELECT '\x0100'::fav$$);

-- Bytes.  docs/internals/FORMAT.md says where each field is.  small has 2 recent hashes, large has 128.
CREATE FUNCTION spoilt(value bytea, at int, bytes bytea) RETURNS TABLE (complaint text) LANGUAGE sql AS $$
	SELECT complaint(format('SELECT %L::bytea::fav', overlay(value PLACING bytes FROM at + 1)))
$$;
CREATE TEMP TABLE good AS
SELECT fav_add(NULL, ARRAY[1, 2])::bytea AS small,
	fav_del(fav_add(fav_new(256, 0.2), ARRAY(SELECT generate_series(1, 256))), ARRAY(SELECT generate_series(1, 100)))::bytea AS large;
SELECT complaint(format('SELECT %L::bytea::fav, %L::bytea::fav', small, large)) FROM good;
SELECT (fav_stats(large::fav)).slices, (fav_stats(large::fav)).recent, (fav_stats(large::fav)).tombstones > 2 FROM good;
-- too short, too long
SELECT complaint($$SELECT '\x'::bytea::fav$$);
SELECT complaint(format('SELECT %L::bytea::fav', substr(small, 1, 43))) FROM good;
SELECT complaint(format('SELECT %L::bytea::fav', substr(small, 1, 44))) FROM good;
SELECT complaint(format('SELECT %L::bytea::fav', substr(small, 1, length(small) - 1))) FROM good;
SELECT complaint(format('SELECT %L::bytea::fav', small || '\x00'::bytea)) FROM good;
SELECT regexp_replace(complaint(format('SELECT %L::bytea::fav', substr(large, 1, length(large) - 1))), '[0-9]{3,} b.*[0-9]', 'N bytes ... M') FROM good;
SELECT regexp_replace(complaint(format('SELECT %L::bytea::fav', large || '\x00'::bytea)), '[0-9]{3,} b.*[0-9]', 'N bytes ... M') FROM good;
-- version, flags, kind, reserved
SELECT spoilt(small, 0, '\x00') FROM good;
SELECT spoilt(small, 0, '\x02') FROM good;
SELECT spoilt(small, 1, '\x01') FROM good;
SELECT spoilt(small, 1, '\x04') FROM good;
SELECT spoilt(small, 1, '\x08') FROM good;
SELECT spoilt(small, 6, '\x00') FROM good;
SELECT spoilt(small, 6, '\x06') FROM good;
SELECT spoilt(small, 6, '\xff') FROM good;
SELECT spoilt(fav_new()::bytea, 6, '\x01');
SELECT spoilt(fav_new()::bytea, 1, '\x01');
SELECT spoilt(small, 7, '\x80') FROM good;
-- each kind is legal, and so is the flag in a value with tombstones
SELECT spoilt(small, 6, kind) FROM good, unnest(ARRAY['\x01', '\x02', '\x03', '\x04', '\x05']::bytea[]) kind;
SELECT spoilt(large, 1, '\x01') FROM good;
-- region size, capacity, error rate
SELECT spoilt(small, 2, '\x00') FROM good;
SELECT spoilt(small, 2, '\x20') FROM good;
SELECT spoilt(small, 32, '\x0000000000000000') FROM good;
SELECT spoilt(small, 32, '\xffffffffffffffff') FROM good;
SELECT spoilt(small, 48, '\x0000000000000000') FROM good;
SELECT spoilt(small, 48, '\x000000000000f0bf') FROM good;
SELECT spoilt(small, 48, '\x0000000000000040') FROM good;
SELECT spoilt(small, 48, '\x000000000000f87f') FROM good;
SELECT spoilt(small, 48, '\x000000000000f07f') FROM good;
-- counts
SELECT spoilt(small, 3, '\x21') FROM good;
SELECT spoilt(small, 4, '\xfb00') FROM good;
SELECT spoilt(small, 4, '\x0300') FROM good;
SELECT spoilt(small, 4, '\x0100') FROM good;
SELECT spoilt(small, 56, '\x01') FROM good;
SELECT spoilt(small, 24, '\x01') FROM good;
SELECT spoilt(large, 1032, '\xffffffffffffffff') FROM good;
SELECT regexp_replace(spoilt(large, 1064, '\xffffffff'), '[0-9]{3,}', 'N', 'g') FROM good;
SELECT regexp_replace(spoilt(large, 1068, '\xffffffff'), '[0-9]{3,}', 'N', 'g') FROM good;
-- the slice directory
SELECT spoilt(large, 1068, '\x00000000') FROM good;
SELECT spoilt(large, 1072, '\x00') FROM good;
SELECT spoilt(large, 1072, '\x21') FROM good;
SELECT spoilt(large, 1073, '\x01') FROM good;
SELECT spoilt(large, 1075, '\x01') FROM good;
SELECT regexp_replace(spoilt(large, 1076, '\xffffffffffffffff'), '[0-9]{3,}', 'N', 'g') FROM good;
SELECT regexp_replace(spoilt(large, 1084, '\x0000000000000000'), '[0-9]{3,}', 'N', 'g') FROM good;
SELECT regexp_replace(spoilt(large, 1084, '\xffffffffffffffff'), '[0-9]{3,}', 'N', 'g') FROM good;
-- the lists: recent hashes are unique, tombstones ascending and unique, no hash is in both
SELECT spoilt(small, 8, substr(small, 17, 8)) FROM good;
SELECT spoilt(large, length(large) - 16, substr(large, length(large) - 7, 8) || substr(large, length(large) - 15, 8)) FROM good;
SELECT spoilt(large, length(large) - 8, substr(large, length(large) - 15, 8)) FROM good;
SELECT spoilt(large, 8, substr(large, length(large) - 7, 8)) FROM good;
SELECT spoilt(f, 44, substr(f, 53, 8)) FROM CAST(fav_exclude(NULL, '{1,2,3}'::bigint[]) AS bytea) f;
-- one bit more than the slice records
SELECT regexp_replace(spoilt(large, length(large) - 8 * (fav_stats(large::fav)).tombstones - 128, '\xffffffffffffffffffffffffffffffff'), '[0-9]{3,}', 'N', 'g') FROM good;

-- The same through the text form, as a soft error where the server has them (16 and later)
SELECT complaint(format('SELECT %L::fav', overlay(small PLACING '\x02' FROM 1))) FROM good;
DO $$
DECLARE
	valid boolean;
	text text;
BEGIN
	IF current_setting('server_version_num')::int >= 160000 THEN
		FOREACH text IN ARRAY ARRAY['', 'post', '\x', '\x0', '\xzz', '\x0100', fav_new()::text || '00'] LOOP
			EXECUTE 'SELECT pg_input_is_valid($1, ''fav'')' INTO valid USING text;
			ASSERT NOT valid, text;
		END LOOP;
		EXECUTE 'SELECT pg_input_is_valid($1, ''fav'')' INTO valid USING fav_add(NULL, 42)::text;
		ASSERT valid;
	END IF;
END
$$;

-- A value that would become too large: a full list, and a first slice of 4,000,000,000
CREATE TEMP TABLE full_list AS
SELECT overlay(fav_add(NULL, ARRAY(SELECT generate_series(1, 128)))::bytea PLACING '\x00286bee00000000' FROM 1041)::fav AS f;
SELECT complaint('SELECT fav_add(f, 129) FROM full_list');
SELECT complaint('SELECT fav_add(f, ARRAY(SELECT generate_series(100, 200))) FROM full_list');
SELECT complaint('SELECT fav_add(f, 128), fav_del(f, 1), fav_add(fav_del(f, 1), 129) FROM full_list');

-- A value of 32 full slices cannot have another one
CREATE TEMP TABLE full_chain AS
SELECT ('\x01000120'::bytea || '\x8000'::bytea || '\x0100'::bytea || substr(f::bytea, 9, 1024)
	|| '\x2000000000000000'::bytea || substr(f::bytea, 1041, 24) || '\x00000000'::bytea
	|| decode(repeat('01000000' || '01' || '000000' || '0100000000000000' || '0100000000000000', 32), 'hex')
	|| decode(repeat('01' || repeat('00', 63), 32), 'hex'))::fav AS f
FROM fav_add(NULL, ARRAY(SELECT generate_series(1, 128))) f;
SELECT (fav_stats(f)).slices FROM full_chain;
SELECT complaint('SELECT fav_add(f, 129) FROM full_chain');

-- An extreme error rate in binary input does no harm
SELECT complaint(format('SELECT fav_add(%L::bytea::fav, 129)', overlay(f::bytea PLACING rate FROM 1057)))
FROM fav_add(NULL, ARRAY(SELECT generate_series(1, 128))) f, (VALUES ('\x0000000000000001'::bytea), ('\x000000000000f03f')) v (rate);

\pset tuples_only off
\pset format aligned
DROP TABLE good, full_list, full_chain;
DROP FUNCTION spoilt;
DROP FUNCTION complaint;
