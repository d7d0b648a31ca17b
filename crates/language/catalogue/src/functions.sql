-- Functions of PostgreSQL that know the catalogue, written in Entente's own SQL. Arguments that have the type name or
-- "char" in PostgreSQL are text here, and what names objects is their number.

CREATE TYPE entente_expanded AS (x integer, n integer);

CREATE FUNCTION _pg_expandarray(integer[]) RETURNS SETOF entente_expanded STABLE LANGUAGE plpgsql AS $$
DECLARE found entente_expanded;
BEGIN
  FOR i IN 1 .. coalesce(cardinality($1), 0) LOOP
    found.x := $1[i];
    found.n := i;
    RETURN NEXT found;
  END LOOP;
END $$;

-- What PostgreSQL's functions print.

CREATE FUNCTION entente_text(kind text, object oid, part integer DEFAULT 0) RETURNS text STABLE LANGUAGE sql AS
  'SELECT d.definition FROM entente_definition d WHERE d.kind = $1 AND d.object = $2 AND d.part = $3';

CREATE FUNCTION pg_get_expr(expression text, relation oid, pretty boolean DEFAULT false) RETURNS text IMMUTABLE LANGUAGE sql AS
  'SELECT $1';

CREATE FUNCTION pg_get_indexdef(relation oid, part integer DEFAULT 0, pretty boolean DEFAULT false) RETURNS text STABLE LANGUAGE sql AS
  'SELECT entente_text(CASE WHEN $3 THEN ''pretty index'' ELSE ''index'' END, $1, $2)';

CREATE FUNCTION pg_get_constraintdef(object oid, pretty boolean DEFAULT false) RETURNS text STABLE LANGUAGE sql AS
  'SELECT entente_text(''constraint'', $1)';

CREATE FUNCTION pg_get_triggerdef(object oid, pretty boolean DEFAULT false) RETURNS text STABLE LANGUAGE sql AS
  'SELECT entente_text(''trigger'', $1, CASE WHEN $2 THEN 1 ELSE 0 END)';

CREATE FUNCTION pg_get_functiondef(object oid) RETURNS text STABLE LANGUAGE sql AS
  'SELECT entente_text(''routine'', $1)';

CREATE TYPE entente_identity AS (type text, schema text, name text, identity text);

CREATE FUNCTION pg_identify_object(catalog oid, object oid, part integer) RETURNS entente_identity STABLE LANGUAGE sql AS
  'SELECT CASE p.prokind WHEN ''a'' THEN ''aggregate'' WHEN ''p'' THEN ''procedure'' ELSE ''function'' END, n.nspname, NULL::text,
     quote_ident(n.nspname) || ''.'' || quote_ident(p.proname) || ''('' || entente_text(''identity'', p.oid) || '')''
     FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE p.oid = $2 AND $1 = 1255
   UNION ALL
   SELECT CASE c.relkind WHEN ''v'' THEN ''view'' WHEN ''m'' THEN ''materialized view'' WHEN ''S'' THEN ''sequence'' WHEN ''i'' THEN ''index'' WHEN ''c'' THEN ''composite type'' ELSE ''table'' END,
     n.nspname, c.relname, quote_ident(n.nspname) || ''.'' || quote_ident(c.relname)
     FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = $2 AND $1 = 1259
   UNION ALL
   SELECT ''schema'', NULL::text, n.nspname, quote_ident(n.nspname) FROM pg_namespace n WHERE n.oid = $2 AND $1 = 2615';

CREATE FUNCTION pg_get_function_arguments(object oid) RETURNS text STABLE LANGUAGE sql AS
  'SELECT entente_text(''arguments'', $1)';

CREATE FUNCTION pg_get_function_identity_arguments(object oid) RETURNS text STABLE LANGUAGE sql AS
  'SELECT entente_text(''identity'', $1)';

CREATE FUNCTION pg_get_function_result(object oid) RETURNS text STABLE LANGUAGE sql AS
  'SELECT entente_text(''result'', $1)';

CREATE FUNCTION pg_get_function_arg_default(object oid, part integer) RETURNS text STABLE LANGUAGE sql AS
  'SELECT entente_text(''default'', $1, $2)';

CREATE FUNCTION pg_get_function_sqlbody(object oid) RETURNS text IMMUTABLE LANGUAGE sql AS 'SELECT NULL::text';

CREATE FUNCTION pg_get_ruledef(object oid, pretty boolean DEFAULT false) RETURNS text STABLE LANGUAGE sql AS
  'SELECT entente_text(''rule'', $1)';

CREATE FUNCTION pg_get_partkeydef(object oid) RETURNS text STABLE LANGUAGE sql AS
  'SELECT entente_text(''partition key'', $1)';

CREATE FUNCTION pg_get_partition_constraintdef(object oid) RETURNS text STABLE LANGUAGE sql AS
  'SELECT entente_text(''partition constraint'', $1)';

CREATE FUNCTION pg_get_statisticsobjdef(object oid) RETURNS text IMMUTABLE LANGUAGE sql AS 'SELECT NULL::text';

CREATE FUNCTION pg_get_statisticsobjdef_columns(object oid) RETURNS text IMMUTABLE LANGUAGE sql AS 'SELECT NULL::text';

CREATE FUNCTION pg_get_userbyid(object oid) RETURNS text STABLE LANGUAGE sql AS
  'SELECT coalesce((SELECT a.rolname FROM pg_authid a WHERE a.oid = $1), ''unknown (OID='' || $1::text || '')'')';

-- Names and object identifiers.

-- The schema, or NULL, and the name that a text is.
CREATE FUNCTION entente_parts(name text) RETURNS text[] IMMUTABLE LANGUAGE plpgsql AS $$
DECLARE found text[]; parts text[];
BEGIN
  IF name IS NULL THEN RETURN NULL; END IF;
  found := regexp_match(name, '^\s*(?:("(?:[^"]|"")+"|[^".\s]+)\s*\.\s*)?("(?:[^"]|"")+"|[^".]+?)\s*$');
  IF found IS NULL THEN
    RAISE EXCEPTION 'invalid name syntax' USING ERRCODE = '42602';
  END IF;
  FOR i IN 1 .. 2 LOOP
    parts[i] := CASE WHEN found[i] LIKE '"%' THEN replace(substr(found[i], 2, length(found[i]) - 2), '""', '"') ELSE lower(found[i]) END;
  END LOOP;
  RETURN parts;
END $$;

-- The schema of the session's temporary tables, which every session calls pg_temp; 0 where it has none.
CREATE FUNCTION pg_my_temp_schema() RETURNS oid STABLE LANGUAGE sql AS
  'SELECT coalesce((SELECT s.oid FROM entente_search_path s WHERE s.place < 0), 0)';

CREATE FUNCTION to_regclass(name text) RETURNS oid STABLE LANGUAGE plpgsql AS $$
DECLARE parts text[]; found oid;
BEGIN
  IF name ~ '^[0-9]+$' THEN RETURN name::oid; END IF;
  parts := entente_parts(name);
  SELECT c.oid INTO found FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relname = parts[2] AND CASE WHEN parts[1] IS NULL THEN n.oid IN (SELECT s.oid FROM entente_search_path s) ELSE n.nspname = parts[1] OR (parts[1] = 'pg_temp' AND n.oid = pg_my_temp_schema()) END
    ORDER BY (SELECT s.place FROM entente_search_path s WHERE s.oid = n.oid) LIMIT 1;
  RETURN found;
END $$;

-- What proves a row, or that there is none: the table, then the values of its primary key.

CREATE FUNCTION entente_row_proof(asked text) RETURNS text STABLE LANGUAGE plpgsql AS $$
DECLARE found text; state text; reason text; advice text;
BEGIN
  SELECT p.proof, p.sqlstate, p.message, p.hint INTO found, state, reason, advice FROM entente_row_proof p WHERE p.asked = $1;
  IF advice IS NOT NULL THEN
    RAISE EXCEPTION '%', reason USING ERRCODE = state, HINT = advice;
  ELSIF state IS NOT NULL THEN
    RAISE EXCEPTION '%', reason USING ERRCODE = state;
  END IF;
  RETURN found;
END $$;

CREATE FUNCTION entente_regclass(name text) RETURNS oid STABLE LANGUAGE plpgsql AS $$
DECLARE found oid := to_regclass(name);
BEGIN
  IF found IS NULL AND name IS NOT NULL THEN
    IF name = '-' THEN RETURN 0; END IF;
    RAISE EXCEPTION 'relation "%" does not exist', name USING ERRCODE = '42P01';
  END IF;
  RETURN found;
END $$;

CREATE FUNCTION entente_regclass_name(object oid) RETURNS text STABLE LANGUAGE plpgsql AS $$
DECLARE found text;
BEGIN
  IF object = 0 THEN RETURN '-'; END IF;
  SELECT CASE WHEN n.oid IN (SELECT s.oid FROM entente_search_path s) THEN '' ELSE quote_ident(n.nspname) || '.' END || quote_ident(c.relname) INTO found
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = object;
  RETURN coalesce(found, object::text);
END $$;

CREATE FUNCTION to_regtype(name text) RETURNS oid STABLE LANGUAGE plpgsql AS $$
DECLARE parts text[]; plain text; found oid; is_array boolean;
BEGIN
  IF name ~ '^[0-9]+$' THEN RETURN name::oid; END IF;
  is_array := name ~ '\[\d*\]\s*$';
  plain := regexp_replace(name, '\s*\[\d*\]\s*$', '');
  plain := regexp_replace(plain, '\s*\(\s*\d+\s*(,\s*-?\d+\s*)?\)', '');
  plain := regexp_replace(plain, '^\s*pg_catalog\s*\.\s*', '');
  IF lower(plain) IN ('int', 'decimal', 'char', 'float', 'timestamp', 'time', 'dec') THEN
    plain := CASE lower(plain) WHEN 'int' THEN 'int4' WHEN 'char' THEN 'bpchar' WHEN 'float' THEN 'float8' WHEN 'timestamp' THEN 'timestamp' WHEN 'time' THEN 'time' ELSE 'numeric' END;
  END IF;
  SELECT d.object INTO found FROM entente_definition d WHERE d.kind = 'type' AND d.definition = lower(plain) LIMIT 1;
  IF found IS NULL THEN
    parts := entente_parts(plain);
    SELECT t.oid INTO found FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
      WHERE t.typname = parts[2] AND CASE WHEN parts[1] IS NULL THEN n.oid IN (SELECT s.oid FROM entente_search_path s) ELSE n.nspname = parts[1] OR (parts[1] = 'pg_temp' AND n.oid = pg_my_temp_schema()) END
      ORDER BY (SELECT s.place FROM entente_search_path s WHERE s.oid = n.oid) LIMIT 1;
  END IF;
  IF is_array THEN
    SELECT t.typarray INTO found FROM pg_type t WHERE t.oid = found;
  END IF;
  RETURN found;
END $$;

CREATE FUNCTION entente_regtype(name text) RETURNS oid STABLE LANGUAGE plpgsql AS $$
DECLARE found oid := to_regtype(name);
BEGIN
  IF found IS NULL AND name IS NOT NULL THEN
    IF name = '-' THEN RETURN 0; END IF;
    RAISE EXCEPTION 'type "%" does not exist', name USING ERRCODE = '42704';
  END IF;
  RETURN found;
END $$;

CREATE FUNCTION format_type(type oid, modifier integer) RETURNS text STABLE LANGUAGE plpgsql AS $$
DECLARE base text; of_array text := ''; element oid := type; m integer := modifier - 4;
BEGIN
  IF type IS NULL THEN RETURN NULL; END IF;
  IF type = 0 THEN RETURN '-'; END IF;
  base := entente_text('type', element);
  IF base IS NULL THEN RETURN '???'; END IF;
  IF base LIKE '%[]' THEN
    of_array := '[]';
    base := left(base, -2);
  END IF;
  IF base = 'character' AND modifier = -1 THEN RETURN 'bpchar' || of_array; END IF;
  IF base IN ('timestamp without time zone', 'timestamp with time zone', 'time without time zone', 'time with time zone') AND modifier >= 0 THEN
    RETURN regexp_replace(base, '^(timestamp|time)', '\1(' || modifier::text || ')') || of_array;
  END IF;
  IF base = 'interval' AND modifier >= 0 THEN RETURN base || '(' || (modifier & 65535)::text || ')' || of_array; END IF;
  -- Without a length it is not bit(1), which the word alone means.
  IF base = 'bit' AND modifier = -1 THEN RETURN '"bit"' || of_array; END IF;
  IF base IN ('bit', 'bit varying') AND modifier > 0 THEN RETURN base || '(' || modifier::text || ')' || of_array; END IF;
  IF m >= 0 THEN
    IF base IN ('character varying', 'character') THEN
      base := base || '(' || m::text || ')';
    ELSIF base = 'numeric' THEN
      base := base || '(' || (m >> 16)::text || ',' || (((m & 2047) # 1024) - 1024)::text || ')';
    END IF;
  END IF;
  RETURN base || of_array;
END $$;

CREATE FUNCTION entente_regtype_name(object oid) RETURNS text STABLE LANGUAGE sql AS
  'SELECT CASE WHEN $1 = 0 THEN ''-'' ELSE coalesce(entente_text(''type'', $1), $1::text) END';

CREATE FUNCTION to_regproc(name text) RETURNS oid STABLE LANGUAGE plpgsql AS $$
DECLARE parts text[]; found oid;
BEGIN
  IF name ~ '^[0-9]+$' THEN RETURN name::oid; END IF;
  parts := entente_parts(regexp_replace(name, '\(.*$', ''));
  SELECT p.oid INTO found FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
    WHERE p.proname = parts[2] AND CASE WHEN parts[1] IS NULL THEN n.oid IN (SELECT s.oid FROM entente_search_path s) ELSE n.nspname = parts[1] END
    ORDER BY (SELECT s.place FROM entente_search_path s WHERE s.oid = n.oid), p.oid LIMIT 1;
  RETURN found;
END $$;

CREATE FUNCTION to_regprocedure(name text) RETURNS oid STABLE LANGUAGE sql AS 'SELECT to_regproc($1)';

CREATE FUNCTION entente_regproc(name text) RETURNS oid STABLE LANGUAGE plpgsql AS $$
DECLARE found oid := to_regproc(name);
BEGIN
  IF found IS NULL AND name IS NOT NULL THEN
    IF name = '-' THEN RETURN 0; END IF;
    RAISE EXCEPTION 'function "%" does not exist', name USING ERRCODE = '42883';
  END IF;
  RETURN found;
END $$;

CREATE FUNCTION entente_regproc_name(object oid) RETURNS text STABLE LANGUAGE sql AS
  'SELECT CASE WHEN $1 = 0 THEN ''-'' ELSE coalesce((SELECT quote_ident(p.proname) FROM pg_proc p WHERE p.oid = $1), $1::text) END';

CREATE FUNCTION entente_regprocedure_name(object oid) RETURNS text STABLE LANGUAGE sql AS
  'SELECT CASE WHEN $1 = 0 THEN ''-'' ELSE coalesce((SELECT quote_ident(p.proname) || ''('' ||
     coalesce((SELECT string_agg(format_type(a.t, NULL), '','' ORDER BY a.n) FROM unnest(p.proargtypes) WITH ORDINALITY AS a (t, n)), '''') || '')''
     FROM pg_proc p WHERE p.oid = $1), $1::text) END';

CREATE FUNCTION to_regnamespace(name text) RETURNS oid STABLE LANGUAGE sql AS
  'SELECT CASE WHEN $1 ~ ''^[0-9]+$'' THEN $1::oid ELSE (SELECT n.oid FROM pg_namespace n WHERE n.nspname = (entente_parts($1))[2]) END';

CREATE FUNCTION entente_regnamespace(name text) RETURNS oid STABLE LANGUAGE plpgsql AS $$
DECLARE found oid := to_regnamespace(name);
BEGIN
  IF found IS NULL AND name IS NOT NULL THEN
    RAISE EXCEPTION 'schema "%" does not exist', name USING ERRCODE = '3F000';
  END IF;
  RETURN found;
END $$;

CREATE FUNCTION entente_regnamespace_name(object oid) RETURNS text STABLE LANGUAGE sql AS
  'SELECT CASE WHEN $1 = 0 THEN ''-'' ELSE coalesce((SELECT quote_ident(n.nspname) FROM pg_namespace n WHERE n.oid = $1), $1::text) END';

CREATE FUNCTION to_regrole(name text) RETURNS oid STABLE LANGUAGE sql AS
  'SELECT CASE WHEN $1 ~ ''^[0-9]+$'' THEN $1::oid ELSE (SELECT a.oid FROM pg_authid a WHERE a.rolname = (entente_parts($1))[2]) END';

CREATE FUNCTION entente_regrole(name text) RETURNS oid STABLE LANGUAGE plpgsql AS $$
DECLARE found oid := to_regrole(name);
BEGIN
  IF found IS NULL AND name IS NOT NULL THEN
    RAISE EXCEPTION 'role "%" does not exist', name USING ERRCODE = '42704';
  END IF;
  RETURN found;
END $$;

CREATE FUNCTION entente_regrole_name(object oid) RETURNS text STABLE LANGUAGE sql AS
  'SELECT CASE WHEN $1 = 0 THEN ''-'' ELSE coalesce((SELECT quote_ident(a.rolname) FROM pg_authid a WHERE a.oid = $1), $1::text) END';

CREATE FUNCTION entente_viewdef(name text) RETURNS text STABLE LANGUAGE sql AS
  'SELECT entente_text(''view'', entente_regclass($1))';

CREATE FUNCTION pg_get_serial_sequence(relation text, attribute text) RETURNS text STABLE LANGUAGE sql AS
  'SELECT CASE WHEN n.oid = pg_my_temp_schema() THEN ''pg_temp'' ELSE quote_ident(n.nspname) END || ''.'' || quote_ident(s.relname)
     FROM pg_depend d JOIN pg_class s ON s.oid = d.objid JOIN pg_namespace n ON n.oid = s.relnamespace
     JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
     WHERE d.classid = 1259 AND d.refclassid = 1259 AND d.deptype IN (''a'', ''i'') AND s.relkind = ''S''
       AND d.refobjid = entente_regclass($1) AND a.attname = $2';

-- Comments.

CREATE FUNCTION obj_description(object oid, catalog text DEFAULT NULL) RETURNS text STABLE LANGUAGE sql AS
  'SELECT d.description FROM pg_description d WHERE d.objoid = $1 AND d.objsubid = 0
     AND ($2 IS NULL OR d.classoid = (SELECT c.oid FROM pg_class c WHERE c.relname = $2 AND c.relnamespace = 11)) LIMIT 1';

CREATE FUNCTION col_description(relation oid, attribute integer) RETURNS text STABLE LANGUAGE sql AS
  'SELECT d.description FROM pg_description d WHERE d.objoid = $1 AND d.classoid = 1259 AND d.objsubid = $2';

CREATE FUNCTION shobj_description(object oid, catalog text) RETURNS text STABLE LANGUAGE sql AS
  'SELECT d.description FROM pg_shdescription d WHERE d.objoid = $1
     AND d.classoid = (SELECT c.oid FROM pg_class c WHERE c.relname = $2 AND c.relnamespace = 11)';

-- What a name without a schema finds.

-- Not what another one hides that stands earlier in the path.
CREATE FUNCTION pg_table_is_visible(object oid) RETURNS boolean STABLE LANGUAGE sql AS
  'SELECT s.oid IS NOT NULL AND (s.place < 1 OR s.place = 1 AND pg_my_temp_schema() = 0 OR NOT EXISTS (
       SELECT FROM pg_class o JOIN entente_search_path e ON e.oid = o.relnamespace
       WHERE e.place <> 0 AND e.place < s.place AND o.relname = c.relname))
     FROM pg_class c LEFT JOIN entente_search_path s ON s.oid = c.relnamespace WHERE c.oid = $1';
CREATE FUNCTION pg_type_is_visible(object oid) RETURNS boolean STABLE LANGUAGE sql AS
  'SELECT s.oid IS NOT NULL AND (s.place < 1 OR s.place = 1 AND pg_my_temp_schema() = 0 OR NOT EXISTS (
       SELECT FROM pg_type o JOIN entente_search_path e ON e.oid = o.typnamespace
       WHERE e.place <> 0 AND e.place < s.place AND o.typname = t.typname))
     FROM pg_type t LEFT JOIN entente_search_path s ON s.oid = t.typnamespace WHERE t.oid = $1';
CREATE FUNCTION pg_function_is_visible(object oid) RETURNS boolean STABLE LANGUAGE sql AS
  'SELECT s.oid IS NOT NULL AND (s.place <= 1 OR NOT EXISTS (
       SELECT FROM pg_proc o JOIN entente_search_path e ON e.oid = o.pronamespace
       WHERE e.place > 0 AND e.place < s.place AND o.proname = p.proname AND o.proargtypes = p.proargtypes))
     FROM pg_proc p LEFT JOIN entente_search_path s ON s.oid = p.pronamespace WHERE p.oid = $1';
CREATE FUNCTION pg_operator_is_visible(object oid) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT true';
CREATE FUNCTION pg_collation_is_visible(object oid) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT true';
CREATE FUNCTION pg_conversion_is_visible(object oid) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT true';
CREATE FUNCTION pg_opclass_is_visible(object oid) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT true';
CREATE FUNCTION pg_opfamily_is_visible(object oid) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT true';
CREATE FUNCTION pg_statistics_obj_is_visible(object oid) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT true';
CREATE FUNCTION pg_ts_config_is_visible(object oid) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT true';
CREATE FUNCTION pg_ts_dict_is_visible(object oid) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT true';
CREATE FUNCTION pg_ts_parser_is_visible(object oid) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT true';
CREATE FUNCTION pg_ts_template_is_visible(object oid) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT true';

-- Privileges. Whoever is no role of the ledger is an organisation's administrator, who may do everything.

CREATE FUNCTION entente_may(role text, kind text, object oid, attribute integer, privileges text) RETURNS boolean STABLE LANGUAGE plpgsql AS $$
DECLARE plain text; who text := role;
BEGIN
  IF role IS NULL OR object IS NULL OR privileges IS NULL THEN RETURN NULL; END IF;
  IF role ~ '^[0-9]+$' THEN
    SELECT a.rolname INTO who FROM pg_authid a WHERE a.oid = role::oid;
  END IF;
  IF NOT EXISTS (SELECT 1 FROM pg_authid a WHERE a.rolname = who AND NOT a.rolsuper) THEN RETURN true; END IF;
  FOREACH plain IN ARRAY string_to_array(privileges, ',') LOOP
    -- What is granted on a table is on all of its columns. Without a column any one will do.
    IF EXISTS (SELECT 1 FROM entente_privilege p WHERE p.role = who AND p.kind = entente_may.kind AND p.object = entente_may.object
        AND (entente_may.attribute IS NULL OR p.attribute IN (0, entente_may.attribute)) AND p.privilege = upper(trim(plain))) THEN
      RETURN true;
    END IF;
  END LOOP;
  RETURN false;
END $$;
CREATE FUNCTION entente_may_column(role text, object oid, attribute integer, privileges text) RETURNS boolean STABLE LANGUAGE plpgsql AS $$
DECLARE plain text;
BEGIN
  IF role IS NULL OR object IS NULL OR privileges IS NULL THEN RETURN NULL; END IF;
  FOREACH plain IN ARRAY string_to_array(privileges, ',') LOOP
    IF regexp_replace(upper(trim(plain)), ' WITH GRANT OPTION$', '') NOT IN ('SELECT', 'INSERT', 'UPDATE', 'REFERENCES') THEN
      RAISE EXCEPTION 'unrecognized privilege type: "%"', trim(plain) USING ERRCODE = '22023';
    END IF;
  END LOOP;
  RETURN entente_may(role, 'relation', object, attribute, privileges);
END $$;

CREATE FUNCTION has_table_privilege(role text, relation text, privileges text) RETURNS boolean STABLE LANGUAGE sql AS
  'SELECT entente_may($1, ''relation'', entente_regclass($2), 0, $3)';
CREATE FUNCTION has_any_column_privilege(role text, relation text, privileges text) RETURNS boolean STABLE LANGUAGE sql AS
  'SELECT entente_may_column($1, entente_regclass($2), NULL, $3)';
CREATE FUNCTION has_column_privilege(role text, relation text, attribute text, privileges text) RETURNS boolean STABLE LANGUAGE plpgsql AS $$
DECLARE object oid := entente_regclass(relation); number integer;
BEGIN
  IF role IS NULL OR object IS NULL OR attribute IS NULL OR privileges IS NULL THEN RETURN NULL; END IF;
  SELECT a.attnum INTO number FROM pg_attribute a WHERE a.attrelid = object AND (a.attname = attribute OR a.attnum::text = attribute)
    ORDER BY a.attname = attribute DESC LIMIT 1;
  IF number IS NULL AND attribute ~ '^-?[0-9]+$' THEN RETURN NULL; END IF;
  IF number IS NULL THEN
    RAISE EXCEPTION 'column "%" of relation "%" does not exist', attribute, (SELECT c.relname FROM pg_class c WHERE c.oid = object)
      USING ERRCODE = '42703';
  END IF;
  RETURN entente_may_column(role, object, number, privileges);
END $$;
CREATE FUNCTION has_function_privilege(role text, routine text, privileges text) RETURNS boolean STABLE LANGUAGE sql AS
  'SELECT entente_may($1, ''routine'', entente_regproc($2), 0, $3)';
CREATE FUNCTION has_sequence_privilege(role text, relation text, privileges text) RETURNS boolean STABLE LANGUAGE sql AS
  'SELECT entente_regclass($2) IS NOT NULL';
CREATE FUNCTION has_schema_privilege(role text, object text, privileges text) RETURNS boolean STABLE LANGUAGE sql AS
  'SELECT entente_regnamespace($2) IS NOT NULL AND upper($3) NOT LIKE ''%WITH GRANT%''';
CREATE FUNCTION has_database_privilege(role text, object text, privileges text) RETURNS boolean STABLE LANGUAGE sql AS
  'SELECT CASE WHEN $2 IS NULL THEN NULL ELSE true END';
CREATE FUNCTION has_language_privilege(role text, object text, privileges text) RETURNS boolean STABLE LANGUAGE sql AS
  'SELECT CASE WHEN $2 IS NULL THEN NULL ELSE true END';
CREATE FUNCTION has_type_privilege(role text, object text, privileges text) RETURNS boolean STABLE LANGUAGE sql AS
  'SELECT CASE WHEN $2 IS NULL THEN NULL ELSE true END';
CREATE FUNCTION has_tablespace_privilege(role text, object text, privileges text) RETURNS boolean STABLE LANGUAGE sql AS
  'SELECT CASE WHEN $2 IS NULL THEN NULL ELSE true END';
CREATE FUNCTION has_server_privilege(role text, object text, privileges text) RETURNS boolean IMMUTABLE LANGUAGE sql AS
  'SELECT false';
CREATE FUNCTION has_foreign_data_wrapper_privilege(role text, object text, privileges text) RETURNS boolean IMMUTABLE LANGUAGE sql AS
  'SELECT false';

CREATE FUNCTION pg_has_role(member text, role text, privileges text) RETURNS boolean STABLE LANGUAGE plpgsql AS $$
DECLARE who oid := to_regrole(member); whose oid := to_regrole(role);
BEGIN
  IF who IS NULL OR who = 10 THEN RETURN true; END IF;
  RETURN EXISTS (WITH RECURSIVE memberships (oid) AS (
      SELECT who UNION SELECT m.roleid FROM pg_auth_members m JOIN memberships k ON m.member = k.oid
    ) SELECT 1 FROM memberships k WHERE k.oid = whose);
END $$;

-- What an owner and everybody may do with an object of a kind for which nothing was granted.
CREATE FUNCTION acldefault(kind text, owner oid) RETURNS text[] STABLE LANGUAGE sql AS
  'SELECT CASE WHEN $1 IS NULL OR $2 IS NULL THEN NULL ELSE array_remove(ARRAY[
     CASE $1 WHEN ''d'' THEN ''=Tc/'' WHEN ''f'' THEN ''=X/'' WHEN ''l'' THEN ''=U/'' WHEN ''T'' THEN ''=U/'' END || quote_ident(pg_get_userbyid($2)),
     quote_ident(pg_get_userbyid($2)) || CASE $1 WHEN ''r'' THEN ''=arwdDxt/'' WHEN ''s'' THEN ''=rwU/'' WHEN ''d'' THEN ''=CTc/''
       WHEN ''f'' THEN ''=X/'' WHEN ''L'' THEN ''=rw/'' WHEN ''n'' THEN ''=UC/'' WHEN ''p'' THEN ''=sA/'' WHEN ''t'' THEN ''=C/''
       WHEN ''l'' THEN ''=U/'' WHEN ''F'' THEN ''=U/'' WHEN ''S'' THEN ''=U/'' WHEN ''T'' THEN ''=U/'' END || quote_ident(pg_get_userbyid($2))], NULL) END';

CREATE FUNCTION aclexplode(acl text[]) RETURNS TABLE (grantor oid, grantee oid, privilege_type text, is_grantable boolean)
  STABLE LANGUAGE plpgsql AS $$
DECLARE item text; parts text[]; letters text;
BEGIN
  FOREACH item IN ARRAY coalesce(acl, '{}'::text[]) LOOP
    parts := regexp_match(item, '^(.*)=([a-zA-Z*]*)/(.*)$');
    letters := parts[2];
    FOR i IN 1 .. length(letters) LOOP
      CONTINUE WHEN substr(letters, i, 1) = '*';
      grantor := coalesce(to_regrole(parts[3]), 0);
      grantee := CASE WHEN parts[1] = '' THEN 0 ELSE coalesce(to_regrole(parts[1]), 0) END;
      privilege_type := CASE substr(letters, i, 1) WHEN 'r' THEN 'SELECT' WHEN 'a' THEN 'INSERT' WHEN 'w' THEN 'UPDATE' WHEN 'd' THEN 'DELETE'
        WHEN 'D' THEN 'TRUNCATE' WHEN 'x' THEN 'REFERENCES' WHEN 't' THEN 'TRIGGER' WHEN 'X' THEN 'EXECUTE' WHEN 'U' THEN 'USAGE' WHEN 'C' THEN 'CREATE' ELSE 'CONNECT' END;
      is_grantable := substr(letters, i + 1, 1) = '*';
      RETURN NEXT;
    END LOOP;
  END LOOP;
END $$;

-- The server.

CREATE FUNCTION entente_schemas(implicit boolean) RETURNS text[] STABLE LANGUAGE sql AS
  'SELECT coalesce(array_agg(s.name ORDER BY s.place), ARRAY[]::text[]) FROM entente_search_path s WHERE s.place > 0 OR $1';
CREATE FUNCTION current_setting(setting text, missing boolean DEFAULT false) RETURNS text STABLE LANGUAGE plpgsql AS $$
DECLARE value text;
BEGIN
  SELECT s.shown INTO value FROM entente_setting s WHERE s.name = lower($1);
  IF NOT FOUND AND $1 IS NOT NULL AND NOT coalesce($2, false) THEN
    RAISE EXCEPTION 'unrecognized configuration parameter "%"', $1 USING ERRCODE = '42704';
  END IF;
  RETURN value;
END $$;
CREATE FUNCTION pg_show_all_settings() RETURNS TABLE (name text, setting text, unit text, category text, short_desc text, extra_desc text, context text,
  vartype text, source text, min_val text, max_val text, enumvals text[], boot_val text, reset_val text, sourcefile text, sourceline integer,
  pending_restart boolean) STABLE LANGUAGE sql AS
  'SELECT s.name, s.setting, s.unit, s.category, s.short_desc, s.extra_desc, s.context, s.vartype, s.source, s.min_val, s.max_val, s.enumvals,
    s.boot_val, s.reset_val, s.sourcefile, s.sourceline, s.pending_restart FROM pg_settings s';
CREATE FUNCTION pg_get_keywords() RETURNS TABLE (word text, catcode text, barelabel boolean, catdesc text, baredesc text) STABLE LANGUAGE sql AS
  'SELECT k.word, k.catcode, k.barelabel, k.catdesc, k.baredesc FROM entente_keyword k';
CREATE FUNCTION pg_encoding_to_char(encoding integer) RETURNS text IMMUTABLE LANGUAGE sql AS
  'SELECT CASE $1 WHEN 6 THEN ''UTF8'' WHEN 0 THEN ''SQL_ASCII'' ELSE '''' END';
CREATE FUNCTION pg_char_to_encoding(encoding text) RETURNS integer IMMUTABLE LANGUAGE sql AS
  'SELECT CASE WHEN upper($1) IN (''UTF8'', ''UTF-8'') THEN 6 ELSE -1 END';
CREATE FUNCTION pg_client_encoding() RETURNS text IMMUTABLE LANGUAGE sql AS 'SELECT ''UTF8''::text';
CREATE FUNCTION getdatabaseencoding() RETURNS text IMMUTABLE LANGUAGE sql AS 'SELECT ''UTF8''::text';
CREATE FUNCTION pg_is_in_recovery() RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT false';
CREATE FUNCTION pg_is_other_temp_schema(object oid) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT false';
CREATE FUNCTION pg_postmaster_start_time() RETURNS timestamptz STABLE LANGUAGE sql AS 'SELECT now()';
CREATE FUNCTION pg_conf_load_time() RETURNS timestamptz STABLE LANGUAGE sql AS 'SELECT now()';
CREATE FUNCTION pg_advisory_unlock_all() RETURNS text IMMUTABLE LANGUAGE sql AS 'SELECT ''''::text';
CREATE FUNCTION txid_current_if_assigned() RETURNS bigint IMMUTABLE LANGUAGE sql AS 'SELECT NULL::bigint';
CREATE FUNCTION inet_client_addr() RETURNS text IMMUTABLE LANGUAGE sql AS 'SELECT NULL::text';
CREATE FUNCTION inet_server_addr() RETURNS text IMMUTABLE LANGUAGE sql AS 'SELECT NULL::text';
CREATE FUNCTION inet_client_port() RETURNS integer IMMUTABLE LANGUAGE sql AS 'SELECT NULL::integer';
CREATE FUNCTION inet_server_port() RETURNS integer IMMUTABLE LANGUAGE sql AS 'SELECT NULL::integer';
CREATE FUNCTION pg_tablespace_location(object oid) RETURNS text IMMUTABLE LANGUAGE sql AS 'SELECT ''''::text';
CREATE FUNCTION pg_relation_filepath(object oid) RETURNS text IMMUTABLE LANGUAGE sql AS 'SELECT NULL::text';
CREATE FUNCTION pg_table_size(object oid) RETURNS bigint IMMUTABLE LANGUAGE sql AS 'SELECT 0::bigint';
CREATE FUNCTION pg_indexes_size(object oid) RETURNS bigint IMMUTABLE LANGUAGE sql AS 'SELECT 0::bigint';
CREATE FUNCTION pg_relation_size(object oid, fork text DEFAULT NULL) RETURNS bigint IMMUTABLE LANGUAGE sql AS 'SELECT 0::bigint';
CREATE FUNCTION pg_total_relation_size(object oid) RETURNS bigint IMMUTABLE LANGUAGE sql AS 'SELECT 0::bigint';
CREATE FUNCTION pg_database_size(object text) RETURNS bigint IMMUTABLE LANGUAGE sql AS 'SELECT 0::bigint';
CREATE FUNCTION pg_tablespace_size(object text) RETURNS bigint IMMUTABLE LANGUAGE sql AS 'SELECT 0::bigint';
CREATE FUNCTION pg_size_pretty(bytes numeric) RETURNS text IMMUTABLE LANGUAGE sql AS 'SELECT trunc($1)::text || '' bytes''';
CREATE FUNCTION pg_sequence_last_value(object oid) RETURNS bigint IMMUTABLE LANGUAGE sql AS 'SELECT NULL::bigint';
CREATE FUNCTION pg_relation_is_publishable(object oid) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT false';
CREATE FUNCTION pg_relation_is_updatable(object oid, triggers boolean) RETURNS integer STABLE LANGUAGE sql AS
  'SELECT CASE c.relkind WHEN ''r'' THEN 28 ELSE 0 END FROM pg_class c WHERE c.oid = $1';
CREATE FUNCTION pg_column_is_updatable(object oid, attribute integer, triggers boolean) RETURNS boolean STABLE LANGUAGE sql AS
  'SELECT c.relkind = ''r'' FROM pg_class c WHERE c.oid = $1';
CREATE FUNCTION row_security_active(object text) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT false';
CREATE FUNCTION pg_indexam_has_property(object oid, property text) RETURNS boolean IMMUTABLE LANGUAGE sql AS
  'SELECT $2 IN (''can_order'', ''can_unique'', ''can_multi_col'')';
CREATE FUNCTION pg_index_column_has_property(object oid, part integer, property text) RETURNS boolean IMMUTABLE LANGUAGE sql AS
  'SELECT $3 IN (''asc'', ''nulls_last'', ''orderable'', ''returnable'', ''search_array'', ''search_nulls'')';
CREATE FUNCTION pg_index_has_property(object oid, property text) RETURNS boolean IMMUTABLE LANGUAGE sql AS
  'SELECT $2 IN (''index_scan'', ''backward_scan'')';
CREATE FUNCTION pg_partition_ancestors(object oid) RETURNS TABLE (relid oid) IMMUTABLE LANGUAGE sql AS
  'SELECT 0 WHERE false';
CREATE FUNCTION pg_partition_tree(object oid) RETURNS TABLE (relid oid, parentrelid oid, isleaf boolean, level integer) IMMUTABLE LANGUAGE sql AS
  'SELECT 0, 0, true, 0 WHERE false';
CREATE FUNCTION pg_options_to_table(options text[]) RETURNS TABLE (option_name text, option_value text) IMMUTABLE LANGUAGE sql AS
  'SELECT split_part(o.x, ''='', 1), split_part(o.x, ''='', 2) FROM unnest($1) AS o (x)';
CREATE FUNCTION pg_available_extension_versions() RETURNS TABLE (name text, version text) IMMUTABLE LANGUAGE sql AS
  'SELECT ''''::text, ''''::text WHERE false';
CREATE FUNCTION pg_stat_get_numscans(object oid) RETURNS bigint IMMUTABLE LANGUAGE sql AS 'SELECT 0::bigint';

-- What proves a receipt.

CREATE FUNCTION entente_proof(id text) RETURNS text STABLE LANGUAGE plpgsql AS $$
DECLARE found text; state text; reason text; advice text;
BEGIN
  SELECT p.proof, p.sqlstate, p.message, p.hint INTO found, state, reason, advice FROM entente_receipt_proof p WHERE p.id = $1;
  IF advice IS NOT NULL THEN
    RAISE EXCEPTION '%', reason USING ERRCODE = state, HINT = advice;
  ELSIF state IS NOT NULL THEN
    RAISE EXCEPTION '%', reason USING ERRCODE = state;
  END IF;
  RETURN found;
END $$;

-- What one session does to another.

CREATE FUNCTION pg_terminate_backend(process integer, timeout bigint DEFAULT 0) RETURNS boolean STABLE LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'ending another session is not supported'
    USING ERRCODE = '0A000', HINT = 'A session sees itself only. End it through its client, or restart the node''s gateway.';
END $$;

CREATE FUNCTION pg_cancel_backend(process integer) RETURNS boolean STABLE LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'cancelling a statement of another session is not supported'
    USING ERRCODE = '0A000', HINT = 'Cancel it through its client, or limit it by statement_timeout.';
END $$;
