// node-postgres: parameters, prepared statements, transactions, a pool, errors.
const assert = require("node:assert");
const { Client, Pool } = require("pg");

async function main() {
  const client = new Client();
  await client.connect();
  await client.query(
    "CREATE TABLE node_item (id integer PRIMARY KEY, name text NOT NULL, price numeric(10, 2), sold boolean, made date, tags text[])",
  );
  const inserted = await client.query(
    "INSERT INTO node_item VALUES ($1, $2, $3, $4, $5, $6), (2, 'two', NULL, false, NULL, NULL) RETURNING id",
    [1, "ünïcode", "12.50", true, "2026-02-28", ["a", "b c"]],
  );
  assert.strictEqual(inserted.rowCount, 2);
  assert.deepStrictEqual(inserted.rows, [{ id: 1 }, { id: 2 }]);
  const found = await client.query("SELECT id, name, price, sold, made::text AS made, tags FROM node_item ORDER BY id");
  assert.deepStrictEqual(found.rows, [
    { id: 1, name: "ünïcode", price: "12.50", sold: true, made: "2026-02-28", tags: ["a", "b c"] },
    { id: 2, name: "two", price: null, sold: false, made: null, tags: null },
  ]);
  assert.deepStrictEqual(found.fields.map((field) => field.dataTypeID), [23, 25, 1700, 16, 25, 1009]);

  for (let number = 0; number < 10; number++) {
    const answer = await client.query({ name: "plus", text: "SELECT $1::bigint + 1 AS n", values: [number] });
    assert.deepStrictEqual(answer.rows, [{ n: String(number + 1) }]);
  }
  const both = await client.query("SELECT 1 AS a; SELECT 2 AS b");
  assert.deepStrictEqual(both.map((one) => one.rows), [[{ a: 1 }], [{ b: 2 }]]);

  await client.query("BEGIN");
  await client.query("UPDATE node_item SET price = 1 WHERE id = $1", [2]);
  assert.deepStrictEqual((await client.query("SELECT price FROM node_item WHERE id = 2")).rows, [{ price: "1.00" }]);
  await client.query("ROLLBACK");
  assert.deepStrictEqual((await client.query("SELECT price FROM node_item WHERE id = 2")).rows, [{ price: null }]);
  await client.query("BEGIN");
  await client.query("DELETE FROM node_item WHERE id = 2");
  await client.query("COMMIT");

  await assert.rejects(client.query("INSERT INTO node_item VALUES (1, 'again')"), { code: "23505" });
  await assert.rejects(client.query("SELECT nothing FROM node_item"), { code: "42703", position: "8" });
  await client.query("BEGIN");
  await assert.rejects(client.query("SELECT 1 / $1::integer", [0]), { code: "22012" });
  await assert.rejects(client.query("SELECT 1"), { code: "25P02" });
  assert.strictEqual((await client.query("COMMIT")).command, "ROLLBACK");

  const pool = new Pool({ max: 4 });
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, number) =>
      pool.query("INSERT INTO node_item (id, name) VALUES ($1, $2) RETURNING id", [100 + number, "pool"]),
    ),
  );
  assert.strictEqual(answers.length, 20);
  assert.deepStrictEqual((await pool.query("SELECT count(*) AS n FROM node_item")).rows, [{ n: "21" }]);
  await pool.end();
  // What a transaction of another session notifies.
  const heard = new Promise((resolve) => client.once("notification", resolve));
  await client.query("LISTEN node_news");
  const sender = new Client();
  await sender.connect();
  await sender.query("BEGIN");
  await sender.query("SELECT pg_notify($1, $2)", ["node_news", "text"]);
  await sender.query("COMMIT");
  await sender.end();
  const { channel, payload } = await heard;
  assert.deepStrictEqual([channel, payload], ["node_news", "text"]);

  await client.query("DROP TABLE node_item");
  await client.end();
  console.log("node-postgres: ok");
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
