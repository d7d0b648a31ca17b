SELECT db.oid,db.* FROM pg_catalog.pg_database db WHERE 1=1 AND datallowconn AND NOT datistemplate OR db.datname =$1 ORDER BY db.datname
;;
SELECT version()
;;
SELECT current_schema(),session_user
;;
SELECT string_agg(word, ',') FROM pg_catalog.pg_get_keywords() WHERE word <> ALL ('{a,abs,absolute}'::text[])
;;
SELECT n.oid,n.*,d.description FROM pg_catalog.pg_namespace n
LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid=n.oid AND d.objsubid=0 AND d.classoid='pg_namespace'::regclass
 ORDER BY nspname
;;
SELECT t.oid,t.*,c.relkind,format_type(nullif(t.typbasetype, 0), t.typtypmod) as base_type_name, d.description
FROM pg_catalog.pg_type t
LEFT OUTER JOIN pg_catalog.pg_type et ON et.oid=t.typelem
LEFT OUTER JOIN pg_catalog.pg_class c ON c.oid=t.typrelid
LEFT OUTER JOIN pg_catalog.pg_description d ON t.oid=d.objoid
WHERE t.typname IS NOT NULL
AND (c.relkind IS NULL OR c.relkind = 'c') AND (et.typcategory IS NULL OR et.typcategory <> 'C')
;;
SELECT a.oid,a.*,pd.description FROM pg_catalog.pg_roles a
LEFT OUTER JOIN pg_catalog.pg_shdescription pd ON a.oid = pd.objoid
ORDER BY a.rolname
;;
SELECT am.oid,am.* FROM pg_catalog.pg_am am
ORDER BY am.oid
;;
SELECT l.oid,l.* FROM pg_catalog.pg_language l
ORDER BY l.oid
;;
SELECT t.oid,t.*,pg_tablespace_location(t.oid) loc
FROM pg_catalog.pg_tablespace t
ORDER BY t.oid
;;
SELECT c.oid,c.* FROM pg_catalog.pg_collation c
ORDER BY c.oid
;;
SELECT f.oid,f.*,p.proname as handler_schema_id FROM pg_catalog.pg_foreign_data_wrapper f
LEFT OUTER JOIN pg_catalog.pg_proc p ON p.oid=f.fdwhandler
ORDER BY f.fdwname
;;
SELECT e.oid, cfg.tbls, n.nspname as schema_name, e.* FROM pg_catalog.pg_extension e join pg_namespace n on n.oid = e.extnamespace left join (select ftbl.oid, array_agg(tbls) as tbls from (select e.oid, t.relname as tbls from pg_catalog.pg_extension e, pg_catalog.pg_class t where t.oid = any(e.extconfig)) ftbl group by ftbl.oid) cfg on cfg.oid = e.oid ORDER BY e.oid
;;
select c.contoencoding as encid , pg_catalog.pg_encoding_to_char(c.contoencoding) as encname
from pg_catalog.pg_conversion c
group by c.contoencoding
order by encname
;;
SELECT c.oid,c.*,d.description,pg_catalog.pg_get_expr(c.relpartbound, c.oid) as partition_expr,  pg_catalog.pg_get_partkeydef(c.oid) as partition_key
FROM pg_catalog.pg_class c
LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid=c.oid AND d.objsubid=0 AND d.classoid='pg_class'::regclass
WHERE c.relnamespace=$1 AND c.relkind not in ('i','I','c')
;;
SELECT c.relname,a.*,pg_catalog.pg_get_expr(ad.adbin, ad.adrelid, true) as def_value,dsc.description,dep.objid
FROM pg_catalog.pg_attribute a
INNER JOIN pg_catalog.pg_class c ON (a.attrelid=c.oid)
LEFT OUTER JOIN pg_catalog.pg_attrdef ad ON (a.attrelid=ad.adrelid AND a.attnum = ad.adnum)
LEFT OUTER JOIN pg_catalog.pg_description dsc ON (c.oid=dsc.objoid AND a.attnum = dsc.objsubid)
LEFT OUTER JOIN pg_depend dep on dep.refobjid = a.attrelid AND dep.deptype = 'i' and dep.refobjsubid = a.attnum and dep.classid = dep.refclassid
WHERE NOT a.attisdropped AND c.relkind not in ('i','I','c') AND c.oid=$1
ORDER BY a.attnum
;;
SELECT c.oid,c.*,t.relname as tabrelname,rt.relnamespace as refnamespace,d.description, case when c.contype='c' then "substring"(pg_get_constraintdef(c.oid), 7) else null end consrc_copy
FROM pg_catalog.pg_constraint c
INNER JOIN pg_catalog.pg_class t ON t.oid=c.conrelid
LEFT OUTER JOIN pg_catalog.pg_class rt ON rt.oid=c.confrelid
LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid=c.oid AND d.objsubid=0 AND d.classoid='pg_constraint'::regclass
WHERE c.conrelid=$1
ORDER BY c.oid
;;
SELECT i.*,i.indkey as keys,c.relname,c.relnamespace,c.relam,c.reltablespace,tc.relname as tabrelname,dsc.description,pg_catalog.pg_get_expr(i.indpred, i.indrelid) as pred_expr,pg_catalog.pg_get_expr(i.indexprs, i.indrelid, true) as expr,pg_catalog.pg_relation_size(i.indexrelid) as index_rel_size,pg_catalog.pg_stat_get_numscans(i.indexrelid) as index_num_scans
FROM pg_catalog.pg_index i
INNER JOIN pg_catalog.pg_class c ON c.oid=i.indexrelid
INNER JOIN pg_catalog.pg_class tc ON tc.oid=i.indrelid
LEFT OUTER JOIN pg_catalog.pg_description dsc ON i.indexrelid=dsc.objoid
WHERE i.indrelid=$1 ORDER BY tabrelname, c.relname
;;
SELECT x.oid,x.*,p.pronamespace as func_schema_id,d.description,x.tgattr,pg_catalog.pg_get_triggerdef(x.oid, true) as definition
FROM pg_catalog.pg_trigger x
LEFT OUTER JOIN pg_catalog.pg_proc p ON p.oid=x.tgfoid
LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid=x.oid AND d.objsubid=0
WHERE x.tgrelid=$1 AND NOT tgisinternal
;;
SELECT r.oid,r.*,pg_catalog.pg_get_ruledef(r.oid) as definition FROM pg_catalog.pg_rewrite r WHERE r.ev_class=$1 AND r.rulename <> '_RETURN'::name
;;
SELECT * FROM pg_catalog.pg_policies WHERE schemaname=$1 AND tablename=$2
;;
SELECT i.*,c.relnamespace
FROM pg_catalog.pg_inherits i,pg_catalog.pg_class c
WHERE i.inhrelid=$1 AND c.oid=i.inhparent
ORDER BY i.inhseqno
;;
SELECT DISTINCT
    classid, objid, i.inhseqno,c.oid,c.relnamespace
FROM pg_catalog.pg_depend d, pg_catalog.pg_inherits i, pg_catalog.pg_class c
WHERE i.inhparent=$1 AND c.oid=i.inhrelid AND d.objid=c.oid
;;
SELECT * from pg_catalog.pg_sequence WHERE seqrelid=$1
;;
SELECT * from pg_catalog.pg_sequences WHERE schemaname=$1 AND sequencename=$2
;;
SELECT p.oid as poid,p.*,pg_catalog.pg_get_expr(p.proargdefaults, 0) as arg_defaults,d.description
FROM pg_catalog.pg_proc p
LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid=p.oid AND d.objsubid = 0
WHERE p.pronamespace=$1 ORDER BY p.proname
;;
SELECT p.oid,p.proname, pg_catalog.pg_get_functiondef(p.oid) FROM pg_catalog.pg_proc p WHERE p.oid=$1
;;
SELECT c.oid,pg_catalog.pg_total_relation_size(c.oid) as total_rel_size,pg_catalog.pg_relation_size(c.oid) as rel_size
FROM pg_class c
WHERE c.relnamespace=$1
;;
select c.oid,c.relname, pg_catalog.pg_get_viewdef(c.oid, true) as definition FROM pg_catalog.pg_class c WHERE c.oid=$1
;;
SELECT e.enumlabel FROM pg_catalog.pg_enum e WHERE e.enumtypid=$1 ORDER BY e.enumsortorder
;;
SELECT * FROM information_schema.table_privileges WHERE table_catalog=$1 AND table_schema=$2 AND table_name=$3
;;
SELECT sa.* FROM pg_catalog.pg_stat_activity sa
;;
SELECT * FROM pg_catalog.pg_settings where name='standard_conforming_strings'
;;
SELECT setting FROM pg_catalog.pg_settings WHERE name = 'DateStyle'
;;
SELECT c.oid, c.*, pg_catalog.pg_get_userbyid(c.relowner) AS owner, has_table_privilege(c.oid, 'SELECT') AS readable FROM pg_catalog.pg_class c WHERE c.relkind = 'r'
;;
SELECT DISTINCT dep.deptype, dep.classid, dep.objid, cl.relkind, attr.attname, pg_catalog.pg_get_expr(ad.adbin, ad.adrelid) adefval,
    CASE WHEN cl.relkind IS NOT NULL THEN CASE WHEN cl.relkind = 'r' THEN cl.relkind || COALESCE(dep.objsubid::character varying, '') ELSE cl.relkind END
        WHEN tg.oid IS NOT NULL THEN 'T'::text
        WHEN ty.oid IS NOT NULL THEN CASE WHEN ty.typtype = 'd' THEN 'd'::text ELSE 'y'::text END
        WHEN ns.oid IS NOT NULL THEN 'n'::text
        WHEN pr.oid IS NOT NULL THEN 'p'::text
        WHEN la.oid IS NOT NULL THEN 'l'::text
        WHEN rw.oid IS NOT NULL THEN 'R'::text
        WHEN co.oid IS NOT NULL THEN 'C'::text || contype
        WHEN ad.oid IS NOT NULL THEN 'A'::text
        ELSE ''
    END AS type,
    COALESCE(coc.relname, clrw.relname) AS ownertable,
    CASE WHEN cl.relname IS NOT NULL AND att.attname IS NOT NULL THEN cl.relname || '.' || att.attname
    ELSE COALESCE(cl.relname, co.conname, pr.proname, tg.tgname, ty.typname, la.lanname, rw.rulename, ns.nspname)
    END AS refname,
    COALESCE(nsc.nspname, nso.nspname, nsp.nspname, nst.nspname, nsrw.nspname) AS nspname
FROM pg_depend dep
LEFT JOIN pg_class cl ON dep.objid=cl.oid
LEFT JOIN pg_attribute att ON dep.objid=att.attrelid AND dep.objsubid=att.attnum
LEFT JOIN pg_namespace nsc ON cl.relnamespace=nsc.oid
LEFT JOIN pg_proc pr ON dep.objid=pr.oid
LEFT JOIN pg_namespace nsp ON pr.pronamespace=nsp.oid
LEFT JOIN pg_trigger tg ON dep.objid=tg.oid
LEFT JOIN pg_type ty ON dep.objid=ty.oid
LEFT JOIN pg_namespace nst ON ty.typnamespace=nst.oid
LEFT JOIN pg_constraint co ON dep.objid=co.oid
LEFT JOIN pg_class coc ON co.conrelid=coc.oid
LEFT JOIN pg_namespace nso ON co.connamespace=nso.oid
LEFT JOIN pg_rewrite rw ON dep.objid=rw.oid
LEFT JOIN pg_class clrw ON clrw.oid=rw.ev_class
LEFT JOIN pg_namespace nsrw ON clrw.relnamespace=nsrw.oid
LEFT JOIN pg_language la ON dep.objid=la.oid
LEFT JOIN pg_namespace ns ON dep.objid=ns.oid
LEFT JOIN pg_attrdef ad ON ad.oid=dep.objid
LEFT JOIN pg_attribute attr ON attr.attrelid = ad.adrelid and attr.attnum = ad.adnum
WHERE dep.refobjid=$1
ORDER BY type
;;
SELECT pg_catalog.col_description($1::regclass::oid, $2)
;;
SELECT format_type(a.atttypid, a.atttypmod), a.attname, i.indkey[0], (i.indkey)[1] FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey) WHERE i.indisprimary
;;
SELECT nsp.nspname, cls.relname FROM pg_class cls INNER JOIN pg_namespace nsp ON nsp.oid = cls.relnamespace WHERE cls.oid = 'public.item'::regclass
;;
SELECT table_schema, table_name, column_name, udt_name FROM information_schema.columns WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1, 2, ordinal_position
;;
SELECT a.attname, format_type(a.atttypid, a.atttypmod), pg_get_expr(d.adbin, d.adrelid), a.attnotnull, a.atttypid, a.atttypmod, c.collname, col_description(a.attrelid, a.attnum) AS comment, attidentity AS identity, attgenerated as attgenerated FROM pg_attribute a LEFT JOIN pg_attrdef d ON a.attrelid = d.adrelid AND a.attnum = d.adnum LEFT JOIN pg_type t ON a.atttypid = t.oid LEFT JOIN pg_collation c ON a.attcollation = c.oid AND a.attcollation <> t.typcollation WHERE a.attrelid = '"item"'::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
;;
SELECT ns.nspname, t.oid, t.typname, t.typtype, t.typnotnull, t.elemtypoid FROM (SELECT typ.oid, typ.typnamespace, typ.typname, typ.typtype, typ.typrelid, typ.typnotnull, typ.relkind, elemtyp.oid AS elemtypoid, elemtyp.typname AS elemtypname, elemcls.relkind AS elemrelkind, CASE WHEN elemproc.proname='array_recv' THEN 'a' ELSE elemtyp.typtype END AS elemtyptype FROM (SELECT typ.oid, typnamespace, typname, typrelid, typnotnull, relkind, typelem AS elemoid, CASE WHEN proc.proname='array_recv' THEN 'a' ELSE typ.typtype END AS typtype, CASE WHEN proc.proname='array_recv' THEN typ.typelem WHEN typ.typtype='r' THEN rngsubtype WHEN typ.typtype='d' THEN typ.typbasetype END AS elemtypoid FROM pg_type AS typ LEFT JOIN pg_class AS cls ON (cls.oid = typ.typrelid) LEFT JOIN pg_proc AS proc ON proc.oid = typ.typreceive LEFT JOIN pg_range ON (pg_range.rngtypid = typ.oid)) AS typ LEFT JOIN pg_type AS elemtyp ON elemtyp.oid = elemtypoid LEFT JOIN pg_class AS elemcls ON (elemcls.oid = elemtyp.typrelid) LEFT JOIN pg_proc AS elemproc ON elemproc.oid = elemtyp.typreceive) AS t JOIN pg_namespace AS ns ON (ns.oid = typnamespace) WHERE typtype IN ('b', 'r', 'm', 'e', 'd') ORDER BY 2
;;
SELECT grantee, privilege_type FROM pg_class c, LATERAL aclexplode(c.relacl) AS a WHERE c.relname = 'item'
;;
SELECT current_database(), current_user, pg_backend_pid(), current_setting('application_name', true)
;;
SELECT t.relname, i.relname, a.attname, ix.indisunique FROM pg_class t, pg_class i, pg_index ix, pg_attribute a WHERE t.oid = ix.indrelid AND i.oid = ix.indexrelid AND a.attrelid = t.oid AND a.attnum = ANY(ix.indkey) AND t.relkind = 'r' AND t.relname LIKE 'it%' ORDER BY t.relname, i.relname
;;
SELECT current_database()
;;
SELECT * FROM pg_catalog.pg_enum WHERE 1<>1 LIMIT 1
;;
SELECT reltype FROM pg_catalog.pg_class WHERE 1<>1 LIMIT 1
;;
SELECT typcategory FROM pg_catalog.pg_type WHERE 1<>1 LIMIT 1
;;
SELECT db.oid,db.* FROM pg_catalog.pg_database db WHERE 1 = 1 AND datallowconn AND NOT datistemplate OR db.datname =$1
ORDER BY db.datname
;;
SELECT db.oid,db.* FROM pg_catalog.pg_database db WHERE datname=$1
;;
SELECT db.datname FROM pg_catalog.pg_database db WHERE datistemplate
;;
SELECT db.datname,pg_database_size(db.oid) FROM pg_catalog.pg_database db WHERE db.oid=$1
;;
select description from pg_shdescription join pg_database on objoid = pg_database.oid where datname = $1
;;
SELECT s.oid as schema_id
from pg_catalog.pg_namespace s
WHERE s.nspname =$1
;;
SELECT t.oid,t.*,c.relkind,format_type(nullif(t.typbasetype, 0), t.typtypmod) as base_type_name FROM pg_catalog.pg_type t
LEFT OUTER JOIN pg_class c ON c.oid=t.typrelid
LEFT OUTER JOIN pg_catalog.pg_description d ON t.oid=d.objoid
WHERE t.oid=$1
;;
SELECT t.oid,t.*,format_type(nullif(t.typbasetype, 0), t.typtypmod) as base_type_name FROM pg_catalog.pg_type t
LEFT OUTER JOIN pg_class c ON c.oid=t.typrelid
LEFT OUTER JOIN pg_catalog.pg_description d ON t.oid=d.objoid
WHERE t.typname=$1
;;
SELECT c.relname,row_number() OVER (ORDER BY a.attnum) as attnum,a.*,pg_catalog.pg_get_expr(ad.adbin, ad.adrelid, true) as def_value,dsc.description
FROM pg_catalog.pg_attribute a
INNER JOIN pg_catalog.pg_class c ON (a.attrelid=c.oid)
LEFT OUTER JOIN pg_catalog.pg_attrdef ad ON (a.attrelid=ad.adrelid AND a.attnum = ad.adnum)
LEFT OUTER JOIN pg_catalog.pg_description dsc ON (c.oid=dsc.objoid AND a.attnum = dsc.objsubid)
WHERE a.attnum > 0 AND NOT a.attisdropped AND c.oid=$1
ORDER BY a.attnum
;;
SELECT concat(c.conname, ' ', pg_catalog.pg_get_constraintdef(oid, true))
FROM pg_catalog.pg_constraint c
WHERE contypid = 23
;;
SELECT e.enumlabel
FROM pg_catalog.pg_enum e
WHERE e.enumtypid=$1
ORDER BY e.enumsortorder
;;
SELECT i.inhrelid relid, pc.relnamespace parent_ns, pc.oid parent_oid, i.inhseqno
FROM pg_catalog.pg_inherits i, pg_class rc, pg_class pc
WHERE rc.oid=i.inhrelid AND rc.relnamespace=$1 AND pc.oid=i.inhparent
;;
SELECT i.*,c.relnamespace FROM pg_catalog.pg_inherits i,pg_catalog.pg_class c WHERE i.inhparent=$1 AND c.oid=i.inhrelid
;;
select pg_get_expr(c.relpartbound, c.oid, true) as partition_range from "pg_catalog".pg_class c where relname = $1 and relnamespace = $2;
;;
SELECT * FROM pg_default_acl WHERE defaclnamespace = $1
;;
SELECT
 e.oid,
 cfg.tbls,
 n.nspname as schema_name,
 e.*
FROM
 pg_catalog.pg_extension e
 join pg_namespace n on n.oid =e.extnamespace
 left join  (
         select
            ARRAY_AGG(ns.nspname || '.' ||  cls.relname) tbls, oid_ext
          from
            (
            select
                unnest(e1.extconfig) oid , e1.oid oid_ext
            from
                pg_catalog.pg_extension e1 ) c
                join    pg_class cls on cls.oid = c.oid
                join pg_namespace ns on ns.oid = cls.relnamespace
            group by oid_ext
         ) cfg on cfg.oid_ext = e.oid
WHERE e.extnamespace=$1
ORDER BY e.oid
;;
SELECT name,default_version,installed_version,comment FROM pg_catalog.pg_available_extensions ORDER BY name
;;
SELECT name, version, installed FROM pg_catalog.pg_available_extension_versions ORDER BY name, version
;;
SELECT p.oid AS proc_oid,p.proname AS proc_name,a.*
FROM pg_catalog.pg_aggregate a,pg_catalog.pg_proc p
WHERE p.oid=a.aggfnoid AND p.pronamespace=$1
ORDER BY p.proname
;;
SELECT (pg_identify_object('pg_proc'::regclass, aggfnoid, 0)).identity,
aggtransfn::regproc,
format_type(aggtranstype, NULL) as aggtranstype,
CASE aggfinalfn WHEN '-'::regproc THEN NULL ELSE aggfinalfn::text END,
CASE aggsortop WHEN 0 THEN NULL ELSE oprname END,
agginitval, aggmtransfn, aggminvtransfn,
aggfinalextra, aggmfinalextra, aggserialfn, aggdeserialfn, aggmfinalfn,
format_type(aggmtranstype, NULL) as aggmtranstype
,aggfinalmodify, aggmfinalmodify FROM pg_aggregate
LEFT JOIN pg_operator ON pg_operator.oid = aggsortop
WHERE aggfnoid = 'public.total'::regproc
;;
SELECT p.oid as poid,p.*,pg_catalog.pg_get_expr(p.proargdefaults, 0) as arg_defaults,d.description
FROM pg_catalog.pg_proc p
LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid=p.oid and d.classoid='pg_proc'::regclass  AND d.objsubid = 0
WHERE p.pronamespace=$1 AND p.oid=$2
ORDER BY p.proname
;;
SELECT prosrc FROM pg_proc where oid = $1
;;
select pg_catalog.pg_get_indexdef($1, $2, true)
;;
SELECT x.oid,x.*,p.pronamespace as func_schema_id,d.description
FROM pg_catalog.pg_trigger x
LEFT OUTER JOIN pg_catalog.pg_proc p ON p.oid=x.tgfoid
LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid=x.oid AND d.objsubid=0
WHERE x.tgrelid = $1
AND x.tgname = $2 AND NOT x.tgisinternal
;;
SELECT pg_catalog.pg_get_triggerdef($1)
;;
SELECT tgenabled FROM pg_catalog.pg_trigger WHERE oid=$1
;;
SELECT evtenabled FROM pg_catalog.pg_event_trigger WHERE oid=$1
;;
SELECT pet.*, d.description FROM pg_catalog.pg_event_trigger pet
LEFT OUTER JOIN pg_catalog.pg_description d ON pet."oid" = d.objoid WHERE pet.evtname = $1
;;
SELECT r.oid,r.*, pg_get_ruledef(r.oid) AS definition
FROM pg_rewrite r
WHERE r.ev_class=16500 AND r.rulename <> '_RETURN'::name
;;
SELECT pg_get_viewdef(16500, true)
;;
SELECT DISTINCT connamespace FROM pg_catalog.pg_constraint WHERE confrelid=$1
;;
select pg_catalog.pg_total_relation_size($1) as total_rel_size,pg_catalog.pg_relation_size($2) as rel_size
;;
select description from pg_catalog.pg_description
join pg_catalog.pg_class on pg_description.objoid = pg_class.oid
join pg_catalog.pg_namespace on pg_class.relnamespace = pg_namespace.oid
where pg_class.relname = $1 and pg_namespace.nspname=$2
;;
SELECT DISTINCT dep.deptype, dep.classid, dep.objid, cl.relkind, attr.attname,pg_get_expr(ad.adbin, ad.adrelid) adefval,
    CASE WHEN cl.relkind IS NOT NULL THEN cl.relkind::text || COALESCE(dep.objsubid::text, '')::text
        WHEN tg.oid IS NOT NULL THEN 'T'::text
        WHEN ty.oid IS NOT NULL THEN 'y'::text
        WHEN ns.oid IS NOT NULL THEN 'n'::text
        WHEN pr.oid IS NOT NULL THEN 'p'::text
        WHEN la.oid IS NOT NULL THEN 'l'::text
        WHEN rw.oid IS NOT NULL THEN 'R'::text
        WHEN co.oid IS NOT NULL THEN 'C'::text || contype::text
        WHEN ad.oid IS NOT NULL THEN 'A'::text
        ELSE ''
    END AS type,
    COALESCE(coc.relname, clrw.relname, tgr.relname) AS ownertable,
    CASE WHEN cl.relname IS NOT NULL AND att.attname IS NOT NULL THEN cl.relname || '.' || att.attname
    ELSE COALESCE(cl.relname, co.conname, pr.proname, tg.tgname, ty.typname, la.lanname, rw.rulename, ns.nspname)
    END AS refname,
    COALESCE(nsc.nspname, nso.nspname, nsp.nspname, nst.nspname, nsrw.nspname, tgrn.nspname) AS nspname
FROM pg_depend dep
LEFT JOIN pg_class cl ON dep.objid=cl.oid
LEFT JOIN pg_attribute att ON dep.objid=att.attrelid AND dep.objsubid=att.attnum
LEFT JOIN pg_namespace nsc ON cl.relnamespace=nsc.oid
LEFT JOIN pg_proc pr ON dep.objid=pr.oid
LEFT JOIN pg_namespace nsp ON pr.pronamespace=nsp.oid
LEFT JOIN pg_trigger tg ON dep.objid=tg.oid
LEFT JOIN pg_class tgr ON tg.tgrelid=tgr.oid
LEFT JOIN pg_namespace tgrn ON tgr.relnamespace=tgrn.oid
LEFT JOIN pg_type ty ON dep.objid=ty.oid
LEFT JOIN pg_namespace nst ON ty.typnamespace=nst.oid
LEFT JOIN pg_constraint co ON dep.objid=co.oid
LEFT JOIN pg_class coc ON co.conrelid=coc.oid
LEFT JOIN pg_namespace nso ON co.connamespace=nso.oid
LEFT JOIN pg_rewrite rw ON dep.objid=rw.oid
LEFT JOIN pg_class clrw ON clrw.oid=rw.ev_class
LEFT JOIN pg_namespace nsrw ON clrw.relnamespace=nsrw.oid
LEFT JOIN pg_language la ON dep.objid=la.oid
LEFT JOIN pg_namespace ns ON dep.objid=ns.oid
LEFT JOIN pg_attrdef ad ON ad.oid=dep.objid
LEFT JOIN pg_attribute attr ON attr.attrelid=ad.adrelid and attr.attnum=ad.adnum
WHERE dep.refobjid=$1
ORDER BY type
;;
SELECT a.oid,a.*,pd.description FROM pg_catalog.pg_roles a
left join pg_catalog.pg_shdescription pd on a.oid = pd.objoid
ORDER BY a.rolname
;;
SELECT * FROM pg_catalog.pg_auth_members WHERE roleid=$1
;;
SELECT * FROM information_schema.table_privileges WHERE table_catalog=$1 AND grantee=$2
;;
SELECT * FROM information_schema.routine_privileges WHERE specific_catalog=$1 AND grantee=$2
;;
SELECT * FROM (
	SELECT DISTINCT relnamespace,
	relacl,
	relname,
	relkind,
(aclexplode(relacl)).grantee as granteeI
FROM
	pg_class
WHERE
	relacl IS NOT NULL
	AND relnamespace IN (
SELECT oid
FROM pg_namespace
WHERE nspname NOT LIKE 'pg_%' AND nspname != 'information_schema')
UNION ALL
SELECT DISTINCT
	n.oid AS relnamespace,
	nspacl AS relacl,
	n.nspname AS relname,
	cast('C' as "char") AS relkind,
(aclexplode(nspacl)).grantee as granteeI
FROM
	pg_catalog.pg_namespace n
WHERE
	n.nspacl IS NOT NULL
	) AS tr
WHERE tr.granteeI=$1 AND tr.relkind IN('S', 'm', 'C')
;;
select * from pg_catalog.pg_settings where name=$1
;;
SELECT pc.oid,pc.relname,pc.relnamespace,pc.relkind FROM pg_catalog.pg_class pc WHERE pc.relkind in('r','v','m','f','p') AND (pc.relname ILIKE $1 OR obj_description(pc.oid, 'pg_class') ILIKE $2 OR pc.relkind = 'v' AND pg_get_viewdef(pc."oid") ILIKE $3) AND pc.relnamespace IN ($4,$5) ORDER BY pc.relname LIMIT 100
;;
SELECT pp.oid as poid, pp.* FROM pg_catalog.pg_proc pp WHERE (pp.proname LIKE $1 OR obj_description(pp.oid, 'pg_proc') LIKE $2 OR pp.prokind <> 'm' AND pp.prokind <> 'a' AND pg_get_functiondef(pp."oid") LIKE $3) AND pp.pronamespace IN ($4) ORDER BY pp.proname LIMIT 100
;;
SELECT pc.oid, pc.conname, pc.connamespace FROM pg_catalog.pg_constraint pc WHERE (pc.conname ILIKE $1 OR obj_description(pc.oid, 'pg_constraint') ILIKE $2 OR pg_get_constraintdef(pc."oid") ILIKE $3) AND pc.connamespace IN ($4) ORDER BY pc.conname LIMIT 100
;;
SELECT x.attname,x.attrelid,x.atttypid,c.relnamespace FROM pg_catalog.pg_attribute x, pg_catalog.pg_class c WHERE c.oid=x.attrelid AND (x.attname ILIKE $1 OR col_description(c.oid, x.attnum) ILIKE $2) AND c.relnamespace IN ($3) ORDER BY x.attname LIMIT 100
;;
with locks as ( select pid,locktype, mode,granted,transactionid tid,relation,page,tuple from pg_locks ),
conflict as ( select * from (values ('AccessShareLock','AccessExclusiveLock',1), ('RowShareLock','ExclusiveLock',1), ('RowShareLock','AccessExclusiveLock',2)) as t (mode1,mode2,prt) ),
real_locks as (
select la.pid as blocked_pid, blocked_activity.usename AS blocked_user, la.blocked AS blocking_pid, blocking_activity.usename AS blocking_user,
 blocked_activity.query AS blocked_statement, blocking_activity.query AS statement_in
from ( select l.*, c.mode2, c.prt, l2.pid blocked, row_number() over(partition by l.pid order by c.prt) rid
 from locks l
 join conflict c on l.mode = c.mode1
 join locks l2 on l2.locktype = l.locktype and l2.mode = c.mode2 and l2.granted and l.pid != l2.pid and
  coalesce(l.tid::text,'*') ||':'|| coalesce(l.relation::text,'*') ||':'|| coalesce(l.page::text,'*') ||':'|| coalesce(l.tuple::text,'*') =
  coalesce(l2.tid::text,'*') ||':'|| coalesce(l2.relation::text,'*') ||':'|| coalesce(l2.page::text,'*') ||':'|| coalesce(l2.tuple::text,'*')
 where not l.granted ) la
join pg_catalog.pg_stat_activity blocked_activity ON blocked_activity.pid = la.pid
join pg_catalog.pg_stat_activity blocking_activity ON blocking_activity.pid = la.blocked
where la.rid = 1)
, root_quest as ( select blocking_pid as blocking_pid from real_locks except select blocked_pid from real_locks )
select blocked_pid, blocked_user, blocking_pid, blocking_user, blocked_statement, statement_in from real_locks
union
select real_locks.blocking_pid, real_locks.blocking_user, null::integer, null::text, real_locks.statement_in, null::text
from real_locks, root_quest where real_locks.blocking_pid = root_quest.blocking_pid
;;
select coalesce(db.datname,'') as datname, coalesce(lock.locktype,'') as locktype, coalesce(lock.relation::regclass::varchar,'') as relation,
 coalesce(lock.mode,'') as mode, coalesce(lock.transactionid::varchar,'') as tid, lock.page as page, lock.tuple as tuple, lock.pid as pid, lock.granted
 from pg_catalog.pg_locks lock
   left join pg_catalog.pg_database db
     on db.oid = lock.database
 where lock.pid = $1
