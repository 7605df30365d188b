-- From results to Markdown.

CREATE VIEW medians AS
	SELECT section, ids, size, contender, min(n) AS n,
		percentile_cont(0.5) WITHIN GROUP (ORDER BY value) AS value, count(*) AS repetitions
	FROM results GROUP BY 1, 2, 3, 4;

CREATE FUNCTION size_name(size bigint) RETURNS text LANGUAGE sql IMMUTABLE AS $$
	SELECT CASE WHEN size >= 1000000 THEN round(size / 1e6, 1)::float8 || 'M'
		WHEN size >= 1000 THEN round(size / 1e3, 1)::float8 || 'k' ELSE size::text END $$;

-- Three significant digits.
CREATE FUNCTION number_name(value float8) RETURNS text LANGUAGE sql IMMUTABLE AS $$
	SELECT CASE WHEN value IS NULL THEN 'too long'
		WHEN value >= 100 THEN to_char(value, 'FM999,999,999,990')
		WHEN value >= 10 THEN to_char(value, 'FM990.0')
		ELSE to_char(value, 'FM990.00') END $$;

-- A table with a row for each contender and a column for each size.  With a base, each cell
-- also has the ratio to the base.
CREATE FUNCTION pivot(of_section text, of_ids text, base text DEFAULT NULL) RETURNS SETOF text
LANGUAGE sql AS $$
	WITH m AS (SELECT * FROM medians WHERE section = of_section AND ids = of_ids),
	sizes AS (SELECT DISTINCT size FROM m),
	contenders AS (SELECT contender, min(n) AS n FROM m GROUP BY 1),
	cells AS (
		SELECT c.contender, c.n, s.size,
			CASE WHEN m.contender IS NULL THEN '' ELSE number_name(m.value) ||
				CASE WHEN b.value > 0 AND m.value IS NOT NULL AND m.contender <> base
					THEN ' (' || to_char(m.value / b.value, 'FM9999990.00') || ')' ELSE '' END END AS cell
		FROM contenders c CROSS JOIN sizes s
		LEFT JOIN m ON m.contender = c.contender AND m.size = s.size
		LEFT JOIN m b ON b.contender = base AND b.size = s.size
	)
	SELECT '| | ' || string_agg(size_name(size), ' | ' ORDER BY size) || ' |' FROM sizes
	UNION ALL SELECT '|---|' || string_agg('---:', '|') || '|' FROM sizes
	UNION ALL (SELECT '| ' || contender || ' | ' || string_agg(cell, ' | ' ORDER BY size) || ' |'
		FROM cells GROUP BY contender, n ORDER BY n)
$$;

CREATE FUNCTION med(of_section text, of_ids text, of_size bigint, of_contender text) RETURNS float8
LANGUAGE sql STABLE AS $$
	SELECT value FROM medians WHERE section = of_section AND ids = of_ids AND size = of_size
		AND contender = of_contender $$;

-- The measurements of one round were made one after the other, so a long disturbance affects all
-- contenders alike.  Ratios are computed within a round, and the result is their median.
CREATE VIEW rounds AS
	SELECT section, ids, size, contender, value,
		row_number() OVER (PARTITION BY section, ids, size, contender ORDER BY n) AS round
	FROM results;

CREATE FUNCTION ratio(of_section text, of_ids text, of_size bigint, of_contender text, base text, bare text DEFAULT NULL)
RETURNS float8 LANGUAGE sql STABLE AS $$
	SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY (a.value - coalesce(c.value, 0)) / nullif(b.value - coalesce(c.value, 0), 0))
	FROM rounds a
	JOIN rounds b ON (b.section, b.ids, b.size, b.round) = (a.section, a.ids, a.size, a.round) AND b.contender = base
	LEFT JOIN rounds c ON (c.section, c.ids, c.size, c.round) = (a.section, a.ids, a.size, a.round) AND c.contender = bare
	WHERE a.section = of_section AND a.ids = of_ids AND a.size = of_size AND a.contender = of_contender $$;

-- The targets, each with the ratio measured in this run.
CREATE VIEW targets AS
	WITH s AS (SELECT DISTINCT ids, size FROM medians WHERE section = 'scan'),
	f AS (SELECT DISTINCT ids, size FROM medians WHERE section = 'page of 500')
	SELECT 1 AS n, 'scan, ' || ids || ' ids, ' || size_name(size) AS what, 'time, of NOT EXISTS' AS measure,
		ratio('scan', ids, size, 'fav', 'NOT EXISTS') AS ratio,
		CASE WHEN size >= 1000000 THEN 0.5 ELSE 1.1 END AS at_most, NULL::float8 AS at_least, size FROM s
	UNION ALL
	SELECT 2, 'scan, ' || ids || ' ids, ' || size_name(size), 'what it adds, of the cheapest call',
		ratio('scan', ids, size, 'fav', 'cheapest call', 'no filter'), 2, NULL, size FROM s
	UNION ALL
	SELECT 3, 'page of 500, ' || ids || ' ids, ' || size_name(size), 'pages/s, of the cheapest call',
		ratio('page of 500', ids, size, 'fav', 'cheapest call'), NULL, 0.7, size FROM f
	UNION ALL
	SELECT 4, 'page of 500, ' || ids || ' ids, ' || size_name(size), 'pages/s, of the best other contender',
		(SELECT min(ratio('page of 500', f.ids, f.size, 'fav', contender)) FROM medians m
			WHERE section = 'page of 500' AND m.ids = f.ids AND m.size = f.size
			AND contender !~ '^(fav|no filter|cheapest)'), NULL, 1, size
	FROM f WHERE size >= 1000
	UNION ALL
	SELECT 5, 'join over many users', 'time a row, of the scan with one small filter',
		med('join', '', 0, 'a page for every user, fav') / med('scan', 'random', 100, 'fav') *
			(SELECT count(*) FROM posts_random) / (SELECT count(*) FROM candidates_by_user), 2, NULL, 0
	UNION ALL
	SELECT 6, 'one probe', 'time, of a filter of 100 kB', max(m.value) / med('probe', '', 100000, 'fav'), 3, NULL, 0
	FROM medians m WHERE section = 'probe' AND contender = 'fav' AND size >= 100000
	UNION ALL
	SELECT 7, 'core, ' || operation, 'ns, of the cuckoo filter',
		ratio('core', '', 0, 'fav, sized: ' || operation, 'cuckoo: ' || split_part(operation, ',', 1)), 1.5, NULL, 0
	FROM unnest(ARRAY['miss', 'miss, many', 'hit', 'hit, many', 'insert', 'delete', 'delete, many']) operation
	UNION ALL
	SELECT 8, 'aggregate of ' || size_name(size), 'time, of array_agg',
		ratio('aggregate', '', size, 'fav_agg', 'array_agg'), 1.5, NULL, size
	FROM medians WHERE section = 'aggregate' AND contender = 'fav_agg'
	UNION ALL
	SELECT 9, 'aggregate of ' || size_name(size), 'time, of count(DISTINCT)',
		ratio('aggregate', '', size, 'fav_agg', 'count(DISTINCT)'), 1, NULL, size
	FROM medians WHERE section = 'aggregate' AND contender = 'fav_agg'
	UNION ALL
	SELECT 10, 'aggregate of ' || size_name(size), 'speed with two workers, of serial',
		ratio('aggregate', '', size, 'fav_agg', 'fav_agg, two workers'), NULL, CASE WHEN size >= 10000000 THEN 1 END, size
	FROM medians WHERE section = 'aggregate' AND contender = 'fav_agg, two workers'
	UNION ALL
	SELECT 11, 'count(x) of ' || size_name(size), 'speed with two workers, of serial',
		ratio('aggregate', '', size, 'count', 'count, two workers'), NULL, NULL, size
	FROM medians WHERE section = 'aggregate' AND contender = 'count, two workers'
	UNION ALL
	SELECT 12, 'attached, single rows, ' || ids || ', ' || size_name(size), 'rows/s, of a trigger by hand',
		ratio('attached, single rows', ids, size, 'fav_attach', 'trigger by hand'), NULL,
		CASE WHEN size < 10000 THEN 0.8 ELSE 5 END, size
	FROM medians WHERE section = 'attached, single rows' AND contender = 'fav_attach' AND size IN (100, 10000)
	UNION ALL
	SELECT 13, 'attached, 100,000 rows, ' || ids, 'speed, of a trigger by hand',
		ratio('attached, bulk', ids, 0, 'trigger by hand', 'fav_attach'), NULL, 10, 0
	FROM medians WHERE section = 'attached, bulk' AND contender = 'fav_attach'
	UNION ALL
	SELECT 14, 'attached, WAL, ' || ids || ', ' || size_name(size), 'of inserting the pair alone',
		value / med('attached, WAL', 'INSERT', size, 'nothing'), CASE WHEN size < 1000000 THEN 2 ELSE 3 END, NULL, size
	FROM medians WHERE section = 'attached, WAL' AND contender = 'fav_attach'
	UNION ALL
	SELECT 15, 'attached, page of 500, ' || contender || ', ' || size_name(size), 'pages/s, of a plain column',
		ratio('attached, page of 500', '', size, contender, 'plain column'), NULL, CASE WHEN size >= 100000 THEN 0.83 END, size
	FROM medians WHERE section = 'attached, page of 500' AND contender LIKE '\_has%'
	UNION ALL
	SELECT 16, 'attached, page of 500, view, ' || size_name(size), 'pages/s, of a plain column',
		ratio('attached, page of 500', '', size, 'view, sub-select', 'plain column'), NULL,
		CASE WHEN size <= 10000 THEN 0.8 WHEN size <= 100000 THEN 0.5 END, size
	FROM medians WHERE section = 'attached, page of 500' AND contender = 'view, sub-select'
	UNION ALL
	SELECT 17, 'one probe of levels', 'time, of a base of 100 kB', max(m.value) / med('probe', '', 100000, 'fav, as base'), 5, NULL, 0
	FROM medians m WHERE section = 'probe' AND contender = 'fav, as base' AND size >= 100000
	UNION ALL
	SELECT 18, 'base, ' || size_name(size), 'bits per element', value, 12.3, NULL, size
	FROM medians WHERE section = 'attached, bits' AND size >= 10000
	UNION ALL
	SELECT 21, 'shared by 200, 5 pairs per user', 'bytes per pair', value, 3, NULL, size
	FROM medians WHERE section = 'shared, bytes' AND contender = 'shared' AND size = 5
	UNION ALL
	SELECT 22, 'shared, WAL, ' || ids || ', ' || size || ' pairs per user', 'of inserting the pair alone',
		value / med('shared, WAL', 'INSERT', size, 'nothing'), 2, NULL, size
	FROM medians WHERE section = 'shared, WAL' AND contender = 'shared'
	UNION ALL
	SELECT 23, 'shared, page of 500, ' || size || ' pairs per user', 'pages/s, of a filter each',
		ratio('shared, page of 500', '', size, 'shared', 'a filter each'), NULL, 0.8, size
	FROM medians WHERE section = 'shared, page of 500' AND contender = 'shared'
	UNION ALL
	SELECT 24, 'fav_build, ' || ids || ', ' || size || ' pairs per user', 'speed, of INSERT ... GROUP BY',
		ratio('shared, build', ids, size, 'INSERT ... GROUP BY', 'fav_build'), NULL, 0.7, size
	FROM medians WHERE section = 'shared, build' AND contender = 'fav_build'
	UNION ALL
	SELECT 25, contender || ', WAL, ' || size_name(size), 'of 50 rows with a primary key', value / med('sink, WAL', '', size, 'rows'), 0.5, NULL, size
	FROM medians WHERE section = 'sink, WAL' AND contender LIKE 'sink%'
	UNION ALL
	SELECT 26, contender || ', page view, ' || size_name(size), 'time, of 50 rows with a primary key', value / med('sink, page view', '', size, 'rows'), 1, NULL, size
	FROM medians WHERE section = 'sink, page view' AND contender LIKE 'sink%'
	UNION ALL
	SELECT 27, contender || ', page of 500, ' || size_name(size), 'pages/s, of an attached filter',
		ratio('sink, page of 500', '', size, contender, 'attached'), NULL, 0.7, size
	FROM medians WHERE section = 'sink, page of 500' AND contender LIKE 'sink%'
	UNION ALL
	SELECT 28, contender || ', page of 500, ' || size_name(size), 'pages/s, of SMISMEMBER',
		ratio('redis, page of 500', '', size, contender, 'candidates, then SMISMEMBER'), NULL, NULL, size
	FROM medians WHERE section = 'redis, page of 500' AND contender !~ 'SMISMEMBER'
	UNION ALL
	SELECT 19, size || ' filters in turn', 'time, of as many probes to one', ratio('turn', '', size, 'many in turn', 'one filter'), 2, NULL, size
	FROM medians WHERE section = 'turn' AND contender = 'many in turn'
	UNION ALL
	SELECT 20, 'loop of ' || size_name(size) || ' adds', 'speed, of copying', ratio('loop', '', size, 'the same, copying', 'f := fav_add(f, i)'),
		NULL, CASE WHEN size >= 100000 AND current_setting('server_version_num')::int >= 180000 THEN 20 END, size
	FROM medians WHERE section = 'loop' AND contender = 'the same, copying'
	UNION ALL
	SELECT 21, 'loop of 100k adds', 'time, of 10k adds', med('loop', '', 100000, 'f := fav_add(f, i)') / med('loop', '', 10000, 'f := fav_add(f, i)'),
		CASE WHEN current_setting('server_version_num')::int >= 180000 THEN 12 END, NULL, 0;

CREATE FUNCTION targets_table() RETURNS SETOF text LANGUAGE sql AS $$
	SELECT '| | | ratio | target | |' UNION ALL SELECT '|---|---|---:|---:|---|'
	UNION ALL (SELECT format('| %s | %s | %s | %s | %s |', what, measure, to_char(ratio, 'FM9990.00'),
		CASE WHEN at_most IS NOT NULL THEN '≤ ' || at_most WHEN at_least IS NOT NULL THEN '≥ ' || at_least ELSE '' END,
		-- negative: a disturbance was larger than the measured time
		CASE WHEN ratio <= 0 THEN 'noise' WHEN coalesce(at_most, at_least) IS NULL THEN 'to compare with' WHEN ratio <= at_most OR ratio >= at_least THEN 'reached' ELSE '**missed**' END)
	FROM targets WHERE ratio IS NOT NULL ORDER BY n, split_part(what, ',', 2), size)
$$;
