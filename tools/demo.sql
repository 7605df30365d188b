-- What tools/demo does not show: its people and posts, which are made up but the same ones every
-- time, its race and its bill.

SET check_function_bodies = off;      -- the tables come later

CREATE FUNCTION demo_name(id bigint) RETURNS text LANGUAGE sql IMMUTABLE AS $$
	SELECT CASE id WHEN 1 THEN 'Mira Holm' WHEN 13 THEN 'Crypto Kevin' ELSE
		(ARRAY['Ada', 'Bruno', 'Carla', 'Dmitri', 'Elif', 'Farid', 'Greta', 'Hugo', 'Ines', 'Jonas',
			'Kaya', 'Lars', 'Maja', 'Nikos', 'Olga', 'Pavel', 'Quinn', 'Rosa', 'Sven', 'Tara',
			'Umar', 'Vera', 'Wanda', 'Xenia', 'Yusuf', 'Zoe', 'Amara', 'Boris', 'Chloe', 'Diego',
			'Emma', 'Finn', 'Gita', 'Henri', 'Isla', 'Jakub', 'Kiran', 'Lucia', 'Milan', 'Noor']
		)[1 + id % 40] || ' ' ||
		(ARRAY['Abel', 'Berg', 'Costa', 'Dahl', 'Evans', 'Fischer', 'Garcia', 'Hansen', 'Ivanov', 'Jansen',
			'Kowalski', 'Lopez', 'Meyer', 'Novak', 'Okafor', 'Petrov', 'Quist', 'Rossi', 'Silva', 'Tanaka',
			'Ueda', 'Virtanen', 'Weber', 'Xu', 'Yilmaz', 'Zhang', 'Arslan', 'Bauer', 'Conti', 'Duarte',
			'Ekman', 'Ferrari', 'Grimm', 'Horvat', 'Ibsen', 'Jovic', 'Keller', 'Lind', 'Moreau', 'Nagy',
			'Olsen', 'Popov', 'Ramos', 'Singh', 'Toth', 'Urban', 'Vogel', 'Wolf', 'Young', 'Zimmer']
		)[1 + (id / 40 * 7 + id) % 50]
	END
$$;

-- Kevin writes more than his share.
CREATE FUNCTION demo_author(post bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
	SELECT CASE WHEN post % 3 = 1 THEN 13 ELSE 2 + (post * 7907) % 1999 END
$$;

CREATE FUNCTION demo_title(post bigint) RETURNS text LANGUAGE sql IMMUTABLE AS $$
	SELECT CASE
		WHEN post = 19998 THEN 'Spoiler: in the finale, the lighthouse keeper did it'
		WHEN post % 3 = 1 THEN
			(ARRAY['Your savings are ASLEEP. Wake them up!', 'This coin will change your Tuesday',
				'I am not a financial adviser, BUT', 'Ten times your money before lunch',
				'They do not want you to read this chart']
			)[1 + post / 3 % 5]
		ELSE
		(ARRAY['My sourdough', 'The neighbour''s cat', 'Our tiny balcony', 'This old bicycle', 'The night train',
			'Grandma''s typewriter', 'A very small dog', 'The village choir', 'My first marathon',
			'The lake this morning', 'That one lamp', 'The corner bakery', 'An unread library book',
			'Our tomato plant', 'The office printer', 'A borrowed telescope', 'My left shoe',
			'The last tram', 'Somebody''s umbrella', 'The school play', 'A handwritten map',
			'The new bridge', 'My third attempt'])[1 + post * 31 % 23] || ' ' ||
		(ARRAY['has opinions about Mondays', 'won a prize today', 'finally works again',
			'is not what I ordered', 'deserves a postcard', 'made a stranger laugh',
			'smells of rain', 'is back from repair', 'was worth the wait', 'has been adopted',
			'is two centuries old', 'turned out purple', 'needs a better name',
			'went missing, then did not', 'is louder than expected', 'taught me patience',
			'is for sale, I am sorry to say', 'has a secret door', 'looks better in black and white'
		])[1 + post * 17 % 19]
	END
$$;

CREATE FUNCTION demo_bar(part numeric, whole numeric, width int) RETURNS text LANGUAGE sql AS $$
	SELECT repeat(current_setting('demo.bar'), greatest(1, round(width * part / whole)::int))
$$;

-- How many pages a second: runs the query for random first posts, for so long.
CREATE FUNCTION demo_pages(query text, seconds int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	finish timestamptz := clock_timestamp() + make_interval(secs => seconds);
	pages bigint := 0;
BEGIN
	EXECUTE 'PREPARE page (bigint) AS ' || query;
	WHILE clock_timestamp() < finish LOOP
		EXECUTE format('EXECUTE page (%s)', (random() * 19500)::bigint);
		pages := pages + 1;
	END LOOP;
	DEALLOCATE page;
	RETURN pages / seconds;
END $$;

CREATE FUNCTION demo_race(seconds int, OUT way text, OUT "pages a second" bigint, OUT " " text)
RETURNS SETOF record LANGUAGE sql AS $$
	SELECT way, pages, demo_bar(pages, max(pages) OVER (), 28)
	FROM (SELECT way, demo_pages(
			'SELECT count(*) FROM posts p WHERE p.id BETWEEN $1 AND $1 + 499 AND NOT ' || condition,
			seconds) AS pages
		FROM (VALUES
			('NOT EXISTS',
				'EXISTS (SELECT FROM hidden h WHERE h.reader = 50 AND h.post = p.id)'),
			('NOT EXISTS, look-ups',
				'EXISTS (SELECT FROM hidden h WHERE h.reader = 50 AND h.post = p.id OFFSET 0)'),
			('NOT hidden_has', 'hidden_has(50, p.id)')) ways (way, condition)) result
$$;

CREATE FUNCTION demo_bill(OUT item text, OUT size text, OUT "bytes a pair" numeric, OUT " " text)
RETURNS SETOF record LANGUAGE sql AS $$
	SELECT item, pg_size_pretty(bytes), round(bytes / pairs, 1),
		demo_bar(bytes / pairs, max(bytes / pairs) OVER (), 16)
	FROM (SELECT number, item, pg_total_relation_size(relation::regclass)::numeric AS bytes,
			CASE source
				WHEN 'hidden' THEN (SELECT count(*) FROM hidden)
				WHEN 'blocked' THEN (SELECT count(*) FROM blocked)
				ELSE (SELECT sum(fav_count(filter)) FROM seen_fav)
			END AS pairs
		FROM (VALUES
			(1, 'hidden, with its primary key', 'hidden', 'hidden'),
			(2, '  its filters', 'hidden', 'hidden_fav_levels'),
			(3, 'blocked, with its primary key', 'blocked', 'blocked'),
			(4, '  its filters, shared by 100', 'blocked', 'blocked_fav_levels'),
			(5, 'seen: filters, no rows', 'seen', 'seen_fav_levels')
			) items (number, item, source, relation)) sizes
	ORDER BY number
$$;
