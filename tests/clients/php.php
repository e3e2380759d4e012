<?php
// php -d mysqli.allow_local_infile=1 php.php pdo|mysqli HOST PORT USER PASSWORD SCHEMA off|on
//
// Exercises PHP's own driver (mysqlnd) through one of its two interfaces; the last argument is TLS. Prints a line for
// each check and fails at the first one that is not as expected.
declare(strict_types=1);

[, $interface, $host, $port, $user, $password, $schema, $tls] = $argv;
ini_set('memory_limit', '512M');
define('TABLE', "client_{$interface}_" . getmypid());
const TEXT = "Zoë 水 🐬 '\"\\";
const MOMENT = '2024-02-29 23:59:58.123456';
const AMOUNT = '-1234567890.123456789';
const NUMBERS = 'WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 1000)';
$blob = str_repeat(implode('', array_map('chr', range(0, 255))), 4);
$sample = [-4611686018427387904, TEXT, MOMENT, AMOUNT, $blob];
$create = '(id INT AUTO_INCREMENT PRIMARY KEY, n BIGINT, s VARCHAR(100), t DATETIME(6), d DECIMAL(30,9), b BLOB, u INT UNIQUE) CHARACTER SET utf8mb4';
$csv = tempnam(sys_get_temp_dir(), 'client');
register_shutdown_function(fn () => @unlink($csv));
file_put_contents($csv, implode('', array_map(fn ($i) => "$i,line $i\n", range(0, 4999))));

try {
    $interface === 'pdo' ? pdo() : mysqli();
} catch (Throwable $error) {
    fwrite(STDERR, 'FAILED ' . substr((string) $error, 0, 800) . "\n");
    exit(1);
}

function pdo_connect(bool $emulate = false, array $other = []): PDO
{
    global $host, $port, $user, $password, $schema, $tls;
    $options = [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION, PDO::ATTR_EMULATE_PREPARES => $emulate,
        PDO::ATTR_STRINGIFY_FETCHES => false, PDO::MYSQL_ATTR_LOCAL_INFILE => true, PDO::MYSQL_ATTR_MULTI_STATEMENTS => true];
    if ($tls === 'on') {
        $options += [PDO::MYSQL_ATTR_SSL_CIPHER => 'DEFAULT', PDO::MYSQL_ATTR_SSL_VERIFY_SERVER_CERT => false];
    }
    $name = $other['schema'] ?? $schema;
    return new PDO("mysql:host=$host;port=$port;dbname=$name;charset=utf8mb4", $other['user'] ?? $user, $other['password'] ?? $password, $options);
}

function pdo(): void
{
    global $user, $schema, $create, $sample, $csv;
    $binary = pdo_connect();
    $binary->exec('CREATE TABLE ' . TABLE . " $create");
    foreach (['binary' => $binary, 'text' => pdo_connect(true)] as $protocol => $c) {
        $rows = fn (string $sql) => $c->query($sql)->fetchAll(PDO::FETCH_NUM);
        expect("$protocol query", $rows("SELECT 1 + 1, 'a', NULL"), [[2, 'a', null]]);
        tls_as_asked($rows);
        expect("$protocol schema and user", $rows('SELECT DATABASE(), CURRENT_USER()'), [[$schema, "$user@%"]]);
        $insert = $c->prepare('INSERT INTO ' . TABLE . ' (n, s, t, d, b) VALUES (?, ?, ?, ?, ?)');
        foreach ([$sample, [null, null, null, null, null]] as $row) {
            $insert->execute($row);
            $select = $c->prepare('SELECT n, s, t, d, b FROM ' . TABLE . ' WHERE id = ?');
            $select->execute([$c->lastInsertId()]);
            expect("$protocol parameters", $select->fetchAll(PDO::FETCH_NUM), [$row]);
        }
        $statement = $c->prepare('SELECT ? + 1, ?');
        for ($i = 0; $i < 50; $i++) {
            $statement->bindValue(1, $i, PDO::PARAM_INT);
            $statement->bindValue(2, "s$i");
            $statement->execute();
            expect(null, $statement->fetchAll(PDO::FETCH_NUM), [[$i + 1, "s$i"]]);
        }
        print("ok  $protocol statement executed 50 times\n");
        $count = 'SELECT COUNT(*) FROM ' . TABLE;
        $before = $rows($count)[0][0];
        $c->beginTransaction();
        $c->exec('INSERT INTO ' . TABLE . ' (n) VALUES (100)');
        $c->rollBack();
        expect("$protocol rollback", $rows($count), [[$before]]);
        $c->beginTransaction();
        $c->exec('INSERT INTO ' . TABLE . ' (n) VALUES (100)');
        $c->commit();
        expect("$protocol commit", $rows($count), [[$before + 1]]);
        $big = $rows(NUMBERS . " SELECT i, REPEAT('x', 10240) FROM n ORDER BY i");
        expect("$protocol 10 MB result", [count($big), array_sum(array_map(fn ($r) => strlen($r[1]), $big))], [1000, 10240000]);
        $length = $c->prepare('SELECT LENGTH(?)');
        $length->execute([str_repeat('z', 17 << 20)]);
        expect("$protocol 17 MiB parameter", $length->fetchAll(PDO::FETCH_NUM), [[17 << 20]]);
        expect("$protocol 17 MiB value", strlen($rows("SELECT REPEAT('y', 17 << 20)")[0][0]), 17 << 20);
        fails(1064, "$protocol syntax error", fn () => $c->query('SELEKT 1'));
        fails(1146, "$protocol no such table", fn () => $c->query('SELECT * FROM no_such_table'));
        $c->exec('REPLACE INTO ' . TABLE . ' (u) VALUES (1)');
        fails(1062, "$protocol duplicate key", fn () => $c->exec('INSERT INTO ' . TABLE . ' (u) VALUES (1)'));
        $c->exec("SET time_zone = '+05:30', @v = 42");
        expect("$protocol session and user variable", $rows('SELECT @@time_zone, @v'), [['+05:30', 42]]);
    }
    $several = $c->query('SELECT 1; SELECT 2 FROM ' . TABLE . ' WHERE id < 0; SELECT 3, 4');
    $found = [];
    do {
        $found[] = $several->fetchAll(PDO::FETCH_NUM);
    } while ($several->nextRowset());
    expect('several statements', $found, [[[1]], [], [[3, 4]]]);
    $c->exec('CREATE TABLE ' . TABLE . '_load (n INT, s VARCHAR(40))');
    $c->exec("LOAD DATA LOCAL INFILE '$csv' INTO TABLE " . TABLE . "_load FIELDS TERMINATED BY ','");
    expect('LOAD DATA LOCAL', array_map('intval', $rows('SELECT COUNT(*), SUM(n) FROM ' . TABLE . '_load')[0]), [5000, 12497500]);
    $c->exec('DROP TABLE ' . TABLE . ', ' . TABLE . '_load');
    $c = $binary = null;

    fails(1045, 'wrong password', fn () => pdo_connect(false, ['password' => 'wrong']));
    fails(1045, 'no password', fn () => pdo_connect(false, ['password' => '']));
    fails(1045, 'unknown user', fn () => pdo_connect(false, ['user' => 'nobody_knows']));
    fails([1044, 1049], 'unknown schema', fn () => pdo_connect(false, ['schema' => 'test_no_such_schema']));
    foreach (['nopass' => '', 'other' => 'other-secret'] as $name => $secret) {
        $again = pdo_connect(false, ['user' => $name, 'password' => $secret]);
        expect("login as $name", $again->query('SELECT CURRENT_USER()')->fetchAll(PDO::FETCH_NUM), [["$name@%"]]);
    }
}

function mysqli_login(array $other = []): mysqli
{
    global $host, $port, $user, $password, $schema, $tls;
    mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
    $c = mysqli_init();
    $c->options(MYSQLI_OPT_LOCAL_INFILE, 1);
    $c->options(MYSQLI_OPT_INT_AND_FLOAT_NATIVE, 1);
    $flags = $tls === 'on' ? MYSQLI_CLIENT_SSL | MYSQLI_CLIENT_SSL_DONT_VERIFY_SERVER_CERT : 0;
    $c->real_connect($host, $other['user'] ?? $user, $other['password'] ?? $password, $other['schema'] ?? $schema, (int) $port, null, $flags);
    $c->set_charset('utf8mb4');
    return $c;
}

function mysqli(): void
{
    global $user, $password, $schema, $create, $sample, $csv;
    $c = mysqli_login();
    $rows = fn (string $sql) => $c->query($sql)->fetch_all();
    expect('query', $rows("SELECT 1 + 1, 'a', NULL"), [[2, 'a', null]]);
    tls_as_asked($rows);
    expect('schema and user', $rows('SELECT DATABASE(), CURRENT_USER()'), [[$schema, "$user@%"]]);
    $c->query('CREATE TABLE ' . TABLE . " $create");
    $insert = $c->prepare('INSERT INTO ' . TABLE . ' (n, s, t, d, b) VALUES (?, ?, ?, ?, ?)');
    [$n, $s, $t, $d, $b] = $sample;
    $insert->bind_param('isssb', $n, $s, $t, $d, $b);
    foreach (str_split($sample[4], 100) as $piece) {
        $insert->send_long_data(4, $piece);
    }
    $insert->execute();
    $select = $c->prepare('SELECT n, s, t, d, b FROM ' . TABLE . ' WHERE id = ?');
    $select->execute([$c->insert_id]);
    expect('parameters, one as long data', $select->get_result()->fetch_all(), [$sample]);
    [$n, $s, $t, $d] = [null, null, null, null];
    $insert->execute();
    $select->execute([$c->insert_id]);
    $found = $select->get_result()->fetch_all();
    expect('NULL parameters', array_slice($found[0], 0, 4), [null, null, null, null]);
    $statement = $c->prepare('SELECT ? + 1, ?');
    for ($i = 0; $i < 50; $i++) {
        $text = "s$i";
        $statement->bind_param('is', $i, $text);
        $statement->execute();
        expect(null, $statement->get_result()->fetch_all(), [[$i + 1, $text]]);
    }
    $statement->close();
    print("ok  one statement executed 50 times\n");
    $cursor = $c->prepare(NUMBERS . ' SELECT i FROM n');
    $cursor->attr_set(MYSQLI_STMT_ATTR_CURSOR_TYPE, MYSQLI_CURSOR_TYPE_READ_ONLY);
    $cursor->execute();
    $cursor->bind_result($value);
    for ($sum = 0; $cursor->fetch();) {
        $sum += $value;
    }
    expect('read-only cursor', $sum, 500500);
    $cursor->close();

    $count = 'SELECT COUNT(*) FROM ' . TABLE;
    $c->begin_transaction();
    $c->query('INSERT INTO ' . TABLE . ' (n) VALUES (100)');
    $c->rollback();
    expect('rollback', $rows($count), [[2]]);
    $c->begin_transaction();
    $c->query('INSERT INTO ' . TABLE . ' (n) VALUES (100)');
    $c->commit();
    expect('commit', $rows($count), [[3]]);
    $unbuffered = $c->query(NUMBERS . " SELECT i, REPEAT('x', 10240) FROM n ORDER BY i", MYSQLI_USE_RESULT);
    for ($bytes = 0; $row = $unbuffered->fetch_row();) {
        $bytes += strlen($row[1]);
    }
    expect('10 MB result, unbuffered', $bytes, 10240000);
    fails(1064, 'syntax error', fn () => $c->query('SELEKT 1'));
    fails(1146, 'no such table, prepared', fn () => $c->prepare('SELECT * FROM no_such_table WHERE 1 = ?'));
    $c->query('INSERT INTO ' . TABLE . ' (u) VALUES (1)');
    fails(1062, 'duplicate key', fn () => $c->query('INSERT INTO ' . TABLE . ' (u) VALUES (1)'));
    $c->multi_query('SELECT 1; SELECT 2 FROM ' . TABLE . ' WHERE id < 0; SELECT 3, 4');
    $found = [];
    do {
        $found[] = $c->store_result()->fetch_all();
    } while ($c->more_results() && $c->next_result());
    expect('several statements', $found, [[[1]], [], [[3, 4]]]);
    $c->query('CREATE TABLE ' . TABLE . '_load (n INT, s VARCHAR(40))');
    $c->query("LOAD DATA LOCAL INFILE '$csv' INTO TABLE " . TABLE . "_load FIELDS TERMINATED BY ','");
    expect('LOAD DATA LOCAL', array_map('intval', $rows('SELECT COUNT(*), SUM(n) FROM ' . TABLE . '_load')[0]), [5000, 12497500]);
    $c->query("SELECT CAST('x' AS SIGNED)");
    expect('warning', $c->get_warnings()->errno, 1292);
    $c->query("SET time_zone = '+05:30', @v = 42");
    expect('session and user variable', $rows('SELECT @@time_zone, @v'), [['+05:30', 42]]);
    $c->change_user('other', 'other-secret', 'test2');
    expect('change user', $rows('SELECT CURRENT_USER(), DATABASE(), @v, @@time_zone'), [['other@%', 'test2', null, 'SYSTEM']]);
    fails(1045, 'change user with a wrong password', fn () => $c->change_user($user, 'wrong', $schema));
    $c = mysqli_login();
    $c->select_db('test2');
    expect('select schema', $c->query('SELECT DATABASE()')->fetch_all(), [['test2']]);
    expect('statistics', str_starts_with($c->stat(), 'Uptime'), true);
    $c->query("DROP TABLE $schema." . TABLE . ", $schema." . TABLE . '_load');
    $c->close();

    fails(1045, 'wrong password', fn () => mysqli_login(['password' => 'wrong']));
    fails(1045, 'no password', fn () => mysqli_login(['password' => '']));
    fails(1045, 'unknown user', fn () => mysqli_login(['user' => 'nobody_knows']));
    fails([1044, 1049], 'unknown schema', fn () => mysqli_login(['schema' => 'test_no_such_schema']));
    foreach (['nopass' => '', 'other' => 'other-secret', $user => $password] as $name => $secret) {
        $again = mysqli_login(['user' => $name, 'password' => $secret]);
        expect("login as $name", $again->query('SELECT CURRENT_USER()')->fetch_all(), [["$name@%"]]);
    }
}

// Without a proxy in between (MYRIAD_DIRECT is set) the server knows.
function tls_as_asked(callable $rows): void
{
    global $tls;
    if (getenv('MYRIAD_DIRECT')) {
        expect('TLS as asked', $rows("SHOW SESSION STATUS LIKE 'Ssl_cipher'")[0][1] !== '', $tls === 'on');
    }
}

function expect(?string $what, mixed $found, mixed $wanted): void
{
    if ($found !== $wanted) {
        throw new Exception(substr("$what: expected " . var_export($wanted, true) . ', got ' . var_export($found, true), 0, 600));
    }
    if ($what !== null) {
        print("ok  $what\n");
    }
}

function fails(int|array $codes, string $what, callable $action): void
{
    try {
        $action();
    } catch (PDOException $error) {
        $code = $error->errorInfo[1] ?? $error->getCode();
    } catch (mysqli_sql_exception $error) {
        $code = $error->getCode();
    }
    if (!in_array($code ?? 0, (array) $codes, true)) {
        throw new Exception("$what: expected error " . implode(' or ', (array) $codes) . ', got ' . ($error ?? 'none'));
    }
    print("ok  $what $code\n");
}
