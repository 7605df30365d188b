-- Churn: elements are added and deleted, and the number of live elements stays the same.

-- 10,000 live elements; a turnover replaces all of them, 100 at a time.  Elements that were
-- just deleted are not found, all live elements are.  Until fav_needs_rebuild is true, the
-- filter keeps its error rate and stays below three times its first size.
CREATE TEMP TABLE worn (turnover int, f fav);
DO $$
DECLARE
	live constant int := 10000;
	step constant int := 100;
	f fav := fav_add(fav_new(live), ARRAY(SELECT generate_series(1, live)));
	fresh constant int := pg_column_size(f);
	gone bigint[];
	first int := 1;				-- the oldest live element
BEGIN
	INSERT INTO worn VALUES (0, f);
	FOR turnover IN 1..20 LOOP
		FOR part IN 1..live / step LOOP
			gone := ARRAY(SELECT generate_series(first, first + step - 1));
			f := fav_del(f, gone);
			ASSERT NOT fav_contains_any(f, gone), 'a deleted element is present';
			f := fav_add(f, ARRAY(SELECT generate_series(first + live, first + live + step - 1)));
			first := first + step;
			ASSERT part % 5 > 0 OR fav_contains_all(f, ARRAY(SELECT generate_series(first, first + live - 1))), 'an element is lost';
			IF NOT fav_needs_rebuild(f) THEN
				ASSERT pg_column_size(f) <= 3 * fresh, 'too large, and does not say so';
				ASSERT (fav_stats(f)).estimated_error <= 0.01, 'too many errors, and does not say so';
			END IF;
		END LOOP;
		INSERT INTO worn VALUES (turnover, f);
	END LOOP;
END
$$;

-- fav_needs_rebuild is false for a fresh filter, and true and stays true for a bloated one
SELECT turnover, fav_needs_rebuild(f) AS needs_rebuild FROM worn WHERE turnover IN (0, 20) ORDER BY turnover;
SELECT count(*) AS took_it_back FROM worn a JOIN worn b ON b.turnover = a.turnover + 1
WHERE fav_needs_rebuild(a.f) AND NOT fav_needs_rebuild(b.f);

-- Also in a bloated filter, at most 1 % of the elements that were never added are found (a
-- fifth more is allowed for chance), and the results of fav_stats are consistent
SELECT count(*) FILTER (WHERE 20000 - cardinality(fav_filter(f, ARRAY(SELECT generate_series(5000001, 5020000)))) > 20000 * 0.01 * 1.2) AS too_many_errors,
	count(*) FILTER (WHERE s.estimated_error > 0.01) AS estimated_too_many,
	count(*) FILTER (WHERE s.needs_rebuild <> fav_needs_rebuild(f) OR s.elements <> fav_count(f) OR s.bloat < 1) AS contradictions
FROM worn, fav_stats(f) s;
DROP TABLE worn;

-- One full turnover of a filter that grew from nothing: at most 1 % of the elements that were
-- deleted long ago are found, as of elements that were never added
DO $$
DECLARE
	f fav := fav_add(fav_new(), ARRAY(SELECT generate_series(1, 10000)));
BEGIN
	FOR i IN 0..99 LOOP
		f := fav_add(f, ARRAY(SELECT generate_series(10001 + i * 100, 10100 + i * 100)));
		f := fav_del(f, ARRAY(SELECT generate_series(1 + i * 100, 100 + i * 100)));
	END LOOP;
	ASSERT fav_contains_all(f, ARRAY(SELECT generate_series(10001, 20000))), 'an element is lost';
	ASSERT 10000 - cardinality(fav_filter(f, ARRAY(SELECT generate_series(1, 10000)))) <= 10000 * 0.01, 'too many came back';
END
$$;

-- Small sets never become bloated: they are lists
DO $$
DECLARE
	f fav;
BEGIN
	FOR i IN 1..10000 LOOP
		f := fav_del(fav_add(f, i), i - 100);
	END LOOP;
	ASSERT fav_count(f) = 100 AND pg_column_size(f) <= 64 + 800 AND NOT fav_needs_rebuild(f);
	ASSERT (fav_stats(f)).slices = 0;
END
$$;
