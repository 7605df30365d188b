/* fav--1.0.sql */

-- Made from fav--1.0.sql.in by `make script`.  Edit that file.

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION fav" to load this file. \quit

--
-- The type
--

CREATE TYPE fav;

CREATE FUNCTION fav_in(cstring) RETURNS fav
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION fav_out(fav) RETURNS cstring
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION fav_recv(internal) RETURNS fav
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION fav_send(fav) RETURNS bytea
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

-- The bits do not compress, and a block of an uncompressed value can be fetched alone.  Functions
-- are overloaded for fav and fav_cache; an argument without a type means the preferred type, fav.
CREATE TYPE fav (
	INPUT = fav_in, OUTPUT = fav_out, RECEIVE = fav_recv, SEND = fav_send,
	INTERNALLENGTH = VARIABLE, ALIGNMENT = int4, STORAGE = external,
	CATEGORY = 'f', PREFERRED = true
);

COMMENT ON TYPE fav IS 'deletable, growing membership filter';
COMMENT ON FUNCTION fav_in(cstring) IS 'I/O';
COMMENT ON FUNCTION fav_out(fav) IS 'I/O';
COMMENT ON FUNCTION fav_recv(internal) IS 'I/O';
COMMENT ON FUNCTION fav_send(fav) IS 'I/O';

CREATE FUNCTION fav_to_bytea(fav) RETURNS bytea
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION fav_from_bytea(bytea) RETURNS fav
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION fav_to_bytea(fav) IS 'the wire format of a filter';
COMMENT ON FUNCTION fav_from_bytea(bytea) IS 'a filter from its wire format';

CREATE CAST (fav AS bytea) WITH FUNCTION fav_to_bytea(fav);
CREATE CAST (bytea AS fav) WITH FUNCTION fav_from_bytea(bytea);

--
-- Making a filter
--

CREATE FUNCTION fav_new(
	capacity bigint DEFAULT 1000, error_rate float8 DEFAULT 0.01,
	region_size int DEFAULT 7, seed bigint DEFAULT 0, keep int DEFAULT NULL
) RETURNS fav
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION fav_new(bigint, float8, int, bigint, int) IS
	'an empty filter for about so many elements; keep: the number of periods for which it keeps an element';

--
-- Planner support
--

CREATE FUNCTION fav_support(internal) RETURNS internal
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION fav_support(internal) IS
	'planner support: selectivity and cost of a probe';

CREATE FUNCTION fav_edit_support(internal) RETURNS internal
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION fav_edit_support(internal) IS
	'planner support: PL/pgSQL may change a variable in place';

CREATE FUNCTION fav_restriction_selectivity(internal, oid, internal, int) RETURNS float8
	AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION fav_restriction_selectivity(internal, oid, internal, int) IS
	'restriction selectivity of the operators that probe a filter';

CREATE FUNCTION fav_join_selectivity(internal, oid, internal, smallint, internal) RETURNS float8
	AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION fav_join_selectivity(internal, oid, internal, smallint, internal) IS
	'join selectivity of the operators that probe a filter';

--
-- Adding, deleting, excluding, probing.  NULL is the empty filter, so none of these is strict.
--

-- bigint

CREATE FUNCTION fav_add(fav, bigint) RETURNS fav
	AS 'MODULE_PATHNAME', 'fav_add_int8' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 50 SUPPORT fav_edit_support;
COMMENT ON FUNCTION fav_add(fav, bigint) IS 'the filter with the element';
CREATE FUNCTION fav_add(fav, bigint[]) RETURNS fav
	AS 'MODULE_PATHNAME', 'fav_add_int8_array' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 200 SUPPORT fav_edit_support;
COMMENT ON FUNCTION fav_add(fav, bigint[]) IS 'the filter with the elements';
CREATE FUNCTION fav_add_at(fav, bigint[], period int) RETURNS fav
	AS 'MODULE_PATHNAME', 'fav_add_at_int8' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 200 SUPPORT fav_edit_support;
COMMENT ON FUNCTION fav_add_at(fav, bigint[], int) IS
	'the dated filter with the elements, added in this period, without what is too old then';
CREATE FUNCTION fav_del(fav, bigint) RETURNS fav
	AS 'MODULE_PATHNAME', 'fav_del_int8' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 50 SUPPORT fav_edit_support;
COMMENT ON FUNCTION fav_del(fav, bigint) IS 'the filter without the element';
CREATE FUNCTION fav_del(fav, bigint[]) RETURNS fav
	AS 'MODULE_PATHNAME', 'fav_del_int8_array' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 200 SUPPORT fav_edit_support;
COMMENT ON FUNCTION fav_del(fav, bigint[]) IS 'the filter without the elements';
CREATE FUNCTION fav_exclude(fav, bigint) RETURNS fav
	AS 'MODULE_PATHNAME', 'fav_exclude_int8' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 50 SUPPORT fav_edit_support;
COMMENT ON FUNCTION fav_exclude(fav, bigint) IS
	'the filter in which the element is absent from now on, whether it was added or not';
CREATE FUNCTION fav_exclude(fav, bigint[]) RETURNS fav
	AS 'MODULE_PATHNAME', 'fav_exclude_int8_array' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 200 SUPPORT fav_edit_support;
COMMENT ON FUNCTION fav_exclude(fav, bigint[]) IS
	'the filter in which the elements are absent from now on, whether they were added or not';
CREATE FUNCTION fav_contains(fav, bigint) RETURNS boolean
	AS 'MODULE_PATHNAME', 'fav_contains_int8' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 2 SUPPORT fav_support;
COMMENT ON FUNCTION fav_contains(fav, bigint) IS 'is the element in the filter?';
CREATE FUNCTION fav_contained(bigint, fav) RETURNS boolean
	AS 'MODULE_PATHNAME', 'fav_contained_int8' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 2 SUPPORT fav_support;
COMMENT ON FUNCTION fav_contained(bigint, fav) IS 'implementation of <@ operator';
CREATE FUNCTION fav_contains_any(fav, bigint[]) RETURNS boolean
	AS 'MODULE_PATHNAME', 'fav_contains_any_int8' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 20 SUPPORT fav_support;
COMMENT ON FUNCTION fav_contains_any(fav, bigint[]) IS 'is one of the elements in the filter?';
CREATE FUNCTION fav_contains_all(fav, bigint[]) RETURNS boolean
	AS 'MODULE_PATHNAME', 'fav_contains_all_int8' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 20 SUPPORT fav_support;
COMMENT ON FUNCTION fav_contains_all(fav, bigint[]) IS 'are all of the elements in the filter?';
CREATE FUNCTION fav_filter(fav, bigint[]) RETURNS bigint[]
	AS 'MODULE_PATHNAME', 'fav_filter_int8' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 50;
COMMENT ON FUNCTION fav_filter(fav, bigint[]) IS
	'the elements that are not in the filter, in order';

-- text

CREATE FUNCTION fav_add(fav, text) RETURNS fav
	AS 'MODULE_PATHNAME', 'fav_add_text' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 50 SUPPORT fav_edit_support;
COMMENT ON FUNCTION fav_add(fav, text) IS 'the filter with the element';
CREATE FUNCTION fav_add(fav, text[]) RETURNS fav
	AS 'MODULE_PATHNAME', 'fav_add_text_array' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 200 SUPPORT fav_edit_support;
COMMENT ON FUNCTION fav_add(fav, text[]) IS 'the filter with the elements';
CREATE FUNCTION fav_add_at(fav, text[], period int) RETURNS fav
	AS 'MODULE_PATHNAME', 'fav_add_at_text' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 200 SUPPORT fav_edit_support;
COMMENT ON FUNCTION fav_add_at(fav, text[], int) IS
	'the dated filter with the elements, added in this period, without what is too old then';
CREATE FUNCTION fav_del(fav, text) RETURNS fav
	AS 'MODULE_PATHNAME', 'fav_del_text' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 50 SUPPORT fav_edit_support;
COMMENT ON FUNCTION fav_del(fav, text) IS 'the filter without the element';
CREATE FUNCTION fav_del(fav, text[]) RETURNS fav
	AS 'MODULE_PATHNAME', 'fav_del_text_array' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 200 SUPPORT fav_edit_support;
COMMENT ON FUNCTION fav_del(fav, text[]) IS 'the filter without the elements';
CREATE FUNCTION fav_exclude(fav, text) RETURNS fav
	AS 'MODULE_PATHNAME', 'fav_exclude_text' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 50 SUPPORT fav_edit_support;
COMMENT ON FUNCTION fav_exclude(fav, text) IS
	'the filter in which the element is absent from now on, whether it was added or not';
CREATE FUNCTION fav_exclude(fav, text[]) RETURNS fav
	AS 'MODULE_PATHNAME', 'fav_exclude_text_array' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 200 SUPPORT fav_edit_support;
COMMENT ON FUNCTION fav_exclude(fav, text[]) IS
	'the filter in which the elements are absent from now on, whether they were added or not';
CREATE FUNCTION fav_contains(fav, text) RETURNS boolean
	AS 'MODULE_PATHNAME', 'fav_contains_text' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 2 SUPPORT fav_support;
COMMENT ON FUNCTION fav_contains(fav, text) IS 'is the element in the filter?';
CREATE FUNCTION fav_contained(text, fav) RETURNS boolean
	AS 'MODULE_PATHNAME', 'fav_contained_text' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 2 SUPPORT fav_support;
COMMENT ON FUNCTION fav_contained(text, fav) IS 'implementation of <@ operator';
CREATE FUNCTION fav_contains_any(fav, text[]) RETURNS boolean
	AS 'MODULE_PATHNAME', 'fav_contains_any_text' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 20 SUPPORT fav_support;
COMMENT ON FUNCTION fav_contains_any(fav, text[]) IS 'is one of the elements in the filter?';
CREATE FUNCTION fav_contains_all(fav, text[]) RETURNS boolean
	AS 'MODULE_PATHNAME', 'fav_contains_all_text' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 20 SUPPORT fav_support;
COMMENT ON FUNCTION fav_contains_all(fav, text[]) IS 'are all of the elements in the filter?';
CREATE FUNCTION fav_filter(fav, text[]) RETURNS text[]
	AS 'MODULE_PATHNAME', 'fav_filter_text' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 50;
COMMENT ON FUNCTION fav_filter(fav, text[]) IS
	'the elements that are not in the filter, in order';

-- uuid

CREATE FUNCTION fav_add(fav, uuid) RETURNS fav
	AS 'MODULE_PATHNAME', 'fav_add_uuid' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 50 SUPPORT fav_edit_support;
COMMENT ON FUNCTION fav_add(fav, uuid) IS 'the filter with the element';
CREATE FUNCTION fav_add(fav, uuid[]) RETURNS fav
	AS 'MODULE_PATHNAME', 'fav_add_uuid_array' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 200 SUPPORT fav_edit_support;
COMMENT ON FUNCTION fav_add(fav, uuid[]) IS 'the filter with the elements';
CREATE FUNCTION fav_add_at(fav, uuid[], period int) RETURNS fav
	AS 'MODULE_PATHNAME', 'fav_add_at_uuid' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 200 SUPPORT fav_edit_support;
COMMENT ON FUNCTION fav_add_at(fav, uuid[], int) IS
	'the dated filter with the elements, added in this period, without what is too old then';
CREATE FUNCTION fav_del(fav, uuid) RETURNS fav
	AS 'MODULE_PATHNAME', 'fav_del_uuid' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 50 SUPPORT fav_edit_support;
COMMENT ON FUNCTION fav_del(fav, uuid) IS 'the filter without the element';
CREATE FUNCTION fav_del(fav, uuid[]) RETURNS fav
	AS 'MODULE_PATHNAME', 'fav_del_uuid_array' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 200 SUPPORT fav_edit_support;
COMMENT ON FUNCTION fav_del(fav, uuid[]) IS 'the filter without the elements';
CREATE FUNCTION fav_exclude(fav, uuid) RETURNS fav
	AS 'MODULE_PATHNAME', 'fav_exclude_uuid' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 50 SUPPORT fav_edit_support;
COMMENT ON FUNCTION fav_exclude(fav, uuid) IS
	'the filter in which the element is absent from now on, whether it was added or not';
CREATE FUNCTION fav_exclude(fav, uuid[]) RETURNS fav
	AS 'MODULE_PATHNAME', 'fav_exclude_uuid_array' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 200 SUPPORT fav_edit_support;
COMMENT ON FUNCTION fav_exclude(fav, uuid[]) IS
	'the filter in which the elements are absent from now on, whether they were added or not';
CREATE FUNCTION fav_contains(fav, uuid) RETURNS boolean
	AS 'MODULE_PATHNAME', 'fav_contains_uuid' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 2 SUPPORT fav_support;
COMMENT ON FUNCTION fav_contains(fav, uuid) IS 'is the element in the filter?';
CREATE FUNCTION fav_contained(uuid, fav) RETURNS boolean
	AS 'MODULE_PATHNAME', 'fav_contained_uuid' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 2 SUPPORT fav_support;
COMMENT ON FUNCTION fav_contained(uuid, fav) IS 'implementation of <@ operator';
CREATE FUNCTION fav_contains_any(fav, uuid[]) RETURNS boolean
	AS 'MODULE_PATHNAME', 'fav_contains_any_uuid' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 20 SUPPORT fav_support;
COMMENT ON FUNCTION fav_contains_any(fav, uuid[]) IS 'is one of the elements in the filter?';
CREATE FUNCTION fav_contains_all(fav, uuid[]) RETURNS boolean
	AS 'MODULE_PATHNAME', 'fav_contains_all_uuid' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 20 SUPPORT fav_support;
COMMENT ON FUNCTION fav_contains_all(fav, uuid[]) IS 'are all of the elements in the filter?';
CREATE FUNCTION fav_filter(fav, uuid[]) RETURNS uuid[]
	AS 'MODULE_PATHNAME', 'fav_filter_uuid' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 50;
COMMENT ON FUNCTION fav_filter(fav, uuid[]) IS
	'the elements that are not in the filter, in order';

-- bytea

CREATE FUNCTION fav_add(fav, bytea) RETURNS fav
	AS 'MODULE_PATHNAME', 'fav_add_bytea' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 50 SUPPORT fav_edit_support;
COMMENT ON FUNCTION fav_add(fav, bytea) IS 'the filter with the element';
CREATE FUNCTION fav_add(fav, bytea[]) RETURNS fav
	AS 'MODULE_PATHNAME', 'fav_add_bytea_array' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 200 SUPPORT fav_edit_support;
COMMENT ON FUNCTION fav_add(fav, bytea[]) IS 'the filter with the elements';
CREATE FUNCTION fav_add_at(fav, bytea[], period int) RETURNS fav
	AS 'MODULE_PATHNAME', 'fav_add_at_bytea' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 200 SUPPORT fav_edit_support;
COMMENT ON FUNCTION fav_add_at(fav, bytea[], int) IS
	'the dated filter with the elements, added in this period, without what is too old then';
CREATE FUNCTION fav_del(fav, bytea) RETURNS fav
	AS 'MODULE_PATHNAME', 'fav_del_bytea' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 50 SUPPORT fav_edit_support;
COMMENT ON FUNCTION fav_del(fav, bytea) IS 'the filter without the element';
CREATE FUNCTION fav_del(fav, bytea[]) RETURNS fav
	AS 'MODULE_PATHNAME', 'fav_del_bytea_array' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 200 SUPPORT fav_edit_support;
COMMENT ON FUNCTION fav_del(fav, bytea[]) IS 'the filter without the elements';
CREATE FUNCTION fav_exclude(fav, bytea) RETURNS fav
	AS 'MODULE_PATHNAME', 'fav_exclude_bytea' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 50 SUPPORT fav_edit_support;
COMMENT ON FUNCTION fav_exclude(fav, bytea) IS
	'the filter in which the element is absent from now on, whether it was added or not';
CREATE FUNCTION fav_exclude(fav, bytea[]) RETURNS fav
	AS 'MODULE_PATHNAME', 'fav_exclude_bytea_array' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 200 SUPPORT fav_edit_support;
COMMENT ON FUNCTION fav_exclude(fav, bytea[]) IS
	'the filter in which the elements are absent from now on, whether they were added or not';
CREATE FUNCTION fav_contains(fav, bytea) RETURNS boolean
	AS 'MODULE_PATHNAME', 'fav_contains_bytea' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 2 SUPPORT fav_support;
COMMENT ON FUNCTION fav_contains(fav, bytea) IS 'is the element in the filter?';
CREATE FUNCTION fav_contained(bytea, fav) RETURNS boolean
	AS 'MODULE_PATHNAME', 'fav_contained_bytea' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 2 SUPPORT fav_support;
COMMENT ON FUNCTION fav_contained(bytea, fav) IS 'implementation of <@ operator';
CREATE FUNCTION fav_contains_any(fav, bytea[]) RETURNS boolean
	AS 'MODULE_PATHNAME', 'fav_contains_any_bytea' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 20 SUPPORT fav_support;
COMMENT ON FUNCTION fav_contains_any(fav, bytea[]) IS 'is one of the elements in the filter?';
CREATE FUNCTION fav_contains_all(fav, bytea[]) RETURNS boolean
	AS 'MODULE_PATHNAME', 'fav_contains_all_bytea' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 20 SUPPORT fav_support;
COMMENT ON FUNCTION fav_contains_all(fav, bytea[]) IS 'are all of the elements in the filter?';
CREATE FUNCTION fav_filter(fav, bytea[]) RETURNS bytea[]
	AS 'MODULE_PATHNAME', 'fav_filter_bytea' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 50;
COMMENT ON FUNCTION fav_filter(fav, bytea[]) IS
	'the elements that are not in the filter, in order';

-- A pair is one element: a user and a post, in a filter that many users share.

CREATE FUNCTION fav_add(fav, bigint, bigint) RETURNS fav
	AS 'MODULE_PATHNAME', 'fav_add_pair' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 50 SUPPORT fav_edit_support;
COMMENT ON FUNCTION fav_add(fav, bigint, bigint) IS 'the filter with the pair';
CREATE FUNCTION fav_add_at(fav, bigint, bigint, period int) RETURNS fav
	AS 'MODULE_PATHNAME', 'fav_add_at_pair' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 50 SUPPORT fav_edit_support;
COMMENT ON FUNCTION fav_add_at(fav, bigint, bigint, int) IS
	'the dated filter with the pair, added in this period, without what is too old then';
CREATE FUNCTION fav_del(fav, bigint, bigint) RETURNS fav
	AS 'MODULE_PATHNAME', 'fav_del_pair' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 50 SUPPORT fav_edit_support;
COMMENT ON FUNCTION fav_del(fav, bigint, bigint) IS 'the filter without the pair';
CREATE FUNCTION fav_exclude(fav, bigint, bigint) RETURNS fav
	AS 'MODULE_PATHNAME', 'fav_exclude_pair' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 50 SUPPORT fav_edit_support;
COMMENT ON FUNCTION fav_exclude(fav, bigint, bigint) IS
	'the filter in which the pair is absent from now on, whether it was added or not';
CREATE FUNCTION fav_contains(fav, bigint, bigint) RETURNS boolean
	AS 'MODULE_PATHNAME', 'fav_contains_pair' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 2 SUPPORT fav_support;
COMMENT ON FUNCTION fav_contains(fav, bigint, bigint) IS 'is the pair in the filter?';

CREATE FUNCTION fav_expire(fav, period int) RETURNS fav
	AS 'MODULE_PATHNAME' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 50 SUPPORT fav_edit_support;
COMMENT ON FUNCTION fav_expire(fav, int) IS
	'the dated filter without what is too old in this period';

--
-- Operators.  None of them has an array argument, and fav - text and fav - bytea do not exist:
-- they would change the type of an untyped literal on their left in existing queries.
--

CREATE OPERATOR @> (LEFTARG = fav, RIGHTARG = bigint, FUNCTION = fav_contains, COMMUTATOR = <@,
	RESTRICT = fav_restriction_selectivity, JOIN = fav_join_selectivity);
COMMENT ON OPERATOR @> (fav, bigint) IS 'contains';
CREATE OPERATOR <@ (LEFTARG = bigint, RIGHTARG = fav, FUNCTION = fav_contained, COMMUTATOR = @>,
	RESTRICT = fav_restriction_selectivity, JOIN = fav_join_selectivity);
COMMENT ON OPERATOR <@ (bigint, fav) IS 'is contained in';
CREATE OPERATOR + (LEFTARG = fav, RIGHTARG = bigint, FUNCTION = fav_add);
COMMENT ON OPERATOR + (fav, bigint) IS 'add';

CREATE OPERATOR @> (LEFTARG = fav, RIGHTARG = text, FUNCTION = fav_contains, COMMUTATOR = <@,
	RESTRICT = fav_restriction_selectivity, JOIN = fav_join_selectivity);
COMMENT ON OPERATOR @> (fav, text) IS 'contains';
CREATE OPERATOR <@ (LEFTARG = text, RIGHTARG = fav, FUNCTION = fav_contained, COMMUTATOR = @>,
	RESTRICT = fav_restriction_selectivity, JOIN = fav_join_selectivity);
COMMENT ON OPERATOR <@ (text, fav) IS 'is contained in';
CREATE OPERATOR + (LEFTARG = fav, RIGHTARG = text, FUNCTION = fav_add);
COMMENT ON OPERATOR + (fav, text) IS 'add';

CREATE OPERATOR @> (LEFTARG = fav, RIGHTARG = uuid, FUNCTION = fav_contains, COMMUTATOR = <@,
	RESTRICT = fav_restriction_selectivity, JOIN = fav_join_selectivity);
COMMENT ON OPERATOR @> (fav, uuid) IS 'contains';
CREATE OPERATOR <@ (LEFTARG = uuid, RIGHTARG = fav, FUNCTION = fav_contained, COMMUTATOR = @>,
	RESTRICT = fav_restriction_selectivity, JOIN = fav_join_selectivity);
COMMENT ON OPERATOR <@ (uuid, fav) IS 'is contained in';
CREATE OPERATOR + (LEFTARG = fav, RIGHTARG = uuid, FUNCTION = fav_add);
COMMENT ON OPERATOR + (fav, uuid) IS 'add';

CREATE OPERATOR @> (LEFTARG = fav, RIGHTARG = bytea, FUNCTION = fav_contains, COMMUTATOR = <@,
	RESTRICT = fav_restriction_selectivity, JOIN = fav_join_selectivity);
COMMENT ON OPERATOR @> (fav, bytea) IS 'contains';
CREATE OPERATOR <@ (LEFTARG = bytea, RIGHTARG = fav, FUNCTION = fav_contained, COMMUTATOR = @>,
	RESTRICT = fav_restriction_selectivity, JOIN = fav_join_selectivity);
COMMENT ON OPERATOR <@ (bytea, fav) IS 'is contained in';
CREATE OPERATOR + (LEFTARG = fav, RIGHTARG = bytea, FUNCTION = fav_add);
COMMENT ON OPERATOR + (fav, bytea) IS 'add';

CREATE OPERATOR - (LEFTARG = fav, RIGHTARG = bigint, FUNCTION = fav_del);
COMMENT ON OPERATOR - (fav, bigint) IS 'delete';
CREATE OPERATOR - (LEFTARG = fav, RIGHTARG = uuid, FUNCTION = fav_del);
COMMENT ON OPERATOR - (fav, uuid) IS 'delete';

--
-- Inspecting a filter
--

CREATE FUNCTION fav_count(fav) RETURNS bigint
	AS 'MODULE_PATHNAME', 'fav_count_elements' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 10;
COMMENT ON FUNCTION fav_count(fav) IS
	'number of elements: exact if the filter never had more than 128, otherwise an estimate';

CREATE FUNCTION fav_needs_rebuild(fav) RETURNS boolean
	AS 'MODULE_PATHNAME', 'fav_rebuild_needed' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 10;
COMMENT ON FUNCTION fav_needs_rebuild(fav) IS 'is the filter so bloated that it should be rebuilt?';

CREATE FUNCTION fav_stats(
	fav,
	OUT format int, OUT elements bigint, OUT kind text, OUT capacity bigint, OUT error_rate float8,
	OUT region_size int, OUT seed bigint, OUT slices int, OUT recent int, OUT tombstones int,
	OUT bytes bigint, OUT fill float8, OUT estimated_error float8, OUT clean_regions float8,
	OUT deletable float8, OUT bloat float8, OUT needs_rebuild boolean,
	OUT keep int, OUT periods bigint, OUT oldest int, OUT newest int
)
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000;
COMMENT ON FUNCTION fav_stats(fav) IS 'parameters and condition of a filter';

CREATE FUNCTION fav_slices(
	fav,
	OUT slice int, OUT capacity bigint, OUT blocks int, OUT bits_per_element int,
	OUT bytes bigint, OUT bits_set bigint, OUT bits_limit bigint, OUT fill float8,
	OUT estimated_error float8, OUT clean_regions float8, OUT deletable float8,
	OUT first_period int, OUT last_period int
) RETURNS SETOF record
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000 ROWS 5;
COMMENT ON FUNCTION fav_slices(fav) IS 'parameters and condition of each slice of a filter';

--
-- Aggregates
--

CREATE FUNCTION fav_agg_combine(internal, internal) RETURNS internal
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION fav_agg_serialize(internal) RETURNS bytea
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION fav_agg_deserialize(bytea, internal) RETURNS internal
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION fav_agg_final(internal) RETURNS fav
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION fav_agg_combine(internal, internal) IS 'aggregate combine function';
COMMENT ON FUNCTION fav_agg_serialize(internal) IS 'aggregate serial function';
COMMENT ON FUNCTION fav_agg_deserialize(bytea, internal) IS 'aggregate deserial function';
COMMENT ON FUNCTION fav_agg_final(internal) IS 'aggregate final function';

CREATE FUNCTION fav_agg_transition(internal, bigint) RETURNS internal
	AS 'MODULE_PATHNAME', 'fav_agg_int8' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION fav_agg_transition(internal, bigint) IS 'aggregate transition function';
CREATE AGGREGATE fav_agg(bigint) (
	SFUNC = fav_agg_transition, STYPE = internal, FINALFUNC = fav_agg_final,
	COMBINEFUNC = fav_agg_combine, SERIALFUNC = fav_agg_serialize,
	DESERIALFUNC = fav_agg_deserialize, PARALLEL = SAFE
);
COMMENT ON AGGREGATE fav_agg(bigint) IS 'filter of exactly the right size for all elements';

CREATE FUNCTION fav_agg_transition(internal, bigint, float8) RETURNS internal
	AS 'MODULE_PATHNAME', 'fav_agg_int8' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION fav_agg_transition(internal, bigint, float8) IS 'aggregate transition function';
CREATE AGGREGATE fav_agg(bigint, float8) (
	SFUNC = fav_agg_transition, STYPE = internal, FINALFUNC = fav_agg_final,
	COMBINEFUNC = fav_agg_combine, SERIALFUNC = fav_agg_serialize,
	DESERIALFUNC = fav_agg_deserialize, PARALLEL = SAFE
);
COMMENT ON AGGREGATE fav_agg(bigint, float8) IS
	'filter of exactly the right size for all elements with this error rate';

CREATE FUNCTION fav_agg_transition(internal, bigint, float8, bigint) RETURNS internal
	AS 'MODULE_PATHNAME', 'fav_agg_int8' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION fav_agg_transition(internal, bigint, float8, bigint) IS
	'aggregate transition function';
CREATE AGGREGATE fav_agg(bigint, float8, bigint) (
	SFUNC = fav_agg_transition, STYPE = internal, FINALFUNC = fav_agg_final,
	COMBINEFUNC = fav_agg_combine, SERIALFUNC = fav_agg_serialize,
	DESERIALFUNC = fav_agg_deserialize, PARALLEL = SAFE
);
COMMENT ON AGGREGATE fav_agg(bigint, float8, bigint) IS
	'filter for all elements with this error rate and at least this capacity';

CREATE FUNCTION fav_agg_transition(internal, text) RETURNS internal
	AS 'MODULE_PATHNAME', 'fav_agg_text' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION fav_agg_transition(internal, text) IS 'aggregate transition function';
CREATE AGGREGATE fav_agg(text) (
	SFUNC = fav_agg_transition, STYPE = internal, FINALFUNC = fav_agg_final,
	COMBINEFUNC = fav_agg_combine, SERIALFUNC = fav_agg_serialize,
	DESERIALFUNC = fav_agg_deserialize, PARALLEL = SAFE
);
COMMENT ON AGGREGATE fav_agg(text) IS 'filter of exactly the right size for all elements';

CREATE FUNCTION fav_agg_transition(internal, text, float8) RETURNS internal
	AS 'MODULE_PATHNAME', 'fav_agg_text' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION fav_agg_transition(internal, text, float8) IS 'aggregate transition function';
CREATE AGGREGATE fav_agg(text, float8) (
	SFUNC = fav_agg_transition, STYPE = internal, FINALFUNC = fav_agg_final,
	COMBINEFUNC = fav_agg_combine, SERIALFUNC = fav_agg_serialize,
	DESERIALFUNC = fav_agg_deserialize, PARALLEL = SAFE
);
COMMENT ON AGGREGATE fav_agg(text, float8) IS
	'filter of exactly the right size for all elements with this error rate';

CREATE FUNCTION fav_agg_transition(internal, text, float8, bigint) RETURNS internal
	AS 'MODULE_PATHNAME', 'fav_agg_text' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION fav_agg_transition(internal, text, float8, bigint) IS
	'aggregate transition function';
CREATE AGGREGATE fav_agg(text, float8, bigint) (
	SFUNC = fav_agg_transition, STYPE = internal, FINALFUNC = fav_agg_final,
	COMBINEFUNC = fav_agg_combine, SERIALFUNC = fav_agg_serialize,
	DESERIALFUNC = fav_agg_deserialize, PARALLEL = SAFE
);
COMMENT ON AGGREGATE fav_agg(text, float8, bigint) IS
	'filter for all elements with this error rate and at least this capacity';

CREATE FUNCTION fav_agg_transition(internal, uuid) RETURNS internal
	AS 'MODULE_PATHNAME', 'fav_agg_uuid' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION fav_agg_transition(internal, uuid) IS 'aggregate transition function';
CREATE AGGREGATE fav_agg(uuid) (
	SFUNC = fav_agg_transition, STYPE = internal, FINALFUNC = fav_agg_final,
	COMBINEFUNC = fav_agg_combine, SERIALFUNC = fav_agg_serialize,
	DESERIALFUNC = fav_agg_deserialize, PARALLEL = SAFE
);
COMMENT ON AGGREGATE fav_agg(uuid) IS 'filter of exactly the right size for all elements';

CREATE FUNCTION fav_agg_transition(internal, uuid, float8) RETURNS internal
	AS 'MODULE_PATHNAME', 'fav_agg_uuid' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION fav_agg_transition(internal, uuid, float8) IS 'aggregate transition function';
CREATE AGGREGATE fav_agg(uuid, float8) (
	SFUNC = fav_agg_transition, STYPE = internal, FINALFUNC = fav_agg_final,
	COMBINEFUNC = fav_agg_combine, SERIALFUNC = fav_agg_serialize,
	DESERIALFUNC = fav_agg_deserialize, PARALLEL = SAFE
);
COMMENT ON AGGREGATE fav_agg(uuid, float8) IS
	'filter of exactly the right size for all elements with this error rate';

CREATE FUNCTION fav_agg_transition(internal, uuid, float8, bigint) RETURNS internal
	AS 'MODULE_PATHNAME', 'fav_agg_uuid' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION fav_agg_transition(internal, uuid, float8, bigint) IS
	'aggregate transition function';
CREATE AGGREGATE fav_agg(uuid, float8, bigint) (
	SFUNC = fav_agg_transition, STYPE = internal, FINALFUNC = fav_agg_final,
	COMBINEFUNC = fav_agg_combine, SERIALFUNC = fav_agg_serialize,
	DESERIALFUNC = fav_agg_deserialize, PARALLEL = SAFE
);
COMMENT ON AGGREGATE fav_agg(uuid, float8, bigint) IS
	'filter for all elements with this error rate and at least this capacity';

CREATE FUNCTION fav_agg_transition(internal, bytea) RETURNS internal
	AS 'MODULE_PATHNAME', 'fav_agg_bytea' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION fav_agg_transition(internal, bytea) IS 'aggregate transition function';
CREATE AGGREGATE fav_agg(bytea) (
	SFUNC = fav_agg_transition, STYPE = internal, FINALFUNC = fav_agg_final,
	COMBINEFUNC = fav_agg_combine, SERIALFUNC = fav_agg_serialize,
	DESERIALFUNC = fav_agg_deserialize, PARALLEL = SAFE
);
COMMENT ON AGGREGATE fav_agg(bytea) IS 'filter of exactly the right size for all elements';

CREATE FUNCTION fav_agg_transition(internal, bytea, float8) RETURNS internal
	AS 'MODULE_PATHNAME', 'fav_agg_bytea' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION fav_agg_transition(internal, bytea, float8) IS 'aggregate transition function';
CREATE AGGREGATE fav_agg(bytea, float8) (
	SFUNC = fav_agg_transition, STYPE = internal, FINALFUNC = fav_agg_final,
	COMBINEFUNC = fav_agg_combine, SERIALFUNC = fav_agg_serialize,
	DESERIALFUNC = fav_agg_deserialize, PARALLEL = SAFE
);
COMMENT ON AGGREGATE fav_agg(bytea, float8) IS
	'filter of exactly the right size for all elements with this error rate';

CREATE FUNCTION fav_agg_transition(internal, bytea, float8, bigint) RETURNS internal
	AS 'MODULE_PATHNAME', 'fav_agg_bytea' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION fav_agg_transition(internal, bytea, float8, bigint) IS
	'aggregate transition function';
CREATE AGGREGATE fav_agg(bytea, float8, bigint) (
	SFUNC = fav_agg_transition, STYPE = internal, FINALFUNC = fav_agg_final,
	COMBINEFUNC = fav_agg_combine, SERIALFUNC = fav_agg_serialize,
	DESERIALFUNC = fav_agg_deserialize, PARALLEL = SAFE
);
COMMENT ON AGGREGATE fav_agg(bytea, float8, bigint) IS
	'filter for all elements with this error rate and at least this capacity';

-- Pairs.  The second number may have any integer type.  With bigint alone, PostgreSQL would
-- resolve two int columns to an element and its error rate: float8 is the preferred numeric type.

CREATE FUNCTION fav_agg_pair_transition(internal, bigint, bigint) RETURNS internal
	AS 'MODULE_PATHNAME', 'fav_agg_pair_int8' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION fav_agg_pair_transition(internal, bigint, bigint) IS
	'aggregate transition function';
CREATE AGGREGATE fav_agg(bigint, bigint) (
	SFUNC = fav_agg_pair_transition, STYPE = internal, FINALFUNC = fav_agg_final,
	COMBINEFUNC = fav_agg_combine, SERIALFUNC = fav_agg_serialize,
	DESERIALFUNC = fav_agg_deserialize, PARALLEL = SAFE
);
COMMENT ON AGGREGATE fav_agg(bigint, bigint) IS 'filter of exactly the right size for all pairs';

CREATE FUNCTION fav_agg_pair_transition(internal, bigint, int) RETURNS internal
	AS 'MODULE_PATHNAME', 'fav_agg_pair_int4' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION fav_agg_pair_transition(internal, bigint, int) IS
	'aggregate transition function';
CREATE AGGREGATE fav_agg(bigint, int) (
	SFUNC = fav_agg_pair_transition, STYPE = internal, FINALFUNC = fav_agg_final,
	COMBINEFUNC = fav_agg_combine, SERIALFUNC = fav_agg_serialize,
	DESERIALFUNC = fav_agg_deserialize, PARALLEL = SAFE
);
COMMENT ON AGGREGATE fav_agg(bigint, int) IS 'filter of exactly the right size for all pairs';

CREATE FUNCTION fav_agg_pair_transition(internal, bigint, smallint) RETURNS internal
	AS 'MODULE_PATHNAME', 'fav_agg_pair_int2' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION fav_agg_pair_transition(internal, bigint, smallint) IS
	'aggregate transition function';
CREATE AGGREGATE fav_agg(bigint, smallint) (
	SFUNC = fav_agg_pair_transition, STYPE = internal, FINALFUNC = fav_agg_final,
	COMBINEFUNC = fav_agg_combine, SERIALFUNC = fav_agg_serialize,
	DESERIALFUNC = fav_agg_deserialize, PARALLEL = SAFE
);
COMMENT ON AGGREGATE fav_agg(bigint, smallint) IS 'filter of exactly the right size for all pairs';

--
-- Equality and order, by the bytes.  For DISTINCT, UNION, IS DISTINCT FROM, joins and logical
-- replication with REPLICA IDENTITY FULL.
--

CREATE FUNCTION fav_lt(fav, fav) RETURNS boolean
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION fav_lt(fav, fav) IS 'implementation of < operator';
CREATE FUNCTION fav_le(fav, fav) RETURNS boolean
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION fav_le(fav, fav) IS 'implementation of <= operator';
CREATE FUNCTION fav_eq(fav, fav) RETURNS boolean
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION fav_eq(fav, fav) IS 'implementation of = operator';
CREATE FUNCTION fav_ne(fav, fav) RETURNS boolean
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION fav_ne(fav, fav) IS 'implementation of <> operator';
CREATE FUNCTION fav_ge(fav, fav) RETURNS boolean
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION fav_ge(fav, fav) IS 'implementation of >= operator';
CREATE FUNCTION fav_gt(fav, fav) RETURNS boolean
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION fav_gt(fav, fav) IS 'implementation of > operator';
CREATE FUNCTION fav_cmp(fav, fav) RETURNS integer
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION fav_cmp(fav, fav) IS 'less-equal-greater';
CREATE FUNCTION fav_hash(fav) RETURNS integer
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION fav_hash(fav) IS 'hash';
CREATE FUNCTION fav_hash_extended(fav, bigint) RETURNS bigint
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION fav_hash_extended(fav, bigint) IS 'hash';

CREATE OPERATOR = (LEFTARG = fav, RIGHTARG = fav, FUNCTION = fav_eq, COMMUTATOR = =, NEGATOR = <>,
	RESTRICT = eqsel, JOIN = eqjoinsel, HASHES, MERGES);
CREATE OPERATOR <> (LEFTARG = fav, RIGHTARG = fav, FUNCTION = fav_ne, COMMUTATOR = <>, NEGATOR = =,
	RESTRICT = neqsel, JOIN = neqjoinsel);
CREATE OPERATOR < (LEFTARG = fav, RIGHTARG = fav, FUNCTION = fav_lt, COMMUTATOR = >, NEGATOR = >=,
	RESTRICT = scalarltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (LEFTARG = fav, RIGHTARG = fav, FUNCTION = fav_le, COMMUTATOR = >=, NEGATOR = >,
	RESTRICT = scalarlesel, JOIN = scalarlejoinsel);
CREATE OPERATOR >= (LEFTARG = fav, RIGHTARG = fav, FUNCTION = fav_ge, COMMUTATOR = <=, NEGATOR = <,
	RESTRICT = scalargesel, JOIN = scalargejoinsel);
CREATE OPERATOR > (LEFTARG = fav, RIGHTARG = fav, FUNCTION = fav_gt, COMMUTATOR = <, NEGATOR = <=,
	RESTRICT = scalargtsel, JOIN = scalargtjoinsel);
COMMENT ON OPERATOR = (fav, fav) IS 'equal';
COMMENT ON OPERATOR <> (fav, fav) IS 'not equal';
COMMENT ON OPERATOR < (fav, fav) IS 'less than';
COMMENT ON OPERATOR <= (fav, fav) IS 'less than or equal';
COMMENT ON OPERATOR >= (fav, fav) IS 'greater than or equal';
COMMENT ON OPERATOR > (fav, fav) IS 'greater than';

CREATE OPERATOR CLASS fav_ops DEFAULT FOR TYPE fav USING btree AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 fav_cmp(fav, fav);
CREATE OPERATOR CLASS fav_ops DEFAULT FOR TYPE fav USING hash AS
	OPERATOR 1 =, FUNCTION 1 fav_hash(fav), FUNCTION 2 fav_hash_extended(fav, bigint);

--
-- Union
--

CREATE FUNCTION fav_union(fav, fav) RETURNS fav
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 200;
COMMENT ON FUNCTION fav_union(fav, fav) IS 'the filter with the elements of both';

CREATE OPERATOR || (LEFTARG = fav, RIGHTARG = fav, FUNCTION = fav_union);
COMMENT ON OPERATOR || (fav, fav) IS 'union';

CREATE FUNCTION fav_union_transition(internal, fav) RETURNS internal
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION fav_union_combine(internal, internal) RETURNS internal
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION fav_union_serialize(internal) RETURNS bytea
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION fav_union_deserialize(bytea, internal) RETURNS internal
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION fav_union_final(internal) RETURNS fav
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION fav_union_transition(internal, fav) IS 'aggregate transition function';
COMMENT ON FUNCTION fav_union_combine(internal, internal) IS 'aggregate combine function';
COMMENT ON FUNCTION fav_union_serialize(internal) IS 'aggregate serial function';
COMMENT ON FUNCTION fav_union_deserialize(bytea, internal) IS 'aggregate deserial function';
COMMENT ON FUNCTION fav_union_final(internal) IS 'aggregate final function';

CREATE AGGREGATE fav_union_agg(fav) (
	SFUNC = fav_union_transition, STYPE = internal, FINALFUNC = fav_union_final,
	COMBINEFUNC = fav_union_combine, SERIALFUNC = fav_union_serialize,
	DESERIALFUNC = fav_union_deserialize, PARALLEL = SAFE
);
COMMENT ON AGGREGATE fav_union_agg(fav) IS 'union of all filters';

--
-- Attached filters
--

-- The levels of one filter.  An upper level overrides the lower ones.

CREATE FUNCTION fav_stack(base fav, middle fav, recent fav) RETURNS fav
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION fav_stack(fav, fav, fav) IS 'the levels of an attached filter as one filter';

-- NULL levels are those of a key without a filter: nothing is in them.

CREATE FUNCTION fav_probe(base fav, middle fav, recent fav, element bigint) RETURNS boolean
	AS 'MODULE_PATHNAME', 'fav_probe_int8' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 3 SUPPORT fav_support;
COMMENT ON FUNCTION fav_probe(fav, fav, fav, bigint) IS
	'is the element in the filter of these levels?';
CREATE FUNCTION fav_probe_at(base fav, middle fav, recent fav, period int, element bigint) RETURNS boolean
	AS 'MODULE_PATHNAME', 'fav_probe_at_int8' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 3 SUPPORT fav_support;
COMMENT ON FUNCTION fav_probe_at(fav, fav, fav, int, bigint) IS
	'is the element in the dated filter of these levels, without what is too old in this period?';
CREATE FUNCTION fav_probe(base fav, middle fav, recent fav, element text) RETURNS boolean
	AS 'MODULE_PATHNAME', 'fav_probe_text' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 3 SUPPORT fav_support;
COMMENT ON FUNCTION fav_probe(fav, fav, fav, text) IS
	'is the element in the filter of these levels?';
CREATE FUNCTION fav_probe_at(base fav, middle fav, recent fav, period int, element text) RETURNS boolean
	AS 'MODULE_PATHNAME', 'fav_probe_at_text' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 3 SUPPORT fav_support;
COMMENT ON FUNCTION fav_probe_at(fav, fav, fav, int, text) IS
	'is the element in the dated filter of these levels, without what is too old in this period?';
CREATE FUNCTION fav_probe(base fav, middle fav, recent fav, element uuid) RETURNS boolean
	AS 'MODULE_PATHNAME', 'fav_probe_uuid' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 3 SUPPORT fav_support;
COMMENT ON FUNCTION fav_probe(fav, fav, fav, uuid) IS
	'is the element in the filter of these levels?';
CREATE FUNCTION fav_probe_at(base fav, middle fav, recent fav, period int, element uuid) RETURNS boolean
	AS 'MODULE_PATHNAME', 'fav_probe_at_uuid' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 3 SUPPORT fav_support;
COMMENT ON FUNCTION fav_probe_at(fav, fav, fav, int, uuid) IS
	'is the element in the dated filter of these levels, without what is too old in this period?';
CREATE FUNCTION fav_probe(base fav, middle fav, recent fav, element bytea) RETURNS boolean
	AS 'MODULE_PATHNAME', 'fav_probe_bytea' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 3 SUPPORT fav_support;
COMMENT ON FUNCTION fav_probe(fav, fav, fav, bytea) IS
	'is the element in the filter of these levels?';
CREATE FUNCTION fav_probe_at(base fav, middle fav, recent fav, period int, element bytea) RETURNS boolean
	AS 'MODULE_PATHNAME', 'fav_probe_at_bytea' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 3 SUPPORT fav_support;
COMMENT ON FUNCTION fav_probe_at(fav, fav, fav, int, bytea) IS
	'is the element in the dated filter of these levels, without what is too old in this period?';
CREATE FUNCTION fav_probe(base fav, middle fav, recent fav, key bigint, element bigint) RETURNS boolean
	AS 'MODULE_PATHNAME', 'fav_probe_pair' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 3 SUPPORT fav_support;
COMMENT ON FUNCTION fav_probe(fav, fav, fav, bigint, bigint) IS
	'is the pair in the filter of these levels?';

-- The base of an attached filter.  Like fav_agg, but with a seed, and its only slice may use the
-- whole error share of the base, because a base never grows.

CREATE FUNCTION fav_base_final(internal) RETURNS fav
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION fav_base_final(internal) IS 'aggregate final function';

CREATE FUNCTION fav_base_transition(internal, bigint, float8, bigint) RETURNS internal
	AS 'MODULE_PATHNAME', 'fav_base_int8' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION fav_base_transition(internal, bigint, float8, bigint) IS
	'aggregate transition function';
CREATE AGGREGATE fav_base(element bigint, error_rate float8, seed bigint) (
	SFUNC = fav_base_transition, STYPE = internal, FINALFUNC = fav_base_final,
	COMBINEFUNC = fav_agg_combine, SERIALFUNC = fav_agg_serialize,
	DESERIALFUNC = fav_agg_deserialize, PARALLEL = SAFE
);
COMMENT ON AGGREGATE fav_base(bigint, float8, bigint) IS 'the base of an attached filter';

CREATE FUNCTION fav_base_transition(internal, text, float8, bigint) RETURNS internal
	AS 'MODULE_PATHNAME', 'fav_base_text' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION fav_base_transition(internal, text, float8, bigint) IS
	'aggregate transition function';
CREATE AGGREGATE fav_base(element text, error_rate float8, seed bigint) (
	SFUNC = fav_base_transition, STYPE = internal, FINALFUNC = fav_base_final,
	COMBINEFUNC = fav_agg_combine, SERIALFUNC = fav_agg_serialize,
	DESERIALFUNC = fav_agg_deserialize, PARALLEL = SAFE
);
COMMENT ON AGGREGATE fav_base(text, float8, bigint) IS 'the base of an attached filter';

CREATE FUNCTION fav_base_transition(internal, uuid, float8, bigint) RETURNS internal
	AS 'MODULE_PATHNAME', 'fav_base_uuid' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION fav_base_transition(internal, uuid, float8, bigint) IS
	'aggregate transition function';
CREATE AGGREGATE fav_base(element uuid, error_rate float8, seed bigint) (
	SFUNC = fav_base_transition, STYPE = internal, FINALFUNC = fav_base_final,
	COMBINEFUNC = fav_agg_combine, SERIALFUNC = fav_agg_serialize,
	DESERIALFUNC = fav_agg_deserialize, PARALLEL = SAFE
);
COMMENT ON AGGREGATE fav_base(uuid, float8, bigint) IS 'the base of an attached filter';

CREATE FUNCTION fav_base_transition(internal, bytea, float8, bigint) RETURNS internal
	AS 'MODULE_PATHNAME', 'fav_base_bytea' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION fav_base_transition(internal, bytea, float8, bigint) IS
	'aggregate transition function';
CREATE AGGREGATE fav_base(element bytea, error_rate float8, seed bigint) (
	SFUNC = fav_base_transition, STYPE = internal, FINALFUNC = fav_base_final,
	COMBINEFUNC = fav_agg_combine, SERIALFUNC = fav_agg_serialize,
	DESERIALFUNC = fav_agg_deserialize, PARALLEL = SAFE
);
COMMENT ON AGGREGATE fav_base(bytea, float8, bigint) IS 'the base of an attached filter';

CREATE FUNCTION fav_base_transition(internal, bigint, bigint, float8, bigint) RETURNS internal
	AS 'MODULE_PATHNAME', 'fav_base_pair' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION fav_base_transition(internal, bigint, bigint, float8, bigint) IS
	'aggregate transition function';
CREATE AGGREGATE fav_base(key bigint, element bigint, error_rate float8, seed bigint) (
	SFUNC = fav_base_transition, STYPE = internal, FINALFUNC = fav_base_final,
	COMBINEFUNC = fav_agg_combine, SERIALFUNC = fav_agg_serialize,
	DESERIALFUNC = fav_agg_deserialize, PARALLEL = SAFE
);
COMMENT ON AGGREGATE fav_base(bigint, bigint, float8, bigint) IS
	'the base of an attached filter that several keys share';

CREATE FUNCTION fav_group(key bigint, n int) RETURNS bigint
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION fav_group(bigint, int) IS
	'the group of a key where n keys share a filter: key / n, rounded down';

CREATE FUNCTION fav_recent(source regclass, error_rate float8, seed bigint, share int) RETURNS fav
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION fav_recent(regclass, float8, bigint, int) IS
	'an empty filter; as the default of column recent it records the source and the parameters of an attachment';

CREATE FUNCTION fav_period(seconds bigint) RETURNS int
	AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION fav_period(bigint) IS
	'the present period, where each has so many seconds; counted from 2000-01-01';

CREATE FUNCTION fav_sink_recent(source regclass, error_rate float8, seed bigint, keep bigint) RETURNS fav
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION fav_sink_recent(regclass, float8, bigint, bigint) IS
	'an empty filter; as the default of column recent it records the source and the parameters of a sink';

-- <name>_has(key, element), which fav_attach and fav_sink make, is one call of fav_has.  All of
-- its arguments have exact types, so no overload can come before it.

CREATE FUNCTION fav_has_support(internal) RETURNS internal
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION fav_has_support(internal) IS
	'planner support: what a call of fav_has means, as queries';
CREATE FUNCTION fav_has(levels regclass, pair record, exact boolean, complete boolean) RETURNS boolean
	AS 'MODULE_PATHNAME' LANGUAGE C STABLE PARALLEL SAFE SUPPORT fav_has_support;
COMMENT ON FUNCTION fav_has(regclass, record, boolean, boolean) IS
	'implementation of the functions ..._has';

CREATE FUNCTION fav_may_have(found boolean, since xid, source regclass) RETURNS boolean
	AS 'MODULE_PATHNAME' LANGUAGE C STABLE PARALLEL SAFE SUPPORT fav_support;
COMMENT ON FUNCTION fav_may_have(boolean, xid, regclass) IS
	'what the filter reports; true where the filters may be older than the source';

CREATE FUNCTION fav_refuse_write() RETURNS trigger
	AS 'MODULE_PATHNAME' LANGUAGE C;
COMMENT ON FUNCTION fav_refuse_write() IS 'trigger of the views ..._fav: filters follow their table';

-- The trigger functions of an attachment; fav_attach creates the triggers.  A trigger that a
-- user creates by hand can reach only filters of their own tables.

CREATE FUNCTION fav_collect() RETURNS trigger
	AS 'MODULE_PATHNAME' LANGUAGE C;
COMMENT ON FUNCTION fav_collect() IS
	'row trigger of fav_attach and fav_sink: collects the touched pairs';
CREATE FUNCTION fav_reconcile() RETURNS trigger
	AS 'MODULE_PATHNAME' LANGUAGE C;
COMMENT ON FUNCTION fav_reconcile() IS
	'statement trigger of fav_attach and fav_sink: reconciles filters with what was collected';

CREATE FUNCTION fav_attach(
	source regclass, key name, element name, error_rate float8 DEFAULT 0.01,
	share int DEFAULT NULL, seed bigint DEFAULT NULL, name name DEFAULT NULL,
	exact boolean DEFAULT true, build boolean DEFAULT true
) RETURNS regprocedure
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 10000;
COMMENT ON FUNCTION fav_attach(regclass, name, name, float8, int, bigint, name, boolean, boolean) IS
	'build a filter per key of a table, or per group of keys, and keep it in step with the table; returns the function to ask';

CREATE FUNCTION fav_sink(
	source regclass, key name, element name, keep interval DEFAULT NULL, at name DEFAULT NULL,
	error_rate float8 DEFAULT 0.01
) RETURNS regprocedure
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 10000;
COMMENT ON FUNCTION fav_sink(regclass, name, name, interval, name, float8) IS
	'make a table keep a filter per key instead of the rows that are inserted; returns the function to ask';

-- What the functions of a sink call: <sink>_add and <sink>_remove, which fav_sink makes.  Their
-- types are exact, so that no overload fits better.  The key is in a row, so that it can have any type.

CREATE FUNCTION fav_sink_add(levels regclass, key record, elements bigint[]) RETURNS bigint[]
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION fav_sink_add(regclass, record, bigint[]) IS
	'body of <sink>_add: add elements to the filter of a key, and return those that it did not report before';
CREATE FUNCTION fav_sink_remove(levels regclass, key record, elements bigint[], exclude boolean) RETURNS void
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION fav_sink_remove(regclass, record, bigint[], boolean) IS
	'body of <sink>_remove: remove elements that were added to a sink; exclude: also if they were never added';
CREATE FUNCTION fav_sink_add(levels regclass, key record, elements text[]) RETURNS text[]
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION fav_sink_add(regclass, record, text[]) IS
	'body of <sink>_add: add elements to the filter of a key, and return those that it did not report before';
CREATE FUNCTION fav_sink_remove(levels regclass, key record, elements text[], exclude boolean) RETURNS void
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION fav_sink_remove(regclass, record, text[], boolean) IS
	'body of <sink>_remove: remove elements that were added to a sink; exclude: also if they were never added';
CREATE FUNCTION fav_sink_add(levels regclass, key record, elements uuid[]) RETURNS uuid[]
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION fav_sink_add(regclass, record, uuid[]) IS
	'body of <sink>_add: add elements to the filter of a key, and return those that it did not report before';
CREATE FUNCTION fav_sink_remove(levels regclass, key record, elements uuid[], exclude boolean) RETURNS void
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION fav_sink_remove(regclass, record, uuid[], boolean) IS
	'body of <sink>_remove: remove elements that were added to a sink; exclude: also if they were never added';
CREATE FUNCTION fav_sink_add(levels regclass, key record, elements bytea[]) RETURNS bytea[]
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION fav_sink_add(regclass, record, bytea[]) IS
	'body of <sink>_add: add elements to the filter of a key, and return those that it did not report before';
CREATE FUNCTION fav_sink_remove(levels regclass, key record, elements bytea[], exclude boolean) RETURNS void
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION fav_sink_remove(regclass, record, bytea[], boolean) IS
	'body of <sink>_remove: remove elements that were added to a sink; exclude: also if they were never added';

CREATE PROCEDURE fav_build(source regclass, name name DEFAULT NULL, rebuild boolean DEFAULT false)
	AS 'MODULE_PATHNAME' LANGUAGE C;
COMMENT ON PROCEDURE fav_build(regclass, name, boolean) IS
	'build the missing filters of a table, or all of them, in batches that commit, while others read and write';

CREATE FUNCTION fav_detach(source regclass, name name DEFAULT NULL) RETURNS void
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 10000;
COMMENT ON FUNCTION fav_detach(regclass, name) IS 'drop the filters of a table and their triggers';

CREATE FUNCTION fav_rebuild(source regclass, key text DEFAULT NULL, name name DEFAULT NULL) RETURNS void
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 10000;
COMMENT ON FUNCTION fav_rebuild(regclass, text, name) IS
	'rebuild the filters of all keys, or of one key in its text form, from the source';

CREATE FUNCTION fav_verify(
	source regclass, name name DEFAULT NULL,
	OUT keys bigint, OUT elements bigint, OUT missing bigint, OUT stale bigint, OUT false_positive_rate float8
)
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 10000;
COMMENT ON FUNCTION fav_verify(regclass, name) IS
	'compare the filters with their source; missing and stale must be 0';

CREATE FUNCTION fav_attachment_stats(
	source regclass, name name DEFAULT NULL,
	OUT keys bigint, OUT elements bigint, OUT bytes bigint, OUT exact_keys bigint, OUT keys_with_middle bigint
)
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 10000;
COMMENT ON FUNCTION fav_attachment_stats(regclass, name) IS 'number and size of the filters of a table';

CREATE FUNCTION fav_list_attachments(
	OUT source regclass, OUT key name, OUT element name, OUT filter regclass, OUT levels regclass,
	OUT error_rate float8, OUT share int, OUT complete boolean, OUT active boolean, OUT sink boolean, OUT keep interval,
	OUT has regprocedure, OUT exact boolean, OUT at name
) RETURNS SETOF record
	AS 'MODULE_PATHNAME' LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000 ROWS 10;
COMMENT ON FUNCTION fav_list_attachments() IS 'implementation of view fav_attachments';

CREATE VIEW fav_attachments AS
SELECT source, key, element, filter, levels, error_rate, share, complete, active, sink, keep, has, exact, at FROM fav_list_attachments();
COMMENT ON VIEW fav_attachments IS
	'all attachments; complete: the filters can be read; active: all triggers exist and always fire, on partitions too; sink: the table stores no rows; keep: and its filters forget; at: the column with the time of a row';
GRANT SELECT ON fav_attachments TO PUBLIC;

CREATE FUNCTION fav_list_progress(
	OUT pid int, OUT source regclass, OUT phase text, OUT keys_done bigint, OUT keys_estimated bigint,
	OUT rows_done bigint, OUT rows_per_second float8
) RETURNS SETOF record
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 1000 ROWS 10;
COMMENT ON FUNCTION fav_list_progress() IS 'implementation of view fav_progress';

CREATE VIEW fav_progress AS
SELECT pid, source, phase, keys_done, keys_estimated, rows_done, rows_per_second FROM fav_list_progress();
COMMENT ON VIEW fav_progress IS 'how far sessions are that build, rebuild or verify filters';
GRANT SELECT ON fav_progress TO PUBLIC;

--
-- Bounded sets
--

CREATE TYPE fav_cache;

CREATE FUNCTION fav_cache_in(cstring) RETURNS fav_cache
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION fav_cache_out(fav_cache) RETURNS cstring
	AS 'MODULE_PATHNAME', 'fav_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION fav_cache_recv(internal) RETURNS fav_cache
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION fav_cache_send(fav_cache) RETURNS bytea
	AS 'MODULE_PATHNAME', 'fav_send' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE TYPE fav_cache (
	INPUT = fav_cache_in, OUTPUT = fav_cache_out, RECEIVE = fav_cache_recv, SEND = fav_cache_send,
	INTERNALLENGTH = VARIABLE, ALIGNMENT = int4, STORAGE = external, CATEGORY = 'f'
);

COMMENT ON TYPE fav_cache IS 'bounded set that forgets, but never claims what was not added';
COMMENT ON FUNCTION fav_cache_in(cstring) IS 'I/O';
COMMENT ON FUNCTION fav_cache_out(fav_cache) IS 'I/O';
COMMENT ON FUNCTION fav_cache_recv(internal) IS 'I/O';
COMMENT ON FUNCTION fav_cache_send(fav_cache) IS 'I/O';

CREATE FUNCTION fav_cache_to_bytea(fav_cache) RETURNS bytea
	AS 'MODULE_PATHNAME', 'fav_to_bytea' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION fav_cache_from_bytea(bytea) RETURNS fav_cache
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION fav_cache_to_bytea(fav_cache) IS 'the wire format of a bounded set';
COMMENT ON FUNCTION fav_cache_from_bytea(bytea) IS 'a bounded set from its wire format';

CREATE CAST (fav_cache AS bytea) WITH FUNCTION fav_cache_to_bytea(fav_cache);
CREATE CAST (bytea AS fav_cache) WITH FUNCTION fav_cache_from_bytea(bytea);

CREATE FUNCTION fav_cache_new(capacity int, seed bigint DEFAULT 0) RETURNS fav_cache
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION fav_cache_new(int, bigint) IS
	'an empty bounded set, which will remember about so many elements';

-- NULL is an empty set of capacity 1000, so none of these is strict.

-- bigint

CREATE FUNCTION fav_add(fav_cache, bigint) RETURNS fav_cache
	AS 'MODULE_PATHNAME', 'fav_cache_add_int8' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 50;
COMMENT ON FUNCTION fav_add(fav_cache, bigint) IS 'the set with the element as its newest';
CREATE FUNCTION fav_add(fav_cache, bigint[]) RETURNS fav_cache
	AS 'MODULE_PATHNAME', 'fav_cache_add_int8_array' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 200;
COMMENT ON FUNCTION fav_add(fav_cache, bigint[]) IS 'the set with the elements, the last one as its newest';
CREATE FUNCTION fav_del(fav_cache, bigint) RETURNS fav_cache
	AS 'MODULE_PATHNAME', 'fav_cache_del_int8' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 50;
COMMENT ON FUNCTION fav_del(fav_cache, bigint) IS 'the set without the element';
CREATE FUNCTION fav_del(fav_cache, bigint[]) RETURNS fav_cache
	AS 'MODULE_PATHNAME', 'fav_cache_del_int8_array' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 200;
COMMENT ON FUNCTION fav_del(fav_cache, bigint[]) IS 'the set without the elements';
CREATE FUNCTION fav_contains(fav_cache, bigint) RETURNS boolean
	AS 'MODULE_PATHNAME', 'fav_cache_contains_int8' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 2 SUPPORT fav_support;
COMMENT ON FUNCTION fav_contains(fav_cache, bigint) IS 'does the set remember the element?';
CREATE FUNCTION fav_contained(bigint, fav_cache) RETURNS boolean
	AS 'MODULE_PATHNAME', 'fav_cache_contained_int8' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 2 SUPPORT fav_support;
COMMENT ON FUNCTION fav_contained(bigint, fav_cache) IS 'implementation of <@ operator';
CREATE FUNCTION fav_contains_any(fav_cache, bigint[]) RETURNS boolean
	AS 'MODULE_PATHNAME', 'fav_cache_contains_any_int8' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 20 SUPPORT fav_support;
COMMENT ON FUNCTION fav_contains_any(fav_cache, bigint[]) IS 'does the set remember one of the elements?';
CREATE FUNCTION fav_contains_all(fav_cache, bigint[]) RETURNS boolean
	AS 'MODULE_PATHNAME', 'fav_cache_contains_all_int8' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 20 SUPPORT fav_support;
COMMENT ON FUNCTION fav_contains_all(fav_cache, bigint[]) IS 'does the set remember all of the elements?';
CREATE FUNCTION fav_filter(fav_cache, bigint[]) RETURNS bigint[]
	AS 'MODULE_PATHNAME', 'fav_cache_filter_int8' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 50;
COMMENT ON FUNCTION fav_filter(fav_cache, bigint[]) IS
	'the elements that the set does not remember, in order';

CREATE OPERATOR @> (LEFTARG = fav_cache, RIGHTARG = bigint, FUNCTION = fav_contains, COMMUTATOR = <@,
	RESTRICT = fav_restriction_selectivity, JOIN = fav_join_selectivity);
COMMENT ON OPERATOR @> (fav_cache, bigint) IS 'contains';
CREATE OPERATOR <@ (LEFTARG = bigint, RIGHTARG = fav_cache, FUNCTION = fav_contained, COMMUTATOR = @>,
	RESTRICT = fav_restriction_selectivity, JOIN = fav_join_selectivity);
COMMENT ON OPERATOR <@ (bigint, fav_cache) IS 'is contained in';
CREATE OPERATOR + (LEFTARG = fav_cache, RIGHTARG = bigint, FUNCTION = fav_add);
COMMENT ON OPERATOR + (fav_cache, bigint) IS 'add';

CREATE FUNCTION fav_cache_agg_transition(internal, bigint) RETURNS internal
	AS 'MODULE_PATHNAME', 'fav_cache_agg_int8' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION fav_cache_agg_transition(internal, bigint) IS 'aggregate transition function';
CREATE FUNCTION fav_cache_agg_transition(internal, bigint, int) RETURNS internal
	AS 'MODULE_PATHNAME', 'fav_cache_agg_int8' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION fav_cache_agg_transition(internal, bigint, int) IS 'aggregate transition function';

-- text

CREATE FUNCTION fav_add(fav_cache, text) RETURNS fav_cache
	AS 'MODULE_PATHNAME', 'fav_cache_add_text' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 50;
COMMENT ON FUNCTION fav_add(fav_cache, text) IS 'the set with the element as its newest';
CREATE FUNCTION fav_add(fav_cache, text[]) RETURNS fav_cache
	AS 'MODULE_PATHNAME', 'fav_cache_add_text_array' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 200;
COMMENT ON FUNCTION fav_add(fav_cache, text[]) IS 'the set with the elements, the last one as its newest';
CREATE FUNCTION fav_del(fav_cache, text) RETURNS fav_cache
	AS 'MODULE_PATHNAME', 'fav_cache_del_text' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 50;
COMMENT ON FUNCTION fav_del(fav_cache, text) IS 'the set without the element';
CREATE FUNCTION fav_del(fav_cache, text[]) RETURNS fav_cache
	AS 'MODULE_PATHNAME', 'fav_cache_del_text_array' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 200;
COMMENT ON FUNCTION fav_del(fav_cache, text[]) IS 'the set without the elements';
CREATE FUNCTION fav_contains(fav_cache, text) RETURNS boolean
	AS 'MODULE_PATHNAME', 'fav_cache_contains_text' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 2 SUPPORT fav_support;
COMMENT ON FUNCTION fav_contains(fav_cache, text) IS 'does the set remember the element?';
CREATE FUNCTION fav_contained(text, fav_cache) RETURNS boolean
	AS 'MODULE_PATHNAME', 'fav_cache_contained_text' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 2 SUPPORT fav_support;
COMMENT ON FUNCTION fav_contained(text, fav_cache) IS 'implementation of <@ operator';
CREATE FUNCTION fav_contains_any(fav_cache, text[]) RETURNS boolean
	AS 'MODULE_PATHNAME', 'fav_cache_contains_any_text' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 20 SUPPORT fav_support;
COMMENT ON FUNCTION fav_contains_any(fav_cache, text[]) IS 'does the set remember one of the elements?';
CREATE FUNCTION fav_contains_all(fav_cache, text[]) RETURNS boolean
	AS 'MODULE_PATHNAME', 'fav_cache_contains_all_text' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 20 SUPPORT fav_support;
COMMENT ON FUNCTION fav_contains_all(fav_cache, text[]) IS 'does the set remember all of the elements?';
CREATE FUNCTION fav_filter(fav_cache, text[]) RETURNS text[]
	AS 'MODULE_PATHNAME', 'fav_cache_filter_text' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 50;
COMMENT ON FUNCTION fav_filter(fav_cache, text[]) IS
	'the elements that the set does not remember, in order';

CREATE OPERATOR @> (LEFTARG = fav_cache, RIGHTARG = text, FUNCTION = fav_contains, COMMUTATOR = <@,
	RESTRICT = fav_restriction_selectivity, JOIN = fav_join_selectivity);
COMMENT ON OPERATOR @> (fav_cache, text) IS 'contains';
CREATE OPERATOR <@ (LEFTARG = text, RIGHTARG = fav_cache, FUNCTION = fav_contained, COMMUTATOR = @>,
	RESTRICT = fav_restriction_selectivity, JOIN = fav_join_selectivity);
COMMENT ON OPERATOR <@ (text, fav_cache) IS 'is contained in';
CREATE OPERATOR + (LEFTARG = fav_cache, RIGHTARG = text, FUNCTION = fav_add);
COMMENT ON OPERATOR + (fav_cache, text) IS 'add';

CREATE FUNCTION fav_cache_agg_transition(internal, text) RETURNS internal
	AS 'MODULE_PATHNAME', 'fav_cache_agg_text' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION fav_cache_agg_transition(internal, text) IS 'aggregate transition function';
CREATE FUNCTION fav_cache_agg_transition(internal, text, int) RETURNS internal
	AS 'MODULE_PATHNAME', 'fav_cache_agg_text' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION fav_cache_agg_transition(internal, text, int) IS 'aggregate transition function';

-- uuid

CREATE FUNCTION fav_add(fav_cache, uuid) RETURNS fav_cache
	AS 'MODULE_PATHNAME', 'fav_cache_add_uuid' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 50;
COMMENT ON FUNCTION fav_add(fav_cache, uuid) IS 'the set with the element as its newest';
CREATE FUNCTION fav_add(fav_cache, uuid[]) RETURNS fav_cache
	AS 'MODULE_PATHNAME', 'fav_cache_add_uuid_array' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 200;
COMMENT ON FUNCTION fav_add(fav_cache, uuid[]) IS 'the set with the elements, the last one as its newest';
CREATE FUNCTION fav_del(fav_cache, uuid) RETURNS fav_cache
	AS 'MODULE_PATHNAME', 'fav_cache_del_uuid' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 50;
COMMENT ON FUNCTION fav_del(fav_cache, uuid) IS 'the set without the element';
CREATE FUNCTION fav_del(fav_cache, uuid[]) RETURNS fav_cache
	AS 'MODULE_PATHNAME', 'fav_cache_del_uuid_array' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 200;
COMMENT ON FUNCTION fav_del(fav_cache, uuid[]) IS 'the set without the elements';
CREATE FUNCTION fav_contains(fav_cache, uuid) RETURNS boolean
	AS 'MODULE_PATHNAME', 'fav_cache_contains_uuid' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 2 SUPPORT fav_support;
COMMENT ON FUNCTION fav_contains(fav_cache, uuid) IS 'does the set remember the element?';
CREATE FUNCTION fav_contained(uuid, fav_cache) RETURNS boolean
	AS 'MODULE_PATHNAME', 'fav_cache_contained_uuid' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 2 SUPPORT fav_support;
COMMENT ON FUNCTION fav_contained(uuid, fav_cache) IS 'implementation of <@ operator';
CREATE FUNCTION fav_contains_any(fav_cache, uuid[]) RETURNS boolean
	AS 'MODULE_PATHNAME', 'fav_cache_contains_any_uuid' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 20 SUPPORT fav_support;
COMMENT ON FUNCTION fav_contains_any(fav_cache, uuid[]) IS 'does the set remember one of the elements?';
CREATE FUNCTION fav_contains_all(fav_cache, uuid[]) RETURNS boolean
	AS 'MODULE_PATHNAME', 'fav_cache_contains_all_uuid' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 20 SUPPORT fav_support;
COMMENT ON FUNCTION fav_contains_all(fav_cache, uuid[]) IS 'does the set remember all of the elements?';
CREATE FUNCTION fav_filter(fav_cache, uuid[]) RETURNS uuid[]
	AS 'MODULE_PATHNAME', 'fav_cache_filter_uuid' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 50;
COMMENT ON FUNCTION fav_filter(fav_cache, uuid[]) IS
	'the elements that the set does not remember, in order';

CREATE OPERATOR @> (LEFTARG = fav_cache, RIGHTARG = uuid, FUNCTION = fav_contains, COMMUTATOR = <@,
	RESTRICT = fav_restriction_selectivity, JOIN = fav_join_selectivity);
COMMENT ON OPERATOR @> (fav_cache, uuid) IS 'contains';
CREATE OPERATOR <@ (LEFTARG = uuid, RIGHTARG = fav_cache, FUNCTION = fav_contained, COMMUTATOR = @>,
	RESTRICT = fav_restriction_selectivity, JOIN = fav_join_selectivity);
COMMENT ON OPERATOR <@ (uuid, fav_cache) IS 'is contained in';
CREATE OPERATOR + (LEFTARG = fav_cache, RIGHTARG = uuid, FUNCTION = fav_add);
COMMENT ON OPERATOR + (fav_cache, uuid) IS 'add';

CREATE FUNCTION fav_cache_agg_transition(internal, uuid) RETURNS internal
	AS 'MODULE_PATHNAME', 'fav_cache_agg_uuid' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION fav_cache_agg_transition(internal, uuid) IS 'aggregate transition function';
CREATE FUNCTION fav_cache_agg_transition(internal, uuid, int) RETURNS internal
	AS 'MODULE_PATHNAME', 'fav_cache_agg_uuid' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION fav_cache_agg_transition(internal, uuid, int) IS 'aggregate transition function';

-- bytea

CREATE FUNCTION fav_add(fav_cache, bytea) RETURNS fav_cache
	AS 'MODULE_PATHNAME', 'fav_cache_add_bytea' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 50;
COMMENT ON FUNCTION fav_add(fav_cache, bytea) IS 'the set with the element as its newest';
CREATE FUNCTION fav_add(fav_cache, bytea[]) RETURNS fav_cache
	AS 'MODULE_PATHNAME', 'fav_cache_add_bytea_array' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 200;
COMMENT ON FUNCTION fav_add(fav_cache, bytea[]) IS 'the set with the elements, the last one as its newest';
CREATE FUNCTION fav_del(fav_cache, bytea) RETURNS fav_cache
	AS 'MODULE_PATHNAME', 'fav_cache_del_bytea' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 50;
COMMENT ON FUNCTION fav_del(fav_cache, bytea) IS 'the set without the element';
CREATE FUNCTION fav_del(fav_cache, bytea[]) RETURNS fav_cache
	AS 'MODULE_PATHNAME', 'fav_cache_del_bytea_array' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 200;
COMMENT ON FUNCTION fav_del(fav_cache, bytea[]) IS 'the set without the elements';
CREATE FUNCTION fav_contains(fav_cache, bytea) RETURNS boolean
	AS 'MODULE_PATHNAME', 'fav_cache_contains_bytea' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 2 SUPPORT fav_support;
COMMENT ON FUNCTION fav_contains(fav_cache, bytea) IS 'does the set remember the element?';
CREATE FUNCTION fav_contained(bytea, fav_cache) RETURNS boolean
	AS 'MODULE_PATHNAME', 'fav_cache_contained_bytea' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 2 SUPPORT fav_support;
COMMENT ON FUNCTION fav_contained(bytea, fav_cache) IS 'implementation of <@ operator';
CREATE FUNCTION fav_contains_any(fav_cache, bytea[]) RETURNS boolean
	AS 'MODULE_PATHNAME', 'fav_cache_contains_any_bytea' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 20 SUPPORT fav_support;
COMMENT ON FUNCTION fav_contains_any(fav_cache, bytea[]) IS 'does the set remember one of the elements?';
CREATE FUNCTION fav_contains_all(fav_cache, bytea[]) RETURNS boolean
	AS 'MODULE_PATHNAME', 'fav_cache_contains_all_bytea' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 20 SUPPORT fav_support;
COMMENT ON FUNCTION fav_contains_all(fav_cache, bytea[]) IS 'does the set remember all of the elements?';
CREATE FUNCTION fav_filter(fav_cache, bytea[]) RETURNS bytea[]
	AS 'MODULE_PATHNAME', 'fav_cache_filter_bytea' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 50;
COMMENT ON FUNCTION fav_filter(fav_cache, bytea[]) IS
	'the elements that the set does not remember, in order';

CREATE OPERATOR @> (LEFTARG = fav_cache, RIGHTARG = bytea, FUNCTION = fav_contains, COMMUTATOR = <@,
	RESTRICT = fav_restriction_selectivity, JOIN = fav_join_selectivity);
COMMENT ON OPERATOR @> (fav_cache, bytea) IS 'contains';
CREATE OPERATOR <@ (LEFTARG = bytea, RIGHTARG = fav_cache, FUNCTION = fav_contained, COMMUTATOR = @>,
	RESTRICT = fav_restriction_selectivity, JOIN = fav_join_selectivity);
COMMENT ON OPERATOR <@ (bytea, fav_cache) IS 'is contained in';
CREATE OPERATOR + (LEFTARG = fav_cache, RIGHTARG = bytea, FUNCTION = fav_add);
COMMENT ON OPERATOR + (fav_cache, bytea) IS 'add';

CREATE FUNCTION fav_cache_agg_transition(internal, bytea) RETURNS internal
	AS 'MODULE_PATHNAME', 'fav_cache_agg_bytea' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION fav_cache_agg_transition(internal, bytea) IS 'aggregate transition function';
CREATE FUNCTION fav_cache_agg_transition(internal, bytea, int) RETURNS internal
	AS 'MODULE_PATHNAME', 'fav_cache_agg_bytea' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION fav_cache_agg_transition(internal, bytea, int) IS 'aggregate transition function';

CREATE OPERATOR - (LEFTARG = fav_cache, RIGHTARG = bigint, FUNCTION = fav_del);
COMMENT ON OPERATOR - (fav_cache, bigint) IS 'delete';
CREATE OPERATOR - (LEFTARG = fav_cache, RIGHTARG = uuid, FUNCTION = fav_del);
COMMENT ON OPERATOR - (fav_cache, uuid) IS 'delete';

CREATE FUNCTION fav_add(fav_cache, bigint, bigint) RETURNS fav_cache
	AS 'MODULE_PATHNAME', 'fav_cache_add_pair' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 50;
COMMENT ON FUNCTION fav_add(fav_cache, bigint, bigint) IS 'the set with the pair as its newest';
CREATE FUNCTION fav_del(fav_cache, bigint, bigint) RETURNS fav_cache
	AS 'MODULE_PATHNAME', 'fav_cache_del_pair' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 50;
COMMENT ON FUNCTION fav_del(fav_cache, bigint, bigint) IS 'the set without the pair';
CREATE FUNCTION fav_contains(fav_cache, bigint, bigint) RETURNS boolean
	AS 'MODULE_PATHNAME', 'fav_cache_contains_pair' LANGUAGE C
	IMMUTABLE PARALLEL SAFE COST 2 SUPPORT fav_support;
COMMENT ON FUNCTION fav_contains(fav_cache, bigint, bigint) IS 'does the set remember the pair?';

CREATE FUNCTION fav_count(fav_cache) RETURNS bigint
	AS 'MODULE_PATHNAME', 'fav_cache_count' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 10;
COMMENT ON FUNCTION fav_count(fav_cache) IS 'number of elements that the set remembers';

CREATE FUNCTION fav_cache_stats(
	fav_cache,
	OUT format int, OUT kind text, OUT capacity int, OUT seed bigint, OUT used int, OUT slots int,
	OUT bytes bigint, OUT eviction_rate float8
)
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000;
COMMENT ON FUNCTION fav_cache_stats(fav_cache) IS 'parameters and condition of a bounded set';

-- The order of the rows decides which elements are the newest, so states cannot be combined.

CREATE FUNCTION fav_cache_agg_final(internal) RETURNS fav_cache
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION fav_cache_agg_final(internal) IS 'aggregate final function';
CREATE FUNCTION fav_cache_agg_transition(internal, bigint, bigint, int) RETURNS internal
	AS 'MODULE_PATHNAME', 'fav_cache_agg_pair' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION fav_cache_agg_transition(internal, bigint, bigint, int) IS
	'aggregate transition function';

CREATE AGGREGATE fav_cache_agg(bigint) (
	SFUNC = fav_cache_agg_transition, STYPE = internal, FINALFUNC = fav_cache_agg_final,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE fav_cache_agg(bigint) IS
	'bounded set of capacity 1000 of the elements, in the order of the rows';
CREATE AGGREGATE fav_cache_agg(bigint, capacity int) (
	SFUNC = fav_cache_agg_transition, STYPE = internal, FINALFUNC = fav_cache_agg_final,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE fav_cache_agg(bigint, int) IS
	'bounded set of the elements, in the order of the rows';
CREATE AGGREGATE fav_cache_agg(text) (
	SFUNC = fav_cache_agg_transition, STYPE = internal, FINALFUNC = fav_cache_agg_final,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE fav_cache_agg(text) IS
	'bounded set of capacity 1000 of the elements, in the order of the rows';
CREATE AGGREGATE fav_cache_agg(text, capacity int) (
	SFUNC = fav_cache_agg_transition, STYPE = internal, FINALFUNC = fav_cache_agg_final,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE fav_cache_agg(text, int) IS
	'bounded set of the elements, in the order of the rows';
CREATE AGGREGATE fav_cache_agg(uuid) (
	SFUNC = fav_cache_agg_transition, STYPE = internal, FINALFUNC = fav_cache_agg_final,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE fav_cache_agg(uuid) IS
	'bounded set of capacity 1000 of the elements, in the order of the rows';
CREATE AGGREGATE fav_cache_agg(uuid, capacity int) (
	SFUNC = fav_cache_agg_transition, STYPE = internal, FINALFUNC = fav_cache_agg_final,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE fav_cache_agg(uuid, int) IS
	'bounded set of the elements, in the order of the rows';
CREATE AGGREGATE fav_cache_agg(bytea) (
	SFUNC = fav_cache_agg_transition, STYPE = internal, FINALFUNC = fav_cache_agg_final,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE fav_cache_agg(bytea) IS
	'bounded set of capacity 1000 of the elements, in the order of the rows';
CREATE AGGREGATE fav_cache_agg(bytea, capacity int) (
	SFUNC = fav_cache_agg_transition, STYPE = internal, FINALFUNC = fav_cache_agg_final,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE fav_cache_agg(bytea, int) IS
	'bounded set of the elements, in the order of the rows';
CREATE AGGREGATE fav_cache_agg(bigint, bigint, capacity int) (
	SFUNC = fav_cache_agg_transition, STYPE = internal, FINALFUNC = fav_cache_agg_final,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE fav_cache_agg(bigint, bigint, int) IS
	'bounded set of the pairs, in the order of the rows';

-- Equality and order, by the bytes.

CREATE FUNCTION fav_cache_lt(fav_cache, fav_cache) RETURNS boolean
	AS 'MODULE_PATHNAME', 'fav_lt' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION fav_cache_lt(fav_cache, fav_cache) IS 'implementation of < operator';
CREATE FUNCTION fav_cache_le(fav_cache, fav_cache) RETURNS boolean
	AS 'MODULE_PATHNAME', 'fav_le' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION fav_cache_le(fav_cache, fav_cache) IS 'implementation of <= operator';
CREATE FUNCTION fav_cache_eq(fav_cache, fav_cache) RETURNS boolean
	AS 'MODULE_PATHNAME', 'fav_eq' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION fav_cache_eq(fav_cache, fav_cache) IS 'implementation of = operator';
CREATE FUNCTION fav_cache_ne(fav_cache, fav_cache) RETURNS boolean
	AS 'MODULE_PATHNAME', 'fav_ne' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION fav_cache_ne(fav_cache, fav_cache) IS 'implementation of <> operator';
CREATE FUNCTION fav_cache_ge(fav_cache, fav_cache) RETURNS boolean
	AS 'MODULE_PATHNAME', 'fav_ge' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION fav_cache_ge(fav_cache, fav_cache) IS 'implementation of >= operator';
CREATE FUNCTION fav_cache_gt(fav_cache, fav_cache) RETURNS boolean
	AS 'MODULE_PATHNAME', 'fav_gt' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION fav_cache_gt(fav_cache, fav_cache) IS 'implementation of > operator';
CREATE FUNCTION fav_cache_cmp(fav_cache, fav_cache) RETURNS integer
	AS 'MODULE_PATHNAME', 'fav_cmp' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION fav_cache_cmp(fav_cache, fav_cache) IS 'less-equal-greater';
CREATE FUNCTION fav_cache_hash(fav_cache) RETURNS integer
	AS 'MODULE_PATHNAME', 'fav_hash' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION fav_cache_hash(fav_cache) IS 'hash';
CREATE FUNCTION fav_cache_hash_extended(fav_cache, bigint) RETURNS bigint
	AS 'MODULE_PATHNAME', 'fav_hash_extended' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION fav_cache_hash_extended(fav_cache, bigint) IS 'hash';

CREATE OPERATOR = (LEFTARG = fav_cache, RIGHTARG = fav_cache, FUNCTION = fav_cache_eq,
	COMMUTATOR = =, NEGATOR = <>, RESTRICT = eqsel, JOIN = eqjoinsel, HASHES, MERGES);
CREATE OPERATOR <> (LEFTARG = fav_cache, RIGHTARG = fav_cache, FUNCTION = fav_cache_ne,
	COMMUTATOR = <>, NEGATOR = =, RESTRICT = neqsel, JOIN = neqjoinsel);
CREATE OPERATOR < (LEFTARG = fav_cache, RIGHTARG = fav_cache, FUNCTION = fav_cache_lt,
	COMMUTATOR = >, NEGATOR = >=, RESTRICT = scalarltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (LEFTARG = fav_cache, RIGHTARG = fav_cache, FUNCTION = fav_cache_le,
	COMMUTATOR = >=, NEGATOR = >, RESTRICT = scalarlesel, JOIN = scalarlejoinsel);
CREATE OPERATOR >= (LEFTARG = fav_cache, RIGHTARG = fav_cache, FUNCTION = fav_cache_ge,
	COMMUTATOR = <=, NEGATOR = <, RESTRICT = scalargesel, JOIN = scalargejoinsel);
CREATE OPERATOR > (LEFTARG = fav_cache, RIGHTARG = fav_cache, FUNCTION = fav_cache_gt,
	COMMUTATOR = <, NEGATOR = <=, RESTRICT = scalargtsel, JOIN = scalargtjoinsel);
COMMENT ON OPERATOR = (fav_cache, fav_cache) IS 'equal';
COMMENT ON OPERATOR <> (fav_cache, fav_cache) IS 'not equal';
COMMENT ON OPERATOR < (fav_cache, fav_cache) IS 'less than';
COMMENT ON OPERATOR <= (fav_cache, fav_cache) IS 'less than or equal';
COMMENT ON OPERATOR >= (fav_cache, fav_cache) IS 'greater than or equal';
COMMENT ON OPERATOR > (fav_cache, fav_cache) IS 'greater than';

CREATE OPERATOR CLASS fav_cache_ops DEFAULT FOR TYPE fav_cache USING btree AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 fav_cache_cmp(fav_cache, fav_cache);
CREATE OPERATOR CLASS fav_cache_ops DEFAULT FOR TYPE fav_cache USING hash AS
	OPERATOR 1 =, FUNCTION 1 fav_cache_hash(fav_cache), FUNCTION 2 fav_cache_hash_extended(fav_cache, bigint);
