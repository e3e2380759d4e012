#!/usr/bin/env python3
"""python.py DRIVER HOST PORT USER PASSWORD SCHEMA off|on

Exercises one Python driver (pymysql, connector-pure, connector-c, mysqlclient) against a server; the last argument is
TLS. Prints a line for each check and fails at the first one that is not as expected.
"""
import sys

if sys.argv[1] == "connector-c":
    # Its wheel brings a newer OpenSSL than Debian 12 has; that must be loaded before anything loads the system's.
    import _mysql_connector  # noqa: F401

import datetime
import decimal
import os
import tempfile

DRIVER, HOST, PORT, USER, PASSWORD, SCHEMA, TLS = sys.argv[1:8]
TABLE = f"client_{DRIVER.replace('-', '_')}_{os.getpid()}"
TEXT = "Zoë 水 🐬 '\"\\"
BLOB = bytes(range(256)) * 4
MOMENT = datetime.datetime(2024, 2, 29, 23, 59, 58, 123456)
AMOUNT = decimal.Decimal("-1234567890.123456789")
NUMBERS = "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 1000)"


class PyMySQL:
    """Pure Python, text protocol only."""

    def __init__(self):
        import pymysql

        self.module = pymysql

    def connect(self, user=USER, password=PASSWORD, schema=SCHEMA):
        from pymysql.constants import CLIENT

        return self.module.connect(
            host=HOST, port=int(PORT), user=user, password=password, database=schema, charset="utf8mb4",
            client_flag=CLIENT.MULTI_STATEMENTS, local_infile=True, max_allowed_packet=64 << 20,
            ssl={"check_hostname": False, "verify_mode": "none"} if TLS == "on" else None,
            ssl_disabled=TLS == "off",
        )

    def prepared(self, connection):
        return connection.cursor()

    def results(self, connection, statements):
        with connection.cursor() as cursor:
            cursor.execute(statements)
            found = [cursor.fetchall()]
            while cursor.nextset():
                found.append(cursor.fetchall())
        return found

    change_user = None
    reset = None


class Connector:
    """Oracle's driver, pure or with its C extension; real prepared statements in both."""

    def __init__(self, pure):
        import mysql.connector

        self.module, self.pure = mysql.connector, pure

    def connect(self, user=USER, password=PASSWORD, schema=SCHEMA):
        return self.module.connect(
            host=HOST, port=int(PORT), user=user, password=password, database=schema, use_pure=self.pure,
            ssl_disabled=TLS == "off", allow_local_infile=True, charset="utf8mb4", autocommit=False,
        )

    def prepared(self, connection):
        return connection.cursor(prepared=True)

    def results(self, connection, statements):
        found = []
        with connection.cursor() as cursor:
            cursor.execute(statements)
            for _, result in cursor.fetchsets():
                found.append(tuple(result))
        return found

    def change_user(self, connection, user, password, schema):
        connection.cmd_change_user(user, password, schema)

    def reset(self, connection):
        connection.cmd_reset_connection()


class MysqlClient:
    """The binding of the C client library (here MariaDB's), text protocol only."""

    def __init__(self):
        import MySQLdb

        self.module = MySQLdb

    def connect(self, user=USER, password=PASSWORD, schema=SCHEMA):
        return self.module.connect(
            host=HOST, port=int(PORT), user=user, password=password, database=schema, charset="utf8mb4",
            local_infile=1, ssl_mode="REQUIRED" if TLS == "on" else "DISABLED",
        )

    def prepared(self, connection):
        return connection.cursor()

    def results(self, connection, statements):
        cursor = connection.cursor()
        cursor.execute(statements)
        found = [cursor.fetchall()]
        while cursor.nextset():
            found.append(cursor.fetchall())
        cursor.close()
        return found

    def change_user(self, connection, user, password, schema):
        connection.change_user(user, password, schema)

    reset = None


def main():
    driver = {
        "pymysql": PyMySQL,
        "connector-pure": lambda: Connector(True),
        "connector-c": lambda: Connector(False),
        "mysqlclient": MysqlClient,
    }[DRIVER]()
    connection = driver.connect()
    run = Checks(driver, connection)
    run.tls()
    run.text()
    run.parameters()
    run.transactions()
    run.big_result()
    run.long_value()
    run.errors()
    run.several_results()
    run.load_data()
    run.session_variables()
    run.reset()
    run.change_user()
    connection.close()
    run.other_logins()
    run.tidy()


class Checks:
    def __init__(self, driver, connection):
        self.driver, self.connection = driver, connection
        self.execute(f"CREATE TABLE {TABLE} (id INT AUTO_INCREMENT PRIMARY KEY, n BIGINT, s VARCHAR(100),"
                     " t DATETIME(6), d DECIMAL(30,9), b BLOB, u INT UNIQUE) CHARACTER SET utf8mb4")

    def execute(self, statement, parameters=None, prepared=False):
        cursor = self.driver.prepared(self.connection) if prepared else self.connection.cursor()
        try:
            cursor.execute(statement, parameters) if parameters is not None else cursor.execute(statement)
            return [tuple(row) for row in cursor.fetchall()] if cursor.description else None
        finally:
            cursor.close()

    def tls(self):
        cipher = self.execute("SHOW SESSION STATUS LIKE 'Ssl_cipher'")
        if os.environ.get("MYRIAD_DIRECT"):  # behind a proxy this tells about the proxy's own connection
            expect("TLS as asked", bool(cipher[0][1]), TLS == "on")

    def text(self):
        expect("text query", self.execute("SELECT 1 + 1, 'a', NULL"), [(2, "a", None)])
        expect("empty result", self.execute(f"SELECT * FROM {TABLE}"), [])
        expect("connected schema", self.execute("SELECT DATABASE()"), [(SCHEMA,)])
        expect("who", self.execute("SELECT CURRENT_USER()"), [(f"{USER}@%",)])

    def parameters(self):
        insert = f"INSERT INTO {TABLE} (n, s, t, d, b) VALUES (%s, %s, %s, %s, %s)"
        for row in [(-(2 ** 62), TEXT, MOMENT, AMOUNT, BLOB), (None, None, None, None, None), (7, "", MOMENT, AMOUNT, b"")]:
            self.execute(insert, row, prepared=True)
            found = self.execute(f"SELECT n, s, t, d, b FROM {TABLE} WHERE id = LAST_INSERT_ID() AND 1 = %s", (1,), prepared=True)
            expect(f"parameters {row[0]}", [tuple(bytes(v) if isinstance(v, bytearray) else v for v in r) for r in found], [row])
        cursor = self.driver.prepared(self.connection)
        for number in range(50):
            cursor.execute("SELECT %s + 1, %s", (number, str(number)))
            expect(None, [tuple(row) for row in cursor.fetchall()], [(number + 1, str(number))])
        cursor.close()
        print("ok  one statement executed 50 times")
        self.connection.commit()

    def transactions(self):
        count = f"SELECT COUNT(*) FROM {TABLE}"
        before = self.execute(count)[0][0]
        self.connection.commit()
        self.execute(f"INSERT INTO {TABLE} (n) VALUES (100)")
        self.connection.rollback()
        expect("rollback", self.execute(count), [(before,)])
        self.execute(f"INSERT INTO {TABLE} (n) VALUES (100)")
        self.connection.commit()
        expect("commit", self.execute(count), [(before + 1,)])
        self.connection.commit()

    def big_result(self):
        rows = self.execute(f"{NUMBERS} SELECT i, REPEAT('x', 10240) FROM n ORDER BY i")
        expect("10 MB result", (len(rows), sum(len(row[1]) for row in rows), rows[-1][0]), (1000, 10240000, 1000))

    def long_value(self):
        size = 17 << 20  # over the 16 MiB of one packet, in both directions
        expect("17 MiB value received", len(self.execute(f"SELECT REPEAT('y', {size})")[0][0]), size)
        expect("17 MiB value sent", self.execute("SELECT LENGTH(%s)", ("z" * size,)), [(size,)])
        expect("17 MiB parameter", self.execute("SELECT LENGTH(%s)", ("z" * size,), prepared=True), [(size,)])

    def errors(self):
        fails(1064, "syntax error", lambda: self.execute("SELEKT 1"))
        fails(1146, "no such table", lambda: self.execute("SELECT * FROM no_such_table"))
        self.execute(f"INSERT INTO {TABLE} (u) VALUES (1)")
        fails(1062, "duplicate key", lambda: self.execute(f"INSERT INTO {TABLE} (u) VALUES (1)"))
        fails(1146, "no such table, prepared", lambda: self.execute("SELECT * FROM no_such_table WHERE 1 = %s", (1,), prepared=True))
        self.connection.rollback()
        expect("usable after errors", self.execute("SELECT 'yes'"), [("yes",)])

    def several_results(self):
        found = self.driver.results(self.connection, f"SELECT 1; SELECT 2 FROM {TABLE} WHERE id < 0; SELECT 3, 4")
        expect("several statements", [tuple(rows) for rows in found], [((1,),), (), ((3, 4),)])

    def load_data(self):
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
            for number in range(5000):
                file.write(f"{number},line {number}\n")
            file.flush()
            self.execute(f"CREATE TABLE {TABLE}_load (n INT, s VARCHAR(40))")
            self.execute(f"LOAD DATA LOCAL INFILE '{file.name}' INTO TABLE {TABLE}_load FIELDS TERMINATED BY ','")
        self.connection.commit()
        expect("LOAD DATA LOCAL", self.execute(f"SELECT COUNT(*), SUM(n) FROM {TABLE}_load"), [(5000, 12497500)])
        self.execute(f"DROP TABLE {TABLE}_load")

    def session_variables(self):
        self.execute("SET time_zone = '+05:30', sql_mode = ''")
        expect("session variables", self.execute("SELECT @@time_zone, @@sql_mode"), [("+05:30", "")])
        self.execute("SET @v := 42")
        expect("user variable", self.execute("SELECT @v"), [(42,)])

    def reset(self):
        if self.driver.reset is None:
            return print("--  COM_RESET_CONNECTION: not in this driver")
        self.driver.reset(self.connection)
        expect("reset", self.execute("SELECT @v, @@time_zone"), [(None, "SYSTEM")])

    def change_user(self):
        if self.driver.change_user is None:
            return print("--  COM_CHANGE_USER: not in this driver")
        self.execute("SET @v := 43")
        self.driver.change_user(self.connection, "other", "other-secret", "test2")
        expect("change user", self.execute("SELECT CURRENT_USER(), DATABASE(), @v"), [("other@%", "test2", None)])
        self.driver.change_user(self.connection, USER, PASSWORD, SCHEMA)
        expect("change user back", self.execute("SELECT CURRENT_USER(), DATABASE()"), [(f"{USER}@%", SCHEMA)])

    def other_logins(self):
        denied = (1045,)
        if DRIVER.startswith("connector") and TLS == "off":
            denied += (-1, 2061)  # this driver refuses to send a password that the server does not know yet without TLS
        fails(denied, "wrong password", lambda: self.driver.connect(password="wrong"))
        fails(denied, "no password", lambda: self.driver.connect(password=""))
        fails(denied, "unknown user", lambda: self.driver.connect(user="nobody_knows"))
        fails((1044, 1049), "unknown schema", lambda: self.driver.connect(schema="test_no_such_schema"))
        for user, password in [("nopass", ""), ("other", "other-secret"), (USER, PASSWORD)]:
            self.connection = self.driver.connect(user=user, password=password)
            expect(f"login as {user}", self.execute("SELECT CURRENT_USER()"), [(f"{user}@%",)])
            if user != USER:
                self.connection.close()

    def tidy(self):
        self.execute(f"DROP TABLE {TABLE}")
        self.connection.close()


def expect(what, found, wanted):
    if found != wanted:
        sys.exit(f"FAILED {what}: expected {wanted!r:.300}, got {found!r:.300}")
    if what:
        print("ok ", what)


def fails(codes, what, action):
    codes = codes if isinstance(codes, tuple) else (codes,)
    try:
        action()
    except Exception as error:
        code = getattr(error, "errno", None) or (error.args[0] if error.args else None)
        if code not in codes:
            sys.exit(f"FAILED {what}: expected error {codes}, got {error!r}")
        print("ok ", what, code)
    else:
        sys.exit(f"FAILED {what}: expected error {codes}, got none")


main()
