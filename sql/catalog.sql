-- The objects of the extension: all are there, have a comment, and are marked correctly.

CREATE TEMP VIEW members AS
SELECT classid, objid, pg_describe_object(classid, objid, 0) AS object FROM pg_depend
WHERE refclassid = 'pg_extension'::regclass AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'fav') AND deptype = 'e';

-- The names are final: none may be missing, and none may change its meaning
SELECT name AS missing_function
FROM unnest(ARRAY['fav_new', 'fav_add', 'fav_add_at', 'fav_expire', 'fav_del', 'fav_exclude', 'fav_contains', 'fav_contains_any', 'fav_contains_all', 'fav_filter',
	'fav_agg', 'fav_union', 'fav_union_agg', 'fav_count', 'fav_stats', 'fav_slices', 'fav_needs_rebuild',
	'fav_attach', 'fav_detach', 'fav_rebuild', 'fav_verify', 'fav_attachment_stats', 'fav_stack', 'fav_probe', 'fav_probe_at', 'fav_base', 'fav_group', 'fav_build',
	'fav_cache_new', 'fav_cache_agg', 'fav_cache_stats']) name
WHERE NOT EXISTS (SELECT FROM members JOIN pg_proc ON oid = objid WHERE classid = 'pg_proc'::regclass AND proname = name);
\pset format unaligned
SELECT concat(proname, '(', replace(pg_get_function_arguments(p.oid), 'IN ', ''), ') ', pg_get_function_result(p.oid)) AS function,
	CASE prokind WHEN 'a' THEN 'aggregate' WHEN 'p' THEN 'procedure' ELSE 'function' END AS kind,
	CASE provolatile WHEN 'i' THEN 'immutable' WHEN 's' THEN 'stable' ELSE 'volatile' END AS volatility,
	CASE proparallel WHEN 's' THEN 'safe' WHEN 'r' THEN 'restricted' ELSE 'unsafe' END AS parallel,
	CASE WHEN proisstrict THEN 'strict' ELSE 'takes null' END AS "null"
FROM members JOIN pg_proc p ON oid = objid AND classid = 'pg_proc'::regclass
WHERE proname IN ('fav_new', 'fav_add', 'fav_add_at', 'fav_expire', 'fav_del', 'fav_exclude', 'fav_contains', 'fav_contains_any', 'fav_contains_all', 'fav_filter',
	'fav_agg', 'fav_union', 'fav_union_agg', 'fav_count', 'fav_stats', 'fav_slices', 'fav_needs_rebuild',
	'fav_attach', 'fav_detach', 'fav_rebuild', 'fav_verify', 'fav_attachment_stats', 'fav_stack', 'fav_probe', 'fav_probe_at', 'fav_base', 'fav_group', 'fav_build',
	'fav_cache_new', 'fav_cache_agg', 'fav_cache_stats')
ORDER BY proname COLLATE "C", pg_get_function_arguments(p.oid) COLLATE "C";

-- The view, column by column
SELECT attname, format_type(atttypid, atttypmod) AS type
FROM members JOIN pg_attribute ON attrelid = objid AND classid = 'pg_class'::regclass
WHERE objid IN ('fav_attachments'::regclass, 'fav_progress'::regclass) AND attnum > 0 ORDER BY objid::regclass::text, attnum;

-- There is no table, and PUBLIC may only read
SELECT object AS relation, has_table_privilege('public', objid, 'SELECT') AS look,
	has_table_privilege('public', objid, 'INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER') AS more
FROM members WHERE classid = 'pg_class'::regclass;

-- The casts, all explicit
SELECT castsource::regtype, casttarget::regtype, castfunc::regprocedure, castcontext
FROM members JOIN pg_cast c ON c.oid = objid AND classid = 'pg_cast'::regclass ORDER BY castsource::regtype::text COLLATE "C";
\pset format aligned

-- Every operator is there and calls its function.  There is no fav - text and no fav - bytea (see sql/harmless.sql).
SELECT format('%s %s %s', l, o, r) AS missing_operator
FROM (SELECT v.* FROM unnest(ARRAY['fav', 'fav_cache']) t, unnest(ARRAY['bigint', 'text', 'uuid', 'bytea']) e,
		LATERAL (VALUES (t, '@>', e, 'fav_contains'), (e, '<@', t, 'fav_contained'), (t, '+', e, 'fav_add'), (t, '-', e, 'fav_del')) v (l, o, r, f)
		WHERE NOT (o = '-' AND e IN ('text', 'bytea'))
	UNION ALL SELECT 'fav_cache', o, 'fav_cache', 'fav_cache_' || f FROM (VALUES ('=', 'eq'), ('<>', 'ne'), ('<', 'lt'), ('<=', 'le'), ('>', 'gt'), ('>=', 'ge')) v (o, f)
	UNION ALL VALUES ('fav', '||', 'fav', 'fav_union'), ('fav', '=', 'fav', 'fav_eq'), ('fav', '<>', 'fav', 'fav_ne'),
		('fav', '<', 'fav', 'fav_lt'), ('fav', '<=', 'fav', 'fav_le'), ('fav', '>', 'fav', 'fav_gt'), ('fav', '>=', 'fav', 'fav_ge')) v (l, o, r, f)
WHERE NOT EXISTS (SELECT FROM members JOIN pg_operator ON oid = objid AND classid = 'pg_operator'::regclass
	WHERE oprname = o AND oprleft = l::regtype AND oprright = r::regtype
		AND oprcode::oid = to_regprocedure(format('%s(%s, %s)', f, l, r)));
SELECT count(*) AS operators FROM members WHERE classid = 'pg_operator'::regclass;

-- Every function, operator, type and view has a comment (array types and rules of views need none)
SELECT object AS uncommented FROM members
WHERE classid IN ('pg_proc'::regclass, 'pg_operator'::regclass, 'pg_class'::regclass)
	AND NOT EXISTS (SELECT FROM pg_class WHERE oid = objid AND relkind NOT IN ('r', 'v'))
	AND obj_description(objid, classid::regclass::name) IS NULL;
SELECT obj_description('fav'::regtype, 'pg_type') AS fav, obj_description('fav_cache'::regtype, 'pg_type') AS fav_cache;

-- Functions of filters depend only on their arguments, and may run in a parallel worker
SELECT p.oid::regprocedure AS not_immutable_or_not_parallel_safe FROM members JOIN pg_proc p ON oid = objid AND classid = 'pg_proc'::regclass
WHERE (prorettype = ANY ('{fav,fav_cache}'::regtype[]) OR proargtypes::oid[] && '{fav,fav_cache}'::regtype[]::oid[]) AND (provolatile <> 'i' OR proparallel <> 's')
	AND prolang = (SELECT oid FROM pg_language WHERE lanname = 'c');

-- NULL is the empty filter, so functions that probe or change a filter are not strict
SELECT p.oid::regprocedure AS strict FROM members JOIN pg_proc p ON oid = objid AND classid = 'pg_proc'::regclass
WHERE proisstrict AND proname IN ('fav_add', 'fav_del', 'fav_exclude', 'fav_contains', 'fav_contained', 'fav_contains_any', 'fav_contains_all', 'fav_filter', 'fav_count', 'fav_needs_rebuild', 'fav_probe', 'fav_probe_at');

-- Every <@ is the commutator of its @>
SELECT o.oid::regoperator AS without_commutator FROM members JOIN pg_operator o ON oid = objid AND classid = 'pg_operator'::regclass
WHERE oprname IN ('@>', '<@') AND oprcom = 0 AND NOT EXISTS (SELECT FROM pg_type WHERE oid = oprright AND typelem <> 0 AND typlen = -1);

-- The types are stored out of line without compression, so that single blocks can be fetched.  An argument without a type is a fav.
SELECT typlen, typalign, typstorage, typcategory, typispreferred, typreceive, typsend FROM pg_type WHERE oid IN ('fav'::regtype, 'fav_cache'::regtype) ORDER BY typname;

-- All members are named fav or fav_...
SELECT object AS strange_name FROM members LEFT JOIN pg_proc p ON p.oid = objid AND classid = 'pg_proc'::regclass
	LEFT JOIN pg_class c ON c.oid = objid AND classid = 'pg_class'::regclass LEFT JOIN pg_type t ON t.oid = objid AND classid = 'pg_type'::regclass
WHERE coalesce(proname, relname, typname) !~ '^_?fav(_|$)';
DROP VIEW members;
