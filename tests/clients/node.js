// node.js HOST PORT USER PASSWORD SCHEMA off|on
//
// Exercises mysql2 against a server; the last argument is TLS. Prints a line for each check and fails at the first one
// that is not as expected. NODE_PATH says where mysql2 is.
'use strict';
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { isDeepStrictEqual } = require('node:util');
const mysql = require('mysql2/promise');

const [host, port, user, password, schema, tls] = process.argv.slice(2);
const table = `client_node_${process.pid}`;
const text = 'Zoë 水 🐬 \'"\\';
const blob = Buffer.from(Array.from({ length: 1024 }, (_, i) => i % 256));
const moment = '2024-02-29 23:59:58.123456';
const amount = '-1234567890.123456789';

function connect(overrides = {}) {
  return mysql.createConnection({
    host, port: Number(port), user, password, database: schema, charset: 'utf8mb4', multipleStatements: true,
    dateStrings: true, supportBigNumbers: true, ssl: tls === 'on' ? { rejectUnauthorized: false } : undefined,
    infileStreamFactory: (name) => fs.createReadStream(name), ...overrides,
  });
}

async function main() {
  const c = await connect();
  const rows = async (sql, values) => (await c.query({ sql, values, rowsAsArray: true }))[0];
  const executed = async (sql, values) => (await c.execute({ sql, values, rowsAsArray: true }))[0];

  expect('text query', await rows("SELECT 1 + 1, 'a', NULL"), [[2, 'a', null]]);
  if (process.env.MYRIAD_DIRECT) { // without a proxy in between the server knows
    expect('TLS as asked', (await rows("SHOW SESSION STATUS LIKE 'Ssl_cipher'"))[0][1] !== '', tls === 'on');
  }
  expect('connected schema', await rows('SELECT DATABASE(), CURRENT_USER()'), [[schema, `${user}@%`]]);
  await c.query(`CREATE TABLE ${table} (id INT AUTO_INCREMENT PRIMARY KEY, n BIGINT, s VARCHAR(100), t DATETIME(6),
    d DECIMAL(30,9), b BLOB, u INT UNIQUE) CHARACTER SET utf8mb4`);
  expect('empty result', await rows(`SELECT * FROM ${table}`), []);

  for (const row of [[-4611686018427387, text, moment, amount, blob], [null, null, null, null, null]]) {
    const [done] = await c.execute(`INSERT INTO ${table} (n, s, t, d, b) VALUES (?, ?, ?, ?, ?)`, row);
    const select = `SELECT n, s, t, d, b FROM ${table} WHERE id = ?`;
    expect('parameters, binary', await executed(select, [done.insertId]), [row]);
    expect('parameters, text', await rows(select, [done.insertId]), [row]);
  }
  const statement = await c.prepare('SELECT ? + 1 AS a, ? AS b');
  for (let i = 0; i < 50; i++) {
    const [found] = await statement.execute([i, `s${i}`]);
    expect(null, [Number(found[0].a), found[0].b], [i + 1, `s${i}`]);
  }
  await statement.close();
  console.log('ok  one statement executed 50 times');
  // several statements open at the same time
  const open = await Promise.all([1, 2, 3, 4, 5].map((i) => c.prepare(`SELECT ${i} * ? AS x`)));
  for (const [i, s] of open.entries()) expect(null, Number((await s.execute([10]))[0][0].x), (i + 1) * 10);
  for (const s of open) await s.close();
  console.log('ok  five statements open');

  const count = `SELECT COUNT(*) FROM ${table}`;
  await c.beginTransaction();
  await c.query(`INSERT INTO ${table} (n) VALUES (100)`);
  await c.rollback();
  expect('rollback', await rows(count), [[2]]);
  await c.beginTransaction();
  await c.query(`INSERT INTO ${table} (n) VALUES (100)`);
  await c.commit();
  expect('commit', await rows(count), [[3]]);

  const numbers = 'WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 1000)';
  const big = await rows(`${numbers} SELECT i, REPEAT('x', 10240) FROM n ORDER BY i`);
  expect('10 MB result', [big.length, big.reduce((sum, r) => sum + r[1].length, 0)], [1000, 10240000]);
  const size = 17 << 20;
  expect('17 MiB value received', (await rows(`SELECT REPEAT('y', ${size})`))[0][0].length, size);
  expect('17 MiB value sent', await rows('SELECT LENGTH(?)', ['z'.repeat(size)]), [[size]]);
  expect('17 MiB parameter', await executed('SELECT LENGTH(?)', ['z'.repeat(size)]), [[size]]);

  await fails(1064, 'syntax error', () => c.query('SELEKT 1'));
  await fails(1146, 'no such table', () => c.query('SELECT * FROM no_such_table'));
  await fails(1146, 'no such table, prepared', () => c.execute('SELECT * FROM no_such_table WHERE 1 = ?', [1]));
  await c.query(`INSERT INTO ${table} (u) VALUES (1)`);
  await fails(1062, 'duplicate key', () => c.query(`INSERT INTO ${table} (u) VALUES (1)`));
  expect('several statements', await rows(`SELECT 1; SELECT 2 FROM ${table} WHERE id < 0; SELECT 3, 4`), [[[1]], [], [[3, 4]]]);
  await fails(1146, 'error in the second statement', () => c.query('SELECT 1; SELECT * FROM no_such_table; SELECT 3'));

  // pipelined: all sent before the first answer is read
  const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => rows(`SELECT ${i}`)));
  expect('20 queries in flight', answers, Array.from({ length: 20 }, (_, i) => [[i]]));

  const file = path.join(os.tmpdir(), `${table}.csv`);
  fs.writeFileSync(file, Array.from({ length: 5000 }, (_, i) => `${i},line ${i}\n`).join(''));
  try {
    await c.query(`CREATE TABLE ${table}_load (n INT, s VARCHAR(40))`);
    await c.query(`LOAD DATA LOCAL INFILE '${file}' INTO TABLE ${table}_load FIELDS TERMINATED BY ','`);
    expect('LOAD DATA LOCAL', (await rows(`SELECT COUNT(*), SUM(n) FROM ${table}_load`))[0].map(Number), [5000, 12497500]);
    await c.query(`DROP TABLE ${table}_load`);
  } finally {
    fs.unlinkSync(file);
  }

  await c.query("SET time_zone = '+05:30', @v := 42");
  expect('session and user variable', await rows('SELECT @@time_zone, @v'), [['+05:30', 42]]);
  await c.changeUser({ user: 'other', password: 'other-secret', database: 'test2' });
  expect('change user', await rows('SELECT CURRENT_USER(), DATABASE(), @v, @@time_zone'), [['other@%', 'test2', null, 'SYSTEM']]);
  await c.changeUser({ user, password, database: schema });
  await c.ping();
  await c.query(`DROP TABLE ${table}`);
  await c.end();

  await fails(1045, 'wrong password', () => connect({ password: 'wrong' }));
  await fails(1045, 'no password', () => connect({ password: '' }));
  await fails(1045, 'unknown user', () => connect({ user: 'nobody_knows' }));
  await fails([1044, 1049], 'unknown schema', () => connect({ database: 'test_no_such_schema' }));
  for (const [name, secret] of [['nopass', ''], ['other', 'other-secret'], [user, password]]) {
    const again = await connect({ user: name, password: secret });
    expect(`login as ${name}`, (await again.query({ sql: 'SELECT CURRENT_USER()', rowsAsArray: true }))[0], [[`${name}@%`]]);
    await again.end();
  }
}

function expect(what, found, wanted) {
  if (!isDeepStrictEqual(found, wanted)) {
    throw new Error(`${what}: expected ${JSON.stringify(wanted)}, got ${JSON.stringify(found)}`.slice(0, 600));
  }
  if (what) console.log('ok ', what);
}

async function fails(codes, what, action) {
  let error;
  try { await action(); } catch (e) { error = e; }
  if (!error || ![].concat(codes).includes(error.errno)) throw new Error(`${what}: expected error ${codes}, got ${error ?? 'none'}`);
  console.log('ok ', what, error.errno);
}

main().then(() => process.exit(0), (error) => { console.error('FAILED', error); process.exit(1); });
