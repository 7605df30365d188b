-- Input and output: text, binary, bytea.  The bytes of a value are the same on every machine and
-- server version.

-- Some values, byte for byte.  If one of them changes, every stored filter is lost.
SELECT fav_new();
SELECT fav_new(1000000, 0.001, 10, 42);
SELECT fav_add(NULL, 42);
SELECT fav_add(NULL, ARRAY[1, -1, 9223372036854775807]);
SELECT fav_add(NULL, ARRAY['', 'a', 'mira@example.org']);
SELECT fav_add(NULL, '6ba7b810-9dad-11d1-80b4-00c04fd430c8'::uuid);
SELECT fav_add(NULL, '\x00ff'::bytea);
SELECT fav_add(NULL, 1, 2);
SELECT fav_add(fav_new(seed => 1), 42);
-- the hash function has a branch for each of these lengths
SELECT n AS length, substr(fav_add(NULL, repeat('x', n))::text, 19, 16) AS hash
FROM unnest(ARRAY[1, 3, 4, 8, 9, 16, 17, 128, 129, 240, 241, 1024, 1025, 100000]) n;

-- Larger values, by their checksums: slices, deletes, growth, other parameters
CREATE TEMP TABLE pinned AS
SELECT * FROM (VALUES
	(1, '128', fav_add(fav_new(), ARRAY(SELECT generate_series(1, 128)))),
	(2, '129', fav_add(fav_new(), ARRAY(SELECT generate_series(1, 129)))),
	(3, '10,000 grown', fav_add(fav_new(), ARRAY(SELECT generate_series(1, 10000)))),
	(4, '10,000 known', fav_add(fav_new(10000), ARRAY(SELECT generate_series(1, 10000)))),
	(5, '10,000 strict', fav_add(fav_new(1000, 0.0001), ARRAY(SELECT generate_series(1, 10000)))),
	(6, '10,000 lax', fav_add(fav_new(1000, 0.2), ARRAY(SELECT generate_series(1, 10000)))),
	(7, 'region size 1', fav_add(fav_new(1000, 0.01, 1), ARRAY(SELECT generate_series(1, 5000)))),
	(8, 'region size 31', fav_add(fav_new(1000, 0.01, 31), ARRAY(SELECT generate_series(1, 5000)))),
	(9, 'other seed', fav_add(fav_new(seed => -1), ARRAY(SELECT generate_series(1, 5000)))),
	(10, 'half deleted', fav_del(fav_add(fav_new(), ARRAY(SELECT generate_series(1, 10000))), ARRAY(SELECT generate_series(1, 10000, 2)))),
	(11, 'texts', fav_add(fav_new(), ARRAY(SELECT 'post ' || generate_series(1, 5000)))),
	(12, '100,000', fav_add(fav_new(), ARRAY(SELECT generate_series(1, 100000))))) v (id, name, f);
SELECT name, length(f::bytea) AS bytes, md5(f::bytea) FROM pinned ORDER BY id;

-- The three forms are equivalent
SELECT count(*) AS filters,
	count(*) FILTER (WHERE f::text <> f::bytea::text) AS text_is_not_bytea,
	count(*) FILTER (WHERE fav_send(f) <> f::bytea) AS binary_is_not_bytea,
	count(*) FILTER (WHERE f::bytea::fav::bytea <> f::bytea) AS bytea_round_trip,
	count(*) FILTER (WHERE f::text::fav::bytea <> f::bytea) AS text_round_trip,
	count(*) FILTER (WHERE upper(substr(f::text, 3)) = '' OR ('\x' || upper(substr(f::text, 3)))::fav::bytea <> f::bytea) AS upper_case,
	count(*) FILTER (WHERE fav_in(fav_out(f))::bytea <> f::bytea) AS functions
FROM pinned;
SET bytea_output = escape;
SELECT count(*) FILTER (WHERE left(f::text, 2) <> '\x') AS depends_on_bytea_output FROM pinned;
RESET bytea_output;

-- COPY, both ways
CREATE TEMP TABLE copied (LIKE pinned);
\copy pinned TO 'results/io.data' (FORMAT binary)
\copy copied FROM 'results/io.data' (FORMAT binary)
SELECT count(*) AS filters, count(*) FILTER (WHERE p.f::bytea <> c.f::bytea) AS different FROM pinned p JOIN copied c USING (name);
TRUNCATE copied;
\copy pinned TO 'results/io.data'
\copy copied FROM 'results/io.data'
SELECT count(*) AS filters, count(*) FILTER (WHERE p.f::bytea <> c.f::bytea) AS different FROM pinned p JOIN copied c USING (name);

-- Values that were read can be used and changed
SELECT fav_contains_all(f, ARRAY(SELECT generate_series(2, 10000, 2))) AS found, fav_contains_any(f, ARRAY(SELECT generate_series(1, 10000, 2))) AS deleted,
	md5(fav_add(f, 1)::bytea) = (SELECT md5(fav_add(p.f, 1)::bytea) FROM pinned p WHERE name = 'half deleted') AS same
FROM copied WHERE name = 'half deleted';

-- Binary input is checked like all other input (bytea has the same form on the wire)
CREATE TEMP TABLE wire (bytes bytea);
CREATE TEMP TABLE arrived (f fav);
INSERT INTO wire VALUES (fav_add(NULL, 42)::bytea);
\copy wire TO 'results/io.data' (FORMAT binary)
\copy arrived FROM 'results/io.data' (FORMAT binary)
UPDATE wire SET bytes = bytes || '\x00';
\copy wire TO 'results/io.data' (FORMAT binary)
\copy arrived FROM 'results/io.data' (FORMAT binary)
UPDATE wire SET bytes = '\x';
\copy wire TO 'results/io.data' (FORMAT binary)
\copy arrived FROM 'results/io.data' (FORMAT binary)
SELECT f @> 42 AS found FROM arrived;

-- Casts are explicit only
INSERT INTO arrived VALUES (fav_new()::bytea);
DROP TABLE pinned, copied, wire, arrived;
