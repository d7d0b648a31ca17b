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
