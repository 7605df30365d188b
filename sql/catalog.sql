-- What the extension consists of: complete, commented, marked as what it is.

CREATE TEMP VIEW members AS
SELECT classid, objid, pg_describe_object(classid, objid, 0) AS object FROM pg_depend
WHERE refclassid = 'pg_extension'::regclass AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'fav') AND deptype = 'e';

-- The names are final: none may be missing, none may change what it is
SELECT name AS missing_function
FROM unnest(ARRAY['fav_new', 'fav_add', 'fav_add_at', 'fav_expire', 'fav_del', 'fav_exclude', 'fav_contains', 'fav_contains_any', 'fav_contains_all', 'fav_filter',
	'fav_agg', 'fav_union', 'fav_union_agg', 'fav_count', 'fav_stats', 'fav_slices', 'fav_needs_rebuild',
	'fav_attach', 'fav_detach', 'fav_rebuild', 'fav_verify', 'fav_attachment_stats', 'fav_stack', 'fav_base', 'fav_group', 'fav_build']) name
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
	'fav_attach', 'fav_detach', 'fav_rebuild', 'fav_verify', 'fav_attachment_stats', 'fav_stack', 'fav_base', 'fav_group', 'fav_build')
ORDER BY proname COLLATE "C", pg_get_function_arguments(p.oid) COLLATE "C";

-- The view, column by column
SELECT attname, format_type(atttypid, atttypmod) AS type
FROM members JOIN pg_attribute ON attrelid = objid AND classid = 'pg_class'::regclass
WHERE objid IN ('fav_attachments'::regclass, 'fav_progress'::regclass) AND attnum > 0 ORDER BY objid::regclass::text, attnum;

-- There is no table, and PUBLIC may only look
SELECT object AS relation, has_table_privilege('public', objid, 'SELECT') AS look,
	has_table_privilege('public', objid, 'INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER') AS more
FROM members WHERE classid = 'pg_class'::regclass;

-- The casts, which are never made unless they are written
SELECT castsource::regtype, casttarget::regtype, castfunc::regprocedure, castcontext
FROM members JOIN pg_cast c ON c.oid = objid AND classid = 'pg_cast'::regclass ORDER BY castsource::regtype::text COLLATE "C";
\pset format aligned

-- Every operator is there, and does what its function does.  There is no fav - text and no fav - bytea (sql/harmless.sql says why).
SELECT format('%s %s %s', l, o, r) AS missing_operator
FROM (SELECT v.* FROM unnest(ARRAY['bigint', 'text', 'uuid', 'bytea']) e,
		LATERAL (VALUES ('fav', '@>', e, 'fav_contains'), (e, '<@', 'fav', 'fav_contained'), ('fav', '+', e, 'fav_add'), ('fav', '-', e, 'fav_del')) v (l, o, r, f)
		WHERE NOT (o = '-' AND e IN ('text', 'bytea'))
	UNION ALL VALUES ('fav', '||', 'fav', 'fav_union'), ('fav', '=', 'fav', 'fav_eq'), ('fav', '<>', 'fav', 'fav_ne'),
		('fav', '<', 'fav', 'fav_lt'), ('fav', '<=', 'fav', 'fav_le'), ('fav', '>', 'fav', 'fav_gt'), ('fav', '>=', 'fav', 'fav_ge')) v (l, o, r, f)
WHERE NOT EXISTS (SELECT FROM members JOIN pg_operator ON oid = objid AND classid = 'pg_operator'::regclass
	WHERE oprname = o AND oprleft = l::regtype AND oprright = r::regtype
		AND oprcode::oid = to_regprocedure(format('%s(%s, %s)', f, l, r)));
SELECT count(*) AS operators FROM members WHERE classid = 'pg_operator'::regclass;

-- Every function, operator, type, view has its comment (a type's array and a view's rule have not)
SELECT object AS uncommented FROM members
WHERE classid IN ('pg_proc'::regclass, 'pg_operator'::regclass, 'pg_class'::regclass)
	AND NOT EXISTS (SELECT FROM pg_class WHERE oid = objid AND relkind NOT IN ('r', 'v'))
	AND obj_description(objid, classid::regclass::name) IS NULL;
SELECT obj_description('fav'::regtype, 'pg_type') AS fav;

-- What takes or gives a filter depends on its arguments only, and may run in a worker
SELECT p.oid::regprocedure AS not_immutable_or_not_parallel_safe FROM members JOIN pg_proc p ON oid = objid AND classid = 'pg_proc'::regclass
WHERE (prorettype = 'fav'::regtype OR 'fav'::regtype = ANY (proargtypes)) AND (provolatile <> 'i' OR proparallel <> 's')
	AND prolang = (SELECT oid FROM pg_language WHERE lanname = 'c');

-- NULL is the empty filter, so what asks or changes one is not strict
SELECT p.oid::regprocedure AS strict FROM members JOIN pg_proc p ON oid = objid AND classid = 'pg_proc'::regclass
WHERE proisstrict AND proname IN ('fav_add', 'fav_del', 'fav_exclude', 'fav_contains', 'fav_contained', 'fav_contains_any', 'fav_contains_all', 'fav_filter', 'fav_count', 'fav_needs_rebuild', 'fav_stack');

-- Every <@ is the commutator of its @>
SELECT o.oid::regoperator AS without_commutator FROM members JOIN pg_operator o ON oid = objid AND classid = 'pg_operator'::regclass
WHERE oprname IN ('@>', '<@') AND oprcom = 0 AND NOT EXISTS (SELECT FROM pg_type WHERE oid = oprright AND typelem <> 0 AND typlen = -1);

-- The type: out of line without compression, and for slices of it to be fetched
SELECT typlen, typalign, typstorage, typreceive, typsend FROM pg_type WHERE oid = 'fav'::regtype;

-- Members are named fav or fav_..., all of them
SELECT object AS strange_name FROM members LEFT JOIN pg_proc p ON p.oid = objid AND classid = 'pg_proc'::regclass
	LEFT JOIN pg_class c ON c.oid = objid AND classid = 'pg_class'::regclass LEFT JOIN pg_type t ON t.oid = objid AND classid = 'pg_type'::regclass
WHERE coalesce(proname, relname, typname) !~ '^_?fav(_|$)';
DROP VIEW members;
