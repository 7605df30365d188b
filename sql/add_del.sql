-- Adding is idempotent, deletes hold, and repeated changes of one element cost nothing.

-- add, add, del: absent
SELECT f @> 1 AS added_twice, fav_count(f) AS count FROM fav_add(fav_add(NULL, 1), 1) f;
SELECT f @> 1 AS deleted, fav_count(f) AS count FROM fav_del(fav_add(fav_add(NULL, 1), 1), 1) f;
SELECT fav_add(fav_add(NULL, 1), 1)::bytea = fav_add(NULL, 1)::bytea AS same;

-- Deleting an element that the filter does not contain changes nothing
SELECT fav_del(f, 2)::bytea = f::bytea AS "bigint", fav_del(f, '2'::text)::bytea = f::bytea AS "text",
	fav_del(f, ARRAY[2, 3])::bytea = f::bytea AS "array"
FROM fav_add(NULL, 1) f;
SELECT fav_del(f, 1, 1)::bytea = f::bytea AS pair, fav_del(f, 2, 1)::bytea = f::bytea AS other_order FROM fav_add(NULL, 1, 2) f;
SELECT fav_del(fav_new(), 1)::bytea = fav_new()::bytea AS empty;

-- All kinds of elements can be deleted
SELECT fav_contains(fav_del(t, 'a'::text), 'a'::text) AS "text", fav_contains(fav_del(b, '\x61'::bytea), '\x61'::bytea) AS "bytea",
	fav_contains(fav_del(p, 1, 2), 1, 2) AS pair,
	fav_contains(fav_del(u, '00000000-0000-0000-0000-000000000001'::uuid), '00000000-0000-0000-0000-000000000001'::uuid) AS "uuid"
FROM fav_add(NULL, ARRAY['a', 'b']) t, fav_add(NULL, ARRAY['\x61', '\x62']::bytea[]) b, fav_add(fav_add(NULL, 1, 2), 1, 3) p,
	fav_add(NULL, ARRAY['00000000-0000-0000-0000-000000000001', '00000000-0000-0000-0000-000000000002']::uuid[]) u;

-- The same with slices.  Adding all elements again, in any order and any number of times,
-- changes nothing.  Deleting each element once leaves none.
CREATE TEMP TABLE f10k AS SELECT fav_add(fav_new(capacity => 10000), ARRAY(SELECT generate_series(1, 10000))) AS f;
CREATE TEMP TABLE again AS
SELECT fav_add(fav_add(f, ARRAY(SELECT generate_series(10000, 1, -1))), ARRAY(SELECT generate_series(1, 10000))) AS f FROM f10k;
SELECT (fav_stats(again.f)).slices = (fav_stats(f10k.f)).slices AS no_slice_more,
	pg_column_size(again.f) - pg_column_size(f10k.f) <= 128 * 8 AS no_larger,
	abs(fav_count(again.f) - 10000) < 200 AS counted
FROM again, f10k;
UPDATE again SET f = fav_del(f, ARRAY(SELECT generate_series(1, 10000)));
SELECT fav_contains_any(f, ARRAY(SELECT generate_series(1, 10000))) AS present, fav_count(f) < 100 AS counted FROM again;

-- The protocol of the original filter: a tenth is deleted.  No deleted element is present, no other element is lost.
WITH tenth AS MATERIALIZED (SELECT fav_del(f, ARRAY(SELECT generate_series(1, 1000))) AS f FROM f10k)
SELECT count(*) FILTER (WHERE i <= 1000 AND fav_contains(f, i)) AS deleted_but_present,
	count(*) FILTER (WHERE i > 1000 AND NOT fav_contains(f, i)) AS lost
FROM tenth, generate_series(1, 10000) i;

-- One at a time, each probed right after its delete
DO $$
DECLARE
	f fav := (SELECT f FROM f10k);
BEGIN
	FOR i IN 1..2000 LOOP
		f := fav_del(f, i * 5);
		ASSERT NOT fav_contains(f, i * 5), format('%s is deleted and present', i * 5);
		ASSERT i % 100 > 0 OR fav_contains_all(f, ARRAY(SELECT n FROM generate_series(1, 10000) n WHERE n % 5 > 0 OR n > i * 5)),
			format('something was lost before %s', i * 5);
	END LOOP;
END
$$;

-- Block, unblock, block, ...: a thousand times neither grows the value nor weakens it.
-- The element is a new one, or one that shares bits with others.
DO $$
DECLARE
	f fav := (SELECT f FROM f10k);
	size int := pg_column_size(f);
	x bigint;
BEGIN
	FOREACH x IN ARRAY ARRAY[1, 4711, 10000, 10001, 123456789] LOOP
		FOR i IN 1..1000 LOOP
			f := fav_add(f, x);
			ASSERT fav_contains(f, x), format('%s is lost after %s rounds', x, i);
			f := fav_del(f, x);
			ASSERT NOT fav_contains(f, x), format('%s is back after %s rounds', x, i);
		END LOOP;
		f := fav_add(f, x);
	END LOOP;
	ASSERT fav_contains_all(f, ARRAY(SELECT generate_series(1, 10000))), 'something was lost';
	ASSERT pg_column_size(f) < size + 128 * 8 + 100, 'it has grown';
	ASSERT abs(fav_count(f) - 10002) < 100, 'it has lost count';
END
$$;

-- Ten elements are added and deleted in turn, through many flushes
DO $$
DECLARE
	f fav;
BEGIN
	FOR i IN 1..3000 LOOP
		f := fav_add(f, i);
		IF i % 2 = 0 THEN
			f := fav_del(f, 1000000 + i / 2 % 10);
		ELSE
			f := fav_add(f, 1000000 + i / 2 % 10);
		END IF;
		IF i > 1000 THEN
			f := fav_del(f, i - 1000);
		END IF;
		ASSERT i % 50 > 0 OR fav_contains_all(f, ARRAY(SELECT generate_series(greatest(1, i - 999), i))), 'something was lost';
	END LOOP;
	ASSERT (fav_stats(f)).slices <= 3, 'too many slices';
	ASSERT NOT fav_contains(f, 1000000 + 3000 / 2 % 10), 'the last one unblocked is back';
END
$$;

-- A filter without a single bit set becomes the empty value again, with its parameters
SELECT (fav_stats(f)).slices AS slices, fav_del(f, ARRAY(SELECT generate_series(1, 200)))::bytea = fav_new(1000000, 0.001)::bytea AS empty_again
FROM fav_add(fav_new(1000000, 0.001), ARRAY(SELECT generate_series(1, 200))) f;

-- A deleted element can be added again
WITH back AS MATERIALIZED (
	SELECT fav_add(fav_del(f, ARRAY(SELECT generate_series(1, 5000))), ARRAY(SELECT generate_series(2500, 5000))) AS f FROM f10k)
SELECT count(*) FILTER (WHERE NOT fav_contains(f, i)) AS lost FROM back, generate_series(2500, 10000) i;

DROP TABLE f10k, again;
