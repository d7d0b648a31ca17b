-- Calls of functions and operators of extensions, and what PostgreSQL 15 answers, in a database with the locale C.UTF-8:
-- psql -X -q -At -f extensions.sql > extensions.tsv
-- A line is: the name or operator, the type of the result or SQLSTATE, its text or the message, then the type and the text of each argument.
SET client_min_messages TO error;
CREATE EXTENSION IF NOT EXISTS hstore;
CREATE EXTENSION IF NOT EXISTS citext;
CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE EXTENSION IF NOT EXISTS unaccent;
SELECT setseed(0.5) \g /dev/null
\ir answer.sql
-- hstore: how it is read and written.
CREATE TEMP TABLE written AS SELECT unnest(ARRAY['', ' ', 'a=>1', 'a=>1,b=>2', ' a => 1 , b=>2 ', 'a=>1,', 'a=>1,,', ',', 'a', 'a=', 'a=>', 'a=>,', 'a=>1 b=>2', '=>1', 'a = >1', 'a=> =1',
  'a=>=1', 'a=>NULL', 'a=>null', 'a=>NuLL', 'a=>"NULL"', 'a=>nul\l', 'a=>NULLs', '"a"=>"1"', '"a b"=>"c,d"', '"a\"b"=>"c\\d"', 'a\"b=>c\\d', '"a', 'a=>"b', 'a=>b\', '"a\', '\', 'a\',
  '\=>=>1', 'a\=b=>1', 'a=>b"c', 'a"b=>1', '"a"x=>1', '"a" => "b" x', 'a=>"b"c', '""=>""', 'a=>""', 'bb=>1,a=>2,ccc=>3,aa=>4', 'a=>1,a=>2', 'a=>1,b=>2,a=>3,b=>4', 'é=>ü, z=>"日本"', E'a\t=>\n1',
  E'a=>\x0b1', 'a=>1;b=>2', 'a=>b=c', 'a=>b=>c', 'a=>1,=>2', 'null=>1', '"a"=>1,"a"=>NULL', 'a>1', 'a=1', 'a=>ä b', 'ä b=>1', '1=>2, 10=>3, -1=>4', 'a=>\,', 'a=>,b', 'a=>,,b=>1', 'a=>t, b=>f, c=>1.50, d=>-0, e=>1e5, f=>01, g=>.5, h=>1., i=>1e, j=>--1, k=>"1 ", l=>NaN, m=>true, n=>-1.5E-3, o=>1e+2, p=>+1, q=>" 1"',
  '"quote\"s"=>"back\\slash", "new
line"=>"tab	"']) AS store;
SELECT pg_temp.answer('hstore_to_array', '{hstore}', ARRAY[store]) FROM written;
SELECT pg_temp.answer('||', '{hstore,hstore}', ARRAY[store, '']) FROM written;
CREATE TEMP TABLE stores AS SELECT unnest(ARRAY['', 'a=>1', 'a=>NULL', 'a=>1, b=>2', 'a=>2, b=>NULL', 'aa=>1, b=>2', 'b=>1', 'a=>"", ""=>a', 'a=>1, b=>2, cc=>3, ddd=>NULL', 'ab=>c', 'a=>bc', 'a=>b, c=>""', '"a=>b"=>c',
  'é=>1, a=>é', 'a=>10', 'a=>1, aa=>NULL', 'a=>t, b=>f, c=>1.50, d=>-0, e=>1e5, f=>01, g=>NaN, h=>NULL']) AS store;
CREATE TEMP TABLE keys AS SELECT unnest(ARRAY['a', 'b', '', 'é', 'aa', 'x', 'A']) AS key;
CREATE TEMP TABLE lists AS SELECT unnest(ARRAY['{}', '{a}', '{a,b}', '{b,a,a}', '{NULL}', '{a,NULL,x}', '{x,y}', '{"",aa}']) AS list;
SELECT pg_temp.answer(function, '{hstore,text}', ARRAY[store, key])
  FROM stores, keys, unnest(ARRAY['->', 'fetchval', '?', 'exist', 'isexists', 'defined', 'isdefined', 'delete', '-']) AS function WHERE random() < 0.25;
SELECT pg_temp.answer(function, '{hstore,text[]}', ARRAY[store, list])
  FROM stores, lists, unnest(ARRAY['->', 'slice_array', 'slice', '?|', 'exists_any', '?&', 'exists_all', 'delete', '-']) AS function WHERE random() < 0.3;
SELECT pg_temp.answer(function, '{hstore,hstore}', ARRAY[a.store, b.store])
  FROM stores AS a, stores AS b, unnest(ARRAY['@>', '<@', '||', '-', 'delete', 'hs_contains', 'hs_contained', 'hs_concat', '=', '<>']) AS function WHERE random() < 0.2;
-- Their order, which no operator has the usual name of.
SELECT replace(pg_temp.answer('#<#', '{hstore,hstore}', ARRAY[a.store, b.store]), '#<#', '<') FROM stores AS a, stores AS b;
SELECT pg_temp.answer(function, '{hstore}', ARRAY[store])
  FROM stores, unnest(ARRAY['akeys', 'avals', 'hstore_to_array', 'hstore_to_json', 'hstore_to_json_loose', 'hstore_to_jsonb', 'hstore_to_jsonb_loose']) AS function;
SELECT pg_temp.answer('hstore_to_json_loose', '{hstore}', ARRAY[store]) FROM written WHERE store LIKE 'a=>t%' OR store LIKE '"quote%';
SELECT pg_temp.answer('hstore_to_jsonb_loose', '{hstore}', ARRAY[store]) FROM written WHERE store LIKE 'a=>t%' OR store LIKE '"quote%';
SELECT pg_temp.answer(function, '{text,text}', ARRAY[key, value]) FROM keys, unnest(ARRAY['1', '', 'a"b']) AS value, unnest('{hstore,tconvert}'::text[]) AS function;
SELECT pg_temp.answer('hstore', '{text[]}', ARRAY[list]) FROM lists;
SELECT pg_temp.answer('hstore', '{text[]}', ARRAY[list]) FROM unnest(ARRAY['{a,1,b,2}', '{a,1,a,2}', '{a,NULL}', '{NULL,a}', '{bb,1,a,2,c,3}']) AS list;
SELECT pg_temp.answer('hstore', '{text[],text[]}', ARRAY[a.list, b.list]) FROM lists AS a, lists AS b;
-- citext.
CREATE TEMP TABLE names AS SELECT unnest(ARRAY['', 'a', 'A', 'Anna', 'ANNA', 'anna b', 'b', 'B', 'Straße', 'a.b.A.B', 'a+b', 'Foo Bar foo', '_', 'foofoo', 'É', 'é']) AS name;
SELECT pg_temp.answer(function, '{citext,citext}', ARRAY[a.name, b.name])
  FROM names AS a, names AS b, unnest(ARRAY['=', '<>', '<', '<=', '>', '>=']) AS function WHERE a.name !~ '[Éé]' AND b.name !~ '[Éé]' AND random() < 0.2;
CREATE TEMP TABLE patterns AS SELECT unnest(ARRAY['a', 'A', '^anna', '(F)(O+)', '.', 'B$', '[ab]+', 'x', '\.', '']) AS pattern;
SELECT pg_temp.answer(operator, ARRAY['citext', type], ARRAY[name, pattern])
  FROM names, patterns, unnest(ARRAY['~', '!~', '~*', '!~*']) AS operator, unnest('{citext,text}'::text[]) AS type WHERE random() < 0.15;
SELECT pg_temp.answer('~', ARRAY['text', 'citext'], ARRAY[name, pattern]) FROM names, patterns WHERE random() < 0.4;
SELECT pg_temp.answer(function, '{citext,citext}', ARRAY[name, pattern]) FROM names, patterns, unnest('{regexp_match,regexp_split_to_array,strpos}'::text[]) AS function WHERE random() < 0.4;
SELECT pg_temp.answer(function, '{citext,citext,text}', ARRAY[name, pattern, flags])
  FROM names, patterns, unnest('{regexp_match,regexp_split_to_array}'::text[]) AS function, unnest(ARRAY['', 'c', 'n', 'xc', 'g', '?']) AS flags WHERE random() < 0.12;
SELECT pg_temp.answer('regexp_replace', '{citext,citext,text}', ARRAY[name, pattern, '<\1>']) FROM names, patterns;
SELECT pg_temp.answer('regexp_replace', '{citext,citext,text,text}', ARRAY[name, pattern, '<\&>', flags]) FROM names, patterns, unnest(ARRAY['', 'c', 'g', 'cg', 'i']) AS flags WHERE random() < 0.25;
SELECT pg_temp.answer('replace', '{citext,citext,citext}', ARRAY[name, part, 'Xy']) FROM names, unnest(ARRAY['a', 'A', 'foo', '.', 'B.a', '+', '', 'z', 'ß']) AS part;
SELECT pg_temp.answer('split_part', '{citext,citext,integer}', ARRAY[name, part, field]) FROM names, unnest(ARRAY['a', 'A', 'foo', '.', 'B.a', ' ']) AS part, unnest('{1,2,3,0,9}'::text[]) AS field;
SELECT pg_temp.answer('translate', '{citext,citext,text}', ARRAY[name, part, goal]) FROM names, unnest(ARRAY['a', 'AB', 'fo.', '']) AS part, unnest(ARRAY['x', '', '12']) AS goal;
SELECT pg_temp.answer(function, '{citext}', ARRAY[name]) FROM names, unnest('{length,upper,lower,initcap,reverse,md5}'::text[]) AS function WHERE name !~ '[Éé]';
-- How alike texts are.
CREATE TEMP TABLE texts AS SELECT unnest(ARRAY['', ' ', 'a', 'ab', 'word', 'two words', 'words', 'Word', 'cat', 'the cat sat on the mat', 'catalogue', 'wrod', 'aaaa', 'a a a', 'ab ab ab ba', 'Straße', 'STRASSE', 'Ärger im Büro',
  'ärger', '日本語', '日本', 'foo_bar-baz', '12 monkeys', '1234', 'x1y2', 'naïve café', 'NAÏVE CAFÉ', '...', 'İstanbul', 'the quick brown fox jumps over the lazy dog', 'quick fox', 'lazy cat dog', 'dog', 'jump over', 'Ελλάδα', 'ελλάδα', '😀 smile', '٣٤']) AS text;
SELECT pg_temp.answer('show_trgm', '{text}', ARRAY[text]) FROM texts;
SELECT pg_temp.answer(function, '{text,text}', ARRAY[a.text, b.text]) FROM texts AS a, texts AS b,
  unnest(ARRAY['similarity', 'similarity_dist', '%', '<->', 'word_similarity', 'strict_word_similarity', '<%', '%>', '<<->', '<->>', '<<%', '%>>', '<<<->', '<->>>']) AS function WHERE random() < 0.1;
-- Accents.
SELECT pg_temp.answer('unaccent', '{text}', ARRAY[text]) FROM texts;
SELECT pg_temp.answer('unaccent', '{text}', ARRAY[text]) FROM unnest(ARRAY['Hôtel de la Mer', 'ÀÁÂÃÄÅÆÇÈÉ', '¼ ½ ¾', '“quotes” – dash…', 'ﬁn ﬂow', 'œuvre', '№ 5', '℃', 'жёлтый', 'Ⅷ', 'ｆｕｌｌ', 'e' || chr(769), 'ǅ', '©®™']) AS text;
SELECT pg_temp.answer('unaccent', '{regdictionary,text}', ARRAY['unaccent', 'Hôtel']);
