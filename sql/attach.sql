--
-- Filters that maintain themselves: what every kind of statement does to them
--
CREATE TABLE hidden (user_id int, post_id bigint, note text, PRIMARY KEY (user_id, post_id));
INSERT INTO hidden SELECT u, p FROM generate_series(1, 3) u, generate_series(1, 20) p;

SELECT fav_attach('hidden', 'user_id', 'post_id');
SELECT source, key, element, target, target_key, filter, error_rate, active, filters, want_rebuild
FROM fav_attachments;
SELECT * FROM fav_verify('hidden');

-- Users have fewer than 128 pairs here, so filters are exact: any difference to the
-- source, either way, is a mistake.
CREATE VIEW differences AS
SELECT u AS user_id, p AS post_id, fav_contains(f.filter, p) AS in_filter, h.post_id IS NOT NULL AS in_source
FROM generate_series(1, 9) u CROSS JOIN generate_series(1, 120) p
LEFT JOIN hidden_fav f ON f.user_id = u
LEFT JOIN hidden h ON h.user_id = u AND h.post_id = p
WHERE fav_contains(f.filter, p) <> (h.post_id IS NOT NULL);

INSERT INTO hidden VALUES (1, 50);
INSERT INTO hidden VALUES (4, 1), (5, 1), (4, 2);
SELECT * FROM differences;
SELECT user_id, fav_count(filter) FROM hidden_fav ORDER BY 1;

COPY hidden (user_id, post_id) FROM stdin;
5	2
1	51
6	1
\.
SELECT * FROM differences;

-- keys, elements, both, neither
UPDATE hidden SET user_id = 7 WHERE user_id = 6;
UPDATE hidden SET post_id = post_id + 60 WHERE user_id = 1 AND post_id <= 10;
UPDATE hidden SET user_id = 8, post_id = post_id + 60 WHERE user_id = 2 AND post_id > 15;
UPDATE hidden SET note = 'seen';
SELECT * FROM differences;
-- a row that stays as it is does not even lock the filter
BEGIN;
UPDATE hidden SET note = 'seen again', user_id = user_id;
SELECT count(*) FROM hidden_fav WHERE pg_current_xact_id()::text IN (xmin::text, xmax::text);
COMMIT;

DELETE FROM hidden WHERE user_id = 3;
DELETE FROM hidden WHERE (user_id, post_id) = (1, 50);
DELETE FROM hidden WHERE post_id % 2 = 0;
SELECT * FROM differences;

-- ON CONFLICT: inserted, updated, moved, or left alone
INSERT INTO hidden VALUES (1, 51), (1, 52) ON CONFLICT DO NOTHING;
INSERT INTO hidden VALUES (1, 51, 'new'), (1, 53, 'new') ON CONFLICT (user_id, post_id) DO UPDATE SET note = 'again';
INSERT INTO hidden VALUES (1, 51), (1, 54) ON CONFLICT (user_id, post_id) DO UPDATE SET user_id = 9;
SELECT * FROM differences;
SELECT user_id, post_id FROM hidden WHERE post_id BETWEEN 51 AND 54 ORDER BY 1, 2;

-- one statement with several parts; the delete and the insert of one pair
WITH gone AS (DELETE FROM hidden WHERE user_id = 9 RETURNING user_id, post_id)
INSERT INTO hidden SELECT 8, post_id + 1 FROM gone;
SELECT * FROM differences;

DO $$
BEGIN
	IF current_setting('server_version_num')::int >= 150000 THEN
		EXECUTE 'MERGE INTO hidden h USING (VALUES (1, 51), (1, 52), (1, 55), (2, 1)) v (u, p)
			ON h.user_id = v.u AND h.post_id = v.p
			WHEN MATCHED AND v.u = 2 THEN UPDATE SET post_id = 100
			WHEN MATCHED THEN DELETE
			WHEN NOT MATCHED THEN INSERT VALUES (v.u, v.p)';
	END IF;
END $$;
SELECT * FROM differences;

-- NULLs are no pairs
CREATE TABLE loose (user_id int, post_id int);
INSERT INTO loose VALUES (1, NULL), (NULL, 1), (1, 1);
SELECT fav_attach('loose', 'user_id', 'post_id');
INSERT INTO loose VALUES (2, NULL), (NULL, 2), (NULL, NULL);
UPDATE loose SET post_id = 7 WHERE user_id = 2;
UPDATE loose SET post_id = NULL WHERE user_id = 1;
SELECT user_id, fav_count(filter), fav_contains(filter, 7), fav_contains(filter, 1) FROM loose_fav ORDER BY 1;

-- Without a unique index a pair stays until its last row is gone.
TRUNCATE loose;
SELECT user_id, fav_count(filter) FROM loose_fav ORDER BY 1;
INSERT INTO loose VALUES (1, 1), (1, 1), (1, 2);
DELETE FROM loose WHERE ctid = (SELECT min(ctid) FROM loose WHERE post_id = 1);
SELECT fav_contains(filter, 1) FROM loose_fav WHERE user_id = 1;
UPDATE loose SET post_id = 3 WHERE post_id = 1;
SELECT fav_contains(filter, 1) AS one, fav_contains(filter, 3) AS three FROM loose_fav WHERE user_id = 1;
INSERT INTO loose SELECT 1, 3 FROM generate_series(1, 5);
DELETE FROM loose WHERE post_id = 3;
SELECT fav_contains(filter, 3) FROM loose_fav WHERE user_id = 1;
-- An UPDATE that swaps.
INSERT INTO loose VALUES (1, 4), (2, 5);
UPDATE loose SET post_id = 9 - post_id WHERE post_id IN (4, 5);
UPDATE loose SET user_id = 3 - user_id WHERE post_id IN (4, 5);
SELECT user_id, fav_contains(filter, 4) AS four, fav_contains(filter, 5) AS five FROM loose_fav ORDER BY 1;
SELECT * FROM fav_verify('loose');

-- cascading deletes
CREATE TABLE users (id int PRIMARY KEY);
INSERT INTO users SELECT generate_series(1, 9);
ALTER TABLE hidden ADD FOREIGN KEY (user_id) REFERENCES users ON DELETE CASCADE ON UPDATE CASCADE;
DELETE FROM users WHERE id = 1;
UPDATE users SET id = 1 WHERE id = 2;
SELECT * FROM differences;
SELECT count(*) FROM hidden WHERE user_id = 1;

-- rolled back, in part and in whole
BEGIN;
SAVEPOINT s;
INSERT INTO hidden VALUES (3, 33);
ROLLBACK TO s;
INSERT INTO hidden VALUES (3, 34);
COMMIT;
BEGIN;
DELETE FROM hidden;
ROLLBACK;
SELECT * FROM differences;

TRUNCATE users CASCADE;
SELECT * FROM differences;
SELECT sum(fav_count(filter)) FROM hidden_fav;

-- by hand
INSERT INTO users SELECT generate_series(1, 9);
INSERT INTO hidden SELECT u, u * 10 FROM generate_series(1, 9) u;
UPDATE hidden_fav SET filter = fav_new() WHERE user_id IN (1, 2);
DELETE FROM hidden_fav WHERE user_id = 3;
SELECT missing FROM fav_verify('hidden');
SELECT fav_rebuild('hidden', '1');
SELECT missing FROM fav_verify('hidden');
SELECT fav_rebuild('hidden');
SELECT * FROM differences;
-- of a key that the source does not have
INSERT INTO hidden_fav VALUES (77, fav_add(NULL, 1));
SELECT fav_rebuild('hidden', '77');
SELECT fav_contains(filter, 1) FROM hidden_fav WHERE user_id = 77;
UPDATE hidden_fav SET filter = fav_add(filter, 1) WHERE user_id = 77;
SELECT fav_rebuild('hidden');
SELECT fav_contains(filter, 1) FROM hidden_fav WHERE user_id = 77;
SELECT fav_rebuild('hidden', 'seven');

SELECT fav_detach('hidden');
INSERT INTO hidden VALUES (1, 99);
SELECT * FROM differences;
SELECT source FROM fav_attachments;
SELECT count(*) FROM pg_trigger WHERE tgrelid = 'hidden'::regclass AND NOT tgisinternal;
-- and back: the table is used again
SELECT fav_attach('hidden', 'user_id', 'post_id');
SELECT * FROM differences;

-- A column of one's own; NULL there is the empty filter.
CREATE TABLE members (id bigint PRIMARY KEY, name text, hidden fav, blocked fav DEFAULT fav_new());
INSERT INTO members SELECT i, 'm' || i FROM generate_series(1, 5) i;
CREATE TABLE blocks (who int, whom int, PRIMARY KEY (who, whom));
INSERT INTO blocks VALUES (1, 2), (1, 3), (2, 1);
SELECT fav_attach('blocks', 'who', 'whom', 'members', filter => 'blocked');
SELECT fav_attach('hidden', 'user_id', 'post_id', 'members', 'id', 'hidden', error_rate => 0.001);
SELECT id, name, fav_count(hidden) AS hidden, fav_count(blocked) AS blocked FROM members ORDER BY id;
INSERT INTO blocks VALUES (3, 1), (7, 1);
SELECT id, name, fav_count(blocked) AS blocked FROM members ORDER BY id;
SELECT source, target, filter, error_rate, active, filters FROM fav_attachments ORDER BY source::text, target::text;
-- two attachments of one source
SELECT fav_verify('hidden');
SELECT missing FROM fav_verify('hidden', 'members');
SELECT missing FROM fav_verify('hidden', 'hidden_fav', 'filter');
SELECT fav_detach('hidden');
SELECT fav_detach('hidden', 'members');
SELECT fav_detach('hidden', 'members');
INSERT INTO hidden VALUES (2, 98);
SELECT * FROM differences;
-- the rate that was asked for
SELECT (fav_stats(hidden)).error_rate FROM members WHERE id = 1;

-- a filter with another seed, put there by somebody
UPDATE members SET blocked = fav_add(fav_new(seed => 5), '{2,3}'::bigint[]) WHERE id = 1;
INSERT INTO blocks VALUES (1, 4), (1, 5);
DELETE FROM blocks WHERE who = 1 AND whom IN (2, 4);
SELECT ARRAY(SELECT i FROM generate_series(1, 9) i WHERE blocked @> i) FROM members WHERE id = 1;

-- many rows, more than memory takes
SET work_mem = '64kB';
INSERT INTO hidden SELECT 1 + i % 9, 1000 + i FROM generate_series(1, 20000) i;
UPDATE hidden SET post_id = post_id + 100000 WHERE post_id % 3 = 0;
DELETE FROM hidden WHERE post_id % 7 = 0;
SELECT missing, false_positive_rate < 0.01 AS good FROM fav_verify('hidden');
RESET work_mem;

DROP TABLE hidden, users, loose, blocks CASCADE;
SELECT count(*) FROM fav_attachments;
DROP TABLE hidden_fav, loose_fav, members CASCADE;
