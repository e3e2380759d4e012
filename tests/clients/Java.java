import java.io.ByteArrayInputStream;
import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Timestamp;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;

/**
 * Exercises MariaDB Connector/J against a server.
 *
 * <pre>java -cp /usr/share/java/mariadb-java-client.jar Java.java HOST PORT USER PASSWORD SCHEMA off|on</pre>
 *
 * The last argument is TLS. Prints a line for each check and fails at the first one that is not as expected.
 */
public class Java {
    static String host, port, user, password, schema, tls;
    static final String TEXT = "Zoë 水 🐬 '\"\\";
    static final BigDecimal AMOUNT = new BigDecimal("-1234567890.123456789");
    static final Timestamp MOMENT = Timestamp.valueOf("2024-02-29 23:59:58.123456");
    static final String NUMBERS = "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 1000)";
    static final String TABLE = "client_java_" + ProcessHandle.current().pid();

    public static void main(String[] arguments) throws Exception {
        host = arguments[0];
        port = arguments[1];
        user = arguments[2];
        password = arguments[3];
        schema = arguments[4];
        tls = arguments[5];
        try {
            for (boolean binary : new boolean[] {true, false}) {
                try (Connection c = connect(user, password, schema, binary)) {
                    String protocol = binary ? "binary" : "text";
                    basics(c, protocol);
                    parameters(c, protocol);
                    transactions(c, protocol);
                    sizes(c, protocol);
                    errors(c, protocol);
                    batches(c, protocol);
                    run(c, "DROP TABLE " + TABLE);
                }
            }
            try (Connection c = connect(user, password, schema, true)) {
                severalResults(c);
                loadData(c);
                fetchedInParts(c);
                session(c);
            }
            logins();
        } catch (Exception | AssertionError error) {
            System.err.println("FAILED " + error);
            error.printStackTrace();
            System.exit(1);
        }
    }

    static Connection connect(String user, String password, String schema, boolean binary) throws SQLException {
        Properties properties = new Properties();
        properties.put("user", user);
        properties.put("password", password);
        properties.put("useServerPrepStmts", String.valueOf(binary));
        properties.put("allowMultiQueries", "true");
        properties.put("allowLocalInfile", "true");
        properties.put("allowPublicKeyRetrieval", "true");
        properties.put("useSsl", String.valueOf(tls.equals("on")));
        properties.put("trustServerCertificate", "true");
        return DriverManager.getConnection("jdbc:mariadb://" + host + ":" + port + "/" + schema, properties);
    }

    static void basics(Connection c, String protocol) throws SQLException {
        expect(protocol + " query", rows(c, "SELECT 1 + 1, 'a', NULL"), "[[2, a, null]]");
        expect(protocol + " schema and user", rows(c, "SELECT DATABASE(), CURRENT_USER()"), "[[" + schema + ", " + user + "@%]]");
        if (System.getenv("MYRIAD_DIRECT") != null) { // without a proxy in between the server knows
            boolean encrypted = !rows(c, "SHOW SESSION STATUS LIKE 'Ssl_cipher'").equals("[[Ssl_cipher, ]]");
            expect("TLS as asked", encrypted, tls.equals("on"));
        }
        run(c, "CREATE TABLE " + TABLE + " (id INT AUTO_INCREMENT PRIMARY KEY, n BIGINT, s VARCHAR(100), t DATETIME(6),"
            + " d DECIMAL(30,9), b BLOB, u INT UNIQUE) CHARACTER SET utf8mb4");
        expect(protocol + " empty result", rows(c, "SELECT * FROM " + TABLE), "[]");
    }

    static void parameters(Connection c, String protocol) throws SQLException {
        byte[] blob = new byte[1024];
        for (int i = 0; i < blob.length; i++) blob[i] = (byte) i;
        String insert = "INSERT INTO " + TABLE + " (n, s, t, d, b) VALUES (?, ?, ?, ?, ?)";
        try (PreparedStatement p = c.prepareStatement(insert, Statement.RETURN_GENERATED_KEYS);
             PreparedStatement q = c.prepareStatement("SELECT n, s, t, d, b FROM " + TABLE + " WHERE id = ?")) {
            p.setLong(1, -(1L << 62));
            p.setString(2, TEXT);
            p.setTimestamp(3, MOMENT);
            p.setBigDecimal(4, AMOUNT);
            p.setBinaryStream(5, new ByteArrayInputStream(blob));
            p.executeUpdate();
            ResultSet key = p.getGeneratedKeys();
            key.next();
            q.setLong(1, key.getLong(1));
            ResultSet r = q.executeQuery();
            expect(protocol + " one row", r.next(), true);
            expect(protocol + " parameters", Arrays.asList(r.getLong(1), r.getString(2), r.getTimestamp(3), r.getBigDecimal(4)),
                Arrays.asList(-(1L << 62), TEXT, MOMENT, AMOUNT));
            expect(protocol + " blob parameter", Arrays.equals(r.getBytes(5), blob), true);
            for (int i = 1; i <= 5; i++) p.setObject(i, null);
            p.executeUpdate();
            expect(protocol + " NULL parameters", rows(c, "SELECT n, s, t, d, b FROM " + TABLE + " WHERE n IS NULL"),
                "[[null, null, null, null, null]]");
        }
        try (PreparedStatement p = c.prepareStatement("SELECT ? + 1, ?")) {
            for (int i = 0; i < 50; i++) {
                p.setInt(1, i);
                p.setString(2, "s" + i);
                ResultSet r = p.executeQuery();
                r.next();
                expect(null, r.getInt(1) + r.getString(2), (i + 1) + "s" + i);
            }
        }
        System.out.println("ok  " + protocol + " statement executed 50 times");
    }

    static void transactions(Connection c, String protocol) throws SQLException {
        String count = "SELECT COUNT(*) FROM " + TABLE;
        c.setAutoCommit(false);
        run(c, "INSERT INTO " + TABLE + " (n) VALUES (100)");
        c.rollback();
        expect(protocol + " rollback", rows(c, count), "[[2]]");
        run(c, "INSERT INTO " + TABLE + " (n) VALUES (100)");
        c.commit();
        c.setAutoCommit(true);
        expect(protocol + " commit", rows(c, count), "[[3]]");
    }

    static void sizes(Connection c, String protocol) throws SQLException {
        try (Statement s = c.createStatement(); ResultSet r = s.executeQuery(NUMBERS + " SELECT i, REPEAT('x', 10240) FROM n ORDER BY i")) {
            int total = 0;
            while (r.next()) total += r.getString(2).length();
            expect(protocol + " 10 MB result", total, 10240000);
        }
        int size = 17 << 20;
        try (PreparedStatement p = c.prepareStatement("SELECT LENGTH(?)")) {
            p.setString(1, "z".repeat(size));
            ResultSet r = p.executeQuery();
            r.next();
            expect(protocol + " 17 MiB parameter", r.getInt(1), size);
        }
        try (Statement s = c.createStatement(); ResultSet r = s.executeQuery("SELECT REPEAT('y', 17 << 20)")) {
            r.next();
            expect(protocol + " 17 MiB value received", r.getString(1).length(), size);
        }
    }

    static void errors(Connection c, String protocol) throws SQLException {
        fails(protocol + " syntax error", () -> run(c, "SELEKT 1"), 1064);
        fails(protocol + " no such table", () -> c.prepareStatement("SELECT * FROM no_such_table").executeQuery(), 1146);
        run(c, "INSERT INTO " + TABLE + " (u) VALUES (1)");
        fails(protocol + " duplicate key", () -> run(c, "INSERT INTO " + TABLE + " (u) VALUES (1)"), 1062);
        expect(protocol + " usable after errors", rows(c, "SELECT 'yes'"), "[[yes]]");
    }

    static void batches(Connection c, String protocol) throws SQLException {
        try (PreparedStatement p = c.prepareStatement("INSERT INTO " + TABLE + " (n, s) VALUES (?, ?)")) {
            for (int i = 0; i < 500; i++) {
                p.setInt(1, 1000 + i);
                p.setString(2, "batch");
                p.addBatch();
            }
            p.executeBatch();
        }
        expect(protocol + " batch of 500", rows(c, "SELECT COUNT(*), MAX(n) FROM " + TABLE + " WHERE s = 'batch'"), "[[500, 1499]]");
    }

    static void severalResults(Connection c) throws SQLException {
        List<String> found = new ArrayList<>();
        try (Statement s = c.createStatement()) {
            boolean more = s.execute("SELECT 1; SELECT 2 FROM DUAL WHERE 1 = 0; DO 1; SELECT 3");
            while (more || s.getUpdateCount() != -1) {
                found.add(more ? collect(s.getResultSet()) : "done");
                more = s.getMoreResults();
            }
        }
        expect("several statements", found.toString(), "[[[1]], [], done, [[3]]]");
    }

    static void loadData(Connection c) throws Exception {
        StringBuilder lines = new StringBuilder();
        for (int i = 0; i < 5000; i++) lines.append(i).append(",line ").append(i).append('\n');
        java.nio.file.Path file = java.nio.file.Files.createTempFile("client", ".csv");
        try {
            java.nio.file.Files.writeString(file, lines);
            run(c, "CREATE TABLE " + TABLE + "_load (n INT, s VARCHAR(40))");
            run(c, "LOAD DATA LOCAL INFILE '" + file + "' INTO TABLE " + TABLE + "_load FIELDS TERMINATED BY ','");
            expect("LOAD DATA LOCAL", rows(c, "SELECT COUNT(*), SUM(n) FROM " + TABLE + "_load"), "[[5000, 12497500]]");
            run(c, "DROP TABLE " + TABLE + "_load");
        } finally {
            java.nio.file.Files.delete(file);
        }
    }

    static void fetchedInParts(Connection c) throws SQLException {
        try (PreparedStatement p = c.prepareStatement(NUMBERS + " SELECT i FROM n")) {
            p.setFetchSize(10);
            ResultSet r = p.executeQuery();
            int sum = 0;
            while (r.next()) sum += r.getInt(1);
            expect("fetched 10 rows at a time", sum, 500500);
        }
    }

    static void session(Connection c) throws SQLException {
        run(c, "SET @v = 42, time_zone = '+05:30'");
        expect("session and user variable", rows(c, "SELECT @v, @@time_zone"), "[[42, +05:30]]");
        c.setCatalog("test2");
        expect("change schema", rows(c, "SELECT DATABASE()"), "[[test2]]");
        c.setCatalog(schema);
        expect("ping", c.isValid(5), true);
    }

    static void logins() throws SQLException {
        fails("wrong password", () -> connect(user, "wrong", schema, true), 1045);
        fails("no password", () -> connect(user, "", schema, true), 1045);
        fails("unknown user", () -> connect("nobody_knows", password, schema, true), 1045);
        fails("unknown schema", () -> connect(user, password, "test_no_such_schema", true), 1044, 1049);
        for (String[] login : new String[][] {{"nopass", ""}, {"other", "other-secret"}, {user, password}}) {
            try (Connection c = connect(login[0], login[1], schema, true)) {
                expect("login as " + login[0], rows(c, "SELECT CURRENT_USER()"), "[[" + login[0] + "@%]]");
            }
        }
    }

    interface Action {
        void run() throws SQLException;
    }

    static void fails(String what, Action action, Integer... codes) {
        try {
            action.run();
        } catch (SQLException error) {
            if (Arrays.asList(codes).contains(error.getErrorCode())) {
                System.out.println("ok  " + what + " " + error.getErrorCode());
                return;
            }
            throw new AssertionError(what + ": expected error " + Arrays.toString(codes) + ", got " + error.getErrorCode(), error);
        }
        throw new AssertionError(what + ": expected error " + Arrays.toString(codes) + ", got none");
    }

    static void expect(String what, Object found, Object wanted) {
        if (!found.equals(wanted)) throw new AssertionError(what + ": expected " + wanted + ", got " + found);
        if (what != null) System.out.println("ok  " + what);
    }

    static void run(Connection c, String sql) throws SQLException {
        try (Statement s = c.createStatement()) {
            s.execute(sql);
        }
    }

    static String rows(Connection c, String sql) throws SQLException {
        try (Statement s = c.createStatement(); ResultSet r = s.executeQuery(sql)) {
            return collect(r);
        }
    }

    static String collect(ResultSet r) throws SQLException {
        List<List<String>> found = new ArrayList<>();
        while (r.next()) {
            List<String> row = new ArrayList<>();
            for (int i = 1; i <= r.getMetaData().getColumnCount(); i++) row.add(r.getString(i));
            found.add(row);
        }
        return found.toString();
    }
}
