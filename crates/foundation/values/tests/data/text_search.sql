-- Calls of functions of full text search, and what PostgreSQL 15 answers: psql -X -q -At -f text_search.sql > text_search.tsv
-- A line is: the name or operator, the type of the result or SQLSTATE, its text or the message, then the type and the text of each argument.
SET client_min_messages TO error;
SET default_text_search_config TO 'pg_catalog.english';
SELECT setseed(0.5) \g /dev/null
\ir answer.sql
CREATE TEMP TABLE words AS SELECT word, row_number() OVER () AS place FROM unnest(string_to_array(
  'the,a,cat,cats,Rats,fat,running,ran,quick-brown,over,and,not,Über,naïve,日本,foo@example.com,http://example.com/a/b?c=1,/usr/local/bin,'
  || '1.2.3,-4.5e6,42,x&y,<b>bold</b>,it''s,well-known-fact,12-monkeys,do,or,AND,rat''s,elephant,elephants,quickly,"fat cat",a_b,C++,§,&amp;', ',')) AS word;
CREATE TEMP TABLE docs AS SELECT doc FROM (
  SELECT string_agg(word, (ARRAY[' ', ' ', ', ', '. ', ' - ', E'\n'])[1 + floor(random() * 6)] ORDER BY random()) AS doc
  FROM (SELECT w.word, n FROM generate_series(1, 60) AS n, words AS w WHERE random() < 0.25 OR n % 7 = 0 AND random() < 0.9) AS chosen GROUP BY n
  UNION ALL SELECT unnest(ARRAY['', ' ', 'the a of', 'cat', 'a fat cat sat on a mat and ate a fat rat'])) AS made;
CREATE TEMP TABLE parts AS SELECT unnest(ARRAY['cat', 'fat', 'rat', 'the', 'run', 'ele:*', 'cat:A', 'fat:BC', '''quick brown''', 'elephants',
  'rat:*D', 'Über', 'foo-bar', 'x']) AS part;
CREATE TEMP TABLE searches AS SELECT search FROM (
  SELECT CASE n % 5
    WHEN 0 THEN a || ' & ' || b || ' | !' || c WHEN 1 THEN '(' || a || ' | ' || b || ') & ' || c WHEN 2 THEN a || ' <-> ' || b || ' <2> ' || c
    WHEN 3 THEN '!' || a || ' & (' || b || ' <-> !' || c || ')' ELSE a || ' <-> (' || b || ' | ' || c || ')' END AS search
  FROM (SELECT n, (SELECT part FROM parts ORDER BY random() + n * 0 LIMIT 1) AS a, (SELECT part FROM parts ORDER BY random() + n * 0 LIMIT 1) AS b,
    (SELECT part FROM parts ORDER BY random() + n * 0 LIMIT 1) AS c FROM generate_series(1, 60) AS n) AS made
  UNION ALL SELECT part FROM parts
  UNION ALL SELECT unnest(ARRAY['', 'the', 'a & the', 'cat &', '& cat', 'cat dog', '(cat', 'cat)', '!', '!!cat', '!(cat & dog)', 'cat <3> dog', 'cat <0> cat',
    'cat <99999> dog', 'cat <-> ', 'a <-> cat', 'cat <-> the <-> dog', '(the <-> cat) <-> dog', '(cat <-> the) | dog', 'cat:*ABCDx', ':cat', 'cat:', '''', '''''',
    '''a b'' & c', '\', 'a\:b', 'cat <-> (dog <-> fish)', '(cat <-> dog) <-> fish', 'cat & (dog & fish)', '!(cat <-> dog)', '!cat <-> dog'])) AS made;
CREATE TEMP TABLE plain AS SELECT unnest(ARRAY['', 'the', 'fat cats', 'The fat & cat', 'cat or dog', '"fat cat" -rat', '-cat', 'or', 'cat or', 'or cat', 'cat or or dog',
  '"fat cat" or rat', 'cat -"fat rat"', '"', '"the"', 'cat ! dog', 'cat:dog', 'orange or apple', 'quick-brown fox', '- cat', 'cat | dog & fish', 'foo@example.com', '"quick-brown"',
  'a <-> b', '''quoted''', 'cat "', '(cat) or (dog)', 'OR or OR', 'cat -or dog']) AS text;
CREATE TEMP TABLE vectors AS
  SELECT to_tsvector('english', doc)::text AS vector FROM docs
  UNION SELECT setweight(to_tsvector('english', doc), 'B')::text FROM docs WHERE length(doc) < 200
  UNION SELECT strip(to_tsvector('english', doc))::text FROM docs WHERE length(doc) < 120
  UNION SELECT unnest(ARRAY['', 'a', 'a b', 'a:1', 'a:1,1,2A', 'a:2A,1B b:3C,3', 'cat:1A fat:2B rat:3C run:4', 'cat fat:1', '''a b'':5 ''c''''d'':6', 'a:16383,16384A',
    'a:20000', 'cat:1,3,5,7,9A fat:2,4,6B', 'eleph:1 elephant:2B']);
CREATE TEMP TABLE written_vectors AS SELECT unnest(ARRAY['', ' ', 'a', 'b a', 'a:1', 'a:0', 'a:', 'a:1,', 'a:1A', 'a:1AB', 'a:1D', 'a:1DA', 'a:1*', 'a:1x', 'a:b', ':1', 'a:1 b:2,1,2B',
  '''a', '''a''', '''a b'':1C', '''''', '''a''''b''', 'a''b', '\a', '\', 'a\ b', 'a\:b:4', 'a:1:2', 'a:99999', 'a:1 a:2 a', 'é:3', 'a:16384', '''a'':1''b''', 'a:1b2', 'a:12345678901']) AS vector;

-- Texts of both types.
SELECT pg_temp.answer('strip', '{tsvector}', ARRAY[vector]) FROM written_vectors;
SELECT pg_temp.answer('||', '{tsvector,tsvector}', ARRAY[vector, 'z:1']) FROM written_vectors;
SELECT pg_temp.answer('!!', '{tsquery}', ARRAY[search]) FROM searches;
SELECT pg_temp.answer('numnode', '{tsquery}', ARRAY[search]) FROM searches;
SELECT pg_temp.answer('querytree', '{tsquery}', ARRAY[search]) FROM searches;
-- Documents and queries of texts.
SELECT pg_temp.answer('to_tsvector', '{regconfig,text}', ARRAY[name, doc]) FROM docs, unnest('{simple,english}'::text[]) AS name;
SELECT pg_temp.answer('to_tsvector', '{text}', ARRAY[doc]) FROM docs WHERE length(doc) < 200;
SELECT pg_temp.answer('to_tsquery', '{regconfig,text}', ARRAY[name, search]) FROM searches, unnest('{simple,english}'::text[]) AS name;
SELECT pg_temp.answer(function, '{regconfig,text}', ARRAY[name, text])
  FROM plain, unnest('{simple,english}'::text[]) AS name, unnest('{plainto_tsquery,phraseto_tsquery,websearch_to_tsquery}'::text[]) AS function;
SELECT pg_temp.answer(function, '{regconfig,text}', ARRAY['english', left(doc, 80)])
  FROM docs, unnest('{plainto_tsquery,phraseto_tsquery,websearch_to_tsquery}'::text[]) AS function;
-- Whether they match, and how well.
SELECT pg_temp.answer('@@', '{tsvector,tsquery}', ARRAY[vector, search])
  FROM vectors, searches WHERE search !~ '^(|cat &|& cat|cat dog|\(cat|cat\)|!|cat <99999> dog|cat <-> |:cat|''+|\\)$' AND random() < 0.12;
CREATE TEMP TABLE good AS SELECT search FROM searches
  WHERE search !~ '^(cat &|& cat|cat dog|\(cat|cat\)|!|cat <99999> dog|cat <-> |:cat|''+|\\)$';
SELECT pg_temp.answer(function, '{tsvector,tsquery}', ARRAY[vector, search])
  FROM vectors, good, unnest('{ts_rank,ts_rank_cd}'::text[]) AS function WHERE random() < 0.03;
SELECT pg_temp.answer(function, '{tsvector,tsquery,integer}', ARRAY[vector, search, method::text])
  FROM vectors, good, unnest('{ts_rank,ts_rank_cd}'::text[]) AS function, unnest('{1,2,4,8,16,32,63}'::int[]) AS method WHERE random() < 0.008;
SELECT pg_temp.answer(function, '{real[],tsvector,tsquery}', ARRAY[weights, vector, search])
  FROM vectors, good, unnest('{ts_rank,ts_rank_cd}'::text[]) AS function,
    unnest(ARRAY['{0.1,0.2,0.3,0.4}', '{1,1,1,1}', '{-1,0.5,-1,1}', '{0.1,0.2}', '{0.1,0.2,0.3,2}', '{0.1,NULL,0.2,1}']) AS weights WHERE random() < 0.01;
-- What is made of them.
SELECT pg_temp.answer('length', '{tsvector}', ARRAY[vector]) FROM vectors;
SELECT pg_temp.answer('setweight', ARRAY['tsvector', '"char"'], ARRAY[vector, weight]) FROM vectors, unnest('{a,B,D}'::text[]) AS weight WHERE random() < 0.3;
SELECT pg_temp.answer('setweight', ARRAY['tsvector', '"char"', 'text[]'], ARRAY[vector, 'C', lexemes]) FROM vectors, unnest(ARRAY['{cat,NULL}', '{}', '{a,fat,x}']) AS lexemes WHERE random() < 0.3;
SELECT pg_temp.answer('ts_delete', '{tsvector,text}', ARRAY[vector, lexeme]) FROM vectors, unnest('{cat,a,x}'::text[]) AS lexeme WHERE random() < 0.3;
SELECT pg_temp.answer('ts_delete', '{tsvector,text[]}', ARRAY[vector, lexemes]) FROM vectors, unnest(ARRAY['{cat,NULL}', '{}', '{a,fat,a}']) AS lexemes WHERE random() < 0.3;
SELECT pg_temp.answer('ts_filter', ARRAY['tsvector', '"char"[]'], ARRAY[vector, weights]) FROM vectors, unnest(ARRAY['{a}', '{b,D}', '{}']) AS weights WHERE random() < 0.3;
SELECT pg_temp.answer('tsvector_to_array', '{tsvector}', ARRAY[vector]) FROM vectors WHERE length(vector) < 300;
SELECT pg_temp.answer('array_to_tsvector', '{text[]}', ARRAY[lexemes]) FROM unnest(ARRAY['{}', '{b,a,b}', '{"a b",""}', '{a,NULL}', '{"it''s"}']) AS lexemes;
SELECT pg_temp.answer('||', '{tsvector,tsvector}', ARRAY[a.vector, b.vector]) FROM vectors AS a, vectors AS b WHERE random() < 0.03;
SELECT pg_temp.answer(operator, '{tsquery,tsquery}', ARRAY[a.search, b.search])
  FROM good AS a, good AS b, unnest(ARRAY['&&', '||', '<->', '@>', '<@']) AS operator WHERE random() < 0.008;
SELECT pg_temp.answer('tsquery_phrase', '{tsquery,tsquery,integer}', ARRAY['a & b', 'c', distance]) FROM unnest('{0,1,5,16384,16385,-1}'::text[]) AS distance;
SELECT pg_temp.answer('<', '{tsvector,tsvector}', ARRAY[a.vector, b.vector]) FROM vectors AS a, vectors AS b WHERE length(a.vector) < 60 AND length(b.vector) < 60 AND random() < 0.4;
SELECT pg_temp.answer('<', '{tsquery,tsquery}', ARRAY[a.search, b.search]) FROM good AS a, good AS b WHERE random() < 0.04;
-- JSON.
CREATE TEMP TABLE trees AS SELECT unnest(ARRAY['{"b": "fat cats", "a": ["the rat", 12, true, null], "c": {"key word": "running"}}', '"one string"', '[]', '{}', '["x", "y z"]', '12']) AS tree;
SELECT pg_temp.answer('to_tsvector', ARRAY['regconfig', type], ARRAY['english', tree]) FROM trees, unnest('{json,jsonb}'::text[]) AS type;
SELECT pg_temp.answer(type || '_to_tsvector', ARRAY['regconfig', type, 'jsonb'], ARRAY['english', tree, kinds])
  FROM trees, unnest('{json,jsonb}'::text[]) AS type, unnest(ARRAY['"all"', '["string", "numeric"]', '["key"]', '"boolean"', '[]', '"x"', '[1]', '{}']) AS kinds;
SELECT pg_temp.answer('ts_headline', ARRAY['regconfig', type, 'tsquery'], ARRAY['english', tree, 'cat | run']) FROM trees, unnest('{json,jsonb}'::text[]) AS type;
-- Headlines.
SELECT pg_temp.answer('ts_headline', '{regconfig,text,tsquery}', ARRAY['english', doc, search]) FROM docs, good WHERE random() < 0.03;
SELECT pg_temp.answer('ts_headline', '{regconfig,text,tsquery,text}', ARRAY['english', doc || ' ' || doc, search, options]) FROM docs, good,
  unnest(ARRAY['MaxWords=5, MinWords=2', 'MaxFragments=2, MaxWords=6, MinWords=3', 'HighlightAll=true', 'StartSel=[, StopSel="]"', 'MaxFragments=3, FragmentDelimiter=" | "',
    'ShortWord=0, MaxWords=8, MinWords=4', 'MaxFragments=1, HighlightAll=yes', 'MaxWords=3', 'x=1', 'MaxWords']) AS options WHERE random() < 0.01;
SELECT pg_temp.answer('ts_lexize', ARRAY['regdictionary', 'text'], ARRAY[dictionary, word]) FROM words, unnest('{simple,english_stem}'::text[]) AS dictionary;
