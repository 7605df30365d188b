--
-- Filters that maintain themselves: together with triggers of the user's, in any
-- order, and with statements within statements
--
CREATE TABLE pairs (k int, e int, PRIMARY KEY (k, e));
SELECT fav_attach('pairs', 'k', 'e');
CREATE VIEW differences AS
SELECT g.k, x.e FROM generate_series(0, 9) g (k) CROSS JOIN generate_series(0, 120) x (e) LEFT JOIN pairs_fav f ON f.k = g.k
WHERE fav_contains(f.filter, x.e) <> EXISTS (SELECT FROM pairs p WHERE p.k = g.k AND p.e = x.e);

-- before rows: another pair is stored, or none
CREATE FUNCTION before_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NEW.e = 13 THEN RETURN NULL; END IF;
	NEW.e := NEW.e + 1;
	RETURN NEW;
END $$;
CREATE TRIGGER change BEFORE INSERT OR UPDATE ON pairs FOR EACH ROW EXECUTE FUNCTION before_row();
INSERT INTO pairs VALUES (1, 1), (1, 5), (2, 13);
UPDATE pairs SET k = 2 WHERE e = 2;
SELECT * FROM pairs ORDER BY 1, 2;
SELECT * FROM differences;
DROP TRIGGER change ON pairs;

-- after rows: what was inserted is deleted at once, before our trigger has heard of it
CREATE FUNCTION delete_it() RETURNS trigger LANGUAGE plpgsql AS
	$$ BEGIN DELETE FROM pairs WHERE k = NEW.k AND e = NEW.e AND e % 2 = 0; RETURN NULL; END $$;
CREATE TRIGGER a_delete AFTER INSERT ON pairs FOR EACH ROW EXECUTE FUNCTION delete_it();
INSERT INTO pairs SELECT 3, generate_series(1, 20);
INSERT INTO pairs VALUES (4, 4);
SELECT * FROM differences;
DROP TRIGGER a_delete ON pairs;
-- what was deleted is put back, by triggers before and after ours
CREATE FUNCTION put_back() RETURNS trigger LANGUAGE plpgsql AS
	$$ BEGIN INSERT INTO pairs SELECT * FROM old_pairs WHERE e % 3 = 0; RETURN NULL; END $$;
CREATE TRIGGER a_put_back AFTER DELETE ON pairs REFERENCING OLD TABLE AS old_pairs
	FOR EACH STATEMENT EXECUTE FUNCTION put_back();
DELETE FROM pairs WHERE k = 3;
SELECT * FROM differences;
SELECT count(*) FROM pairs WHERE k = 3;
ALTER TRIGGER a_put_back ON pairs RENAME TO z_put_back;
DELETE FROM pairs WHERE k = 3;
SELECT * FROM differences;
DROP TRIGGER z_put_back ON pairs;
-- a trigger that goes on and on
CREATE FUNCTION go_on() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF EXISTS (SELECT FROM new_pairs WHERE e < 60) THEN
		UPDATE pairs SET e = e + 1, k = 9 - k WHERE (k, e) IN (SELECT k, e FROM new_pairs WHERE e < 60);
	END IF;
	RETURN NULL;
END $$;
CREATE TRIGGER a_on AFTER INSERT ON pairs REFERENCING NEW TABLE AS new_pairs
	FOR EACH STATEMENT EXECUTE FUNCTION go_on();
CREATE TRIGGER z_on AFTER UPDATE ON pairs REFERENCING NEW TABLE AS new_pairs
	FOR EACH STATEMENT EXECUTE FUNCTION go_on();
INSERT INTO pairs VALUES (4, 54), (5, 56);
SELECT * FROM differences;
DROP TRIGGER a_on ON pairs;
DROP TRIGGER z_on ON pairs;
-- a function in the statement itself
CREATE FUNCTION meddle(int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	DELETE FROM pairs WHERE k = 6 AND e = $1 - 1;
	INSERT INTO pairs VALUES (7, $1);
	RETURN $1;
END $$;
INSERT INTO pairs SELECT 6, meddle(i) FROM generate_series(1, 10) i;
SELECT * FROM differences;
SELECT count(*) FROM pairs WHERE k IN (6, 7);
-- a filter that others have filled: an element that is deleted before it was added
-- must not take the bits of others with it
INSERT INTO pairs SELECT 8, i * 1000 FROM generate_series(1, 3000) i;
CREATE TRIGGER a_delete AFTER INSERT ON pairs FOR EACH ROW EXECUTE FUNCTION delete_it();
INSERT INTO pairs SELECT 8, i * 2 FROM generate_series(1, 1500) i WHERE i % 500 > 0;
SELECT missing FROM fav_verify('pairs');
DROP TRIGGER a_delete ON pairs;

-- an error in the middle is as if nothing had been
CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$;
CREATE TRIGGER z_fail AFTER INSERT ON pairs FOR EACH STATEMENT EXECUTE FUNCTION fail();
DO $$
BEGIN
	FOR i IN 1 .. 5 LOOP
		BEGIN
			INSERT INTO pairs VALUES (1, 90 + i);
		EXCEPTION WHEN raise_exception THEN
			UPDATE pairs SET e = e + 1 WHERE k = 2;
		END;
	END LOOP;
END $$;
SELECT * FROM differences;
DROP TRIGGER z_fail ON pairs;
INSERT INTO pairs VALUES (1, 99);
DELETE FROM pairs WHERE k = 2;
SELECT * FROM differences;

-- one statement that deletes a pair and inserts it again
WITH gone AS (DELETE FROM pairs WHERE k = 1 RETURNING k, e)
INSERT INTO pairs SELECT k, e FROM gone WHERE e > 50 ON CONFLICT DO NOTHING;
SELECT * FROM differences;
WITH gone AS (DELETE FROM pairs WHERE k = 3 AND e = 3 RETURNING k, e),
	moved AS (UPDATE pairs SET e = 33 WHERE k = 7 AND e = 1 RETURNING k, e)
INSERT INTO pairs SELECT 9, e FROM gone UNION ALL SELECT 9, e + 50 FROM moved;
SELECT * FROM differences;

-- sessions that play the replica are no exception
SET session_replication_role = replica;
INSERT INTO pairs VALUES (1, 110), (2, 110);
INSERT INTO pairs VALUES (1, 111);
UPDATE pairs SET e = 112 WHERE e = 111;
DELETE FROM pairs WHERE e = 110 AND k = 2;
COPY pairs FROM stdin;
5	100
5	101
\.
RESET session_replication_role;
SELECT * FROM differences;
-- and where statement triggers do not fire the row trigger steps in
ALTER TABLE pairs ENABLE TRIGGER fav_1_before, ENABLE TRIGGER fav_1_insert, ENABLE TRIGGER fav_1_update, ENABLE TRIGGER fav_1_delete;
ALTER TABLE pairs DROP CONSTRAINT pairs_pkey;
CREATE INDEX ON pairs (k, e);
SET session_replication_role = replica;
INSERT INTO pairs VALUES (1, 113), (2, 113), (2, 114), (2, 114);
UPDATE pairs SET e = 227 - e WHERE k = 2;
UPDATE pairs SET k = 3 - k WHERE e = 113;
DELETE FROM pairs WHERE ctid = (SELECT min(ctid) FROM pairs WHERE k = 2 AND e = 113);
DELETE FROM pairs WHERE k = 5;
RESET session_replication_role;
SELECT * FROM differences;
SELECT missing FROM fav_verify('pairs');

DROP TABLE pairs, pairs_fav CASCADE;
DROP FUNCTION before_row, delete_it, put_back, go_on, meddle, fail;
