CREATE TABLE "Mixed Case" ("Key" integer PRIMARY KEY, "select" text);
CREATE PROCEDURE "Fill"("Count" integer, INOUT "Result" text) LANGUAGE plpgsql AS $body$
DECLARE
  "My Variable" text := 'it''s'; -- a comment; with a semicolon
  /* another /* nested */ one: END; */
  UPPER_CASE integer := 2;
BEGIN
  INSERT INTO "Mixed Case" VALUES ("Count", "My Variable" || E'\t' || upper_case);
  SELECT "select" INTO "Result" FROM "Mixed Case" WHERE "Key" = "Count";
  "Result" := "Result" || ' -- no comment ' || $q$'quoted'$q$;
END
$body$;
CALL "Fill"(1, NULL);
