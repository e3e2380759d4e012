// Exercises go-sql-driver/mysql, through database/sql, against a server.
//
//	GO111MODULE=off GOPATH=/usr/share/gocode go run go.go HOST PORT USER PASSWORD SCHEMA off|on
//
// The last argument is TLS. Prints a line for each check and fails at the first one that is not as expected.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

const (
	text    = "Zoë 水 🐬 '\"\\"
	amount  = "-1234567890.123456789"
	numbers = "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 1000)"
)

var (
	host, port, user, password, schema, tls string

	table  = fmt.Sprintf("client_go_%d", os.Getpid())
	moment = time.Date(2024, 2, 29, 23, 59, 58, 123456000, time.UTC)
)

func main() {
	host, port, user, password, schema, tls = os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5], os.Args[6]
	for _, interpolate := range []bool{false, true} {
		db := open(user, password, schema, interpolate)
		checkBasics(db)
		checkParameters(db)
		checkTransactions(db)
		checkSizes(db)
		checkErrors(db)
		must(db.Exec("DROP TABLE " + table))
		db.Close()
	}
	db := open(user, password, schema, false)
	checkSeveralResults(db)
	checkLoadData(db)
	checkSession(db)
	checkCancelled(db)
	db.Close()
	checkLogins()
}

// One connection only, so that what belongs to a session stays together.
func open(user, password, schema string, interpolate bool) *sql.DB {
	secure := map[string]string{"on": "skip-verify", "off": "false"}[tls]
	db, err := sql.Open("mysql", fmt.Sprintf(
		"%s:%s@tcp(%s:%s)/%s?charset=utf8mb4&parseTime=true&multiStatements=true&maxAllowedPacket=0&interpolateParams=%v&tls=%s",
		user, password, host, port, schema, interpolate, secure))
	check(err)
	db.SetMaxOpenConns(1)
	return db
}

func checkBasics(db *sql.DB) {
	check(db.Ping())
	expect("text query", rows(db, "SELECT 1 + 1, 'a', NULL"), [][]string{{"2", "a", "NULL"}})
	expect("schema and user", rows(db, "SELECT DATABASE(), CURRENT_USER()"), [][]string{{schema, user + "@%"}})
	if os.Getenv("MYRIAD_DIRECT") != "" { // without a proxy in between the server knows
		expect("TLS as asked", rows(db, "SHOW SESSION STATUS LIKE 'Ssl_cipher'")[0][1] != "", tls == "on")
	}
	must(db.Exec("CREATE TABLE " + table + ` (id INT AUTO_INCREMENT PRIMARY KEY, n BIGINT, s VARCHAR(100), t DATETIME(6),
		d DECIMAL(30,9), b BLOB, f DOUBLE, u INT UNIQUE) CHARACTER SET utf8mb4`))
	expect("empty result", rows(db, "SELECT * FROM "+table), [][]string(nil))
}

func checkParameters(db *sql.DB) {
	blob := []byte(strings.Repeat("\x00\x01\xfe\xff'\\", 200))
	done := must(db.Exec("INSERT INTO "+table+" (n, s, t, d, b, f) VALUES (?, ?, ?, ?, ?, ?)",
		int64(-1)<<62, text, moment, amount, blob, 0.125))
	id, err := done.LastInsertId()
	check(err)
	var (
		n    int64
		s, d string
		t    time.Time
		b    []byte
		f    float64
	)
	check(db.QueryRow("SELECT n, s, t, d, b, f FROM "+table+" WHERE id = ?", id).Scan(&n, &s, &t, &d, &b, &f))
	expect("parameters", []interface{}{n, s, t, d, b, f}, []interface{}{int64(-1) << 62, text, moment, amount, blob, 0.125})
	must(db.Exec("INSERT INTO "+table+" (n, s, t, d, b, f) VALUES (?, ?, ?, ?, ?, ?)", nil, nil, nil, nil, nil, nil))
	expect("NULL parameters", rows(db, "SELECT n, s, t, d, b, f FROM "+table+" WHERE n IS NULL AND 1 = ?", 1),
		[][]string{{"NULL", "NULL", "NULL", "NULL", "NULL", "NULL"}})
	statement, err := db.Prepare("SELECT ? + 1, ?")
	check(err)
	for i := 0; i < 50; i++ {
		var number int
		var word string
		check(statement.QueryRow(i, fmt.Sprint("s", i)).Scan(&number, &word))
		expect("", []interface{}{number, word}, []interface{}{i + 1, fmt.Sprint("s", i)})
	}
	check(statement.Close())
	fmt.Println("ok  one statement executed 50 times")
}

func checkTransactions(db *sql.DB) {
	count := "SELECT COUNT(*) FROM " + table
	for _, commit := range []bool{false, true} {
		transaction, err := db.BeginTx(context.Background(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
		check(err)
		must(transaction.Exec("INSERT INTO "+table+" (n) VALUES (?)", 100))
		if commit {
			check(transaction.Commit())
			expect("commit", rows(db, count), [][]string{{"3"}})
		} else {
			check(transaction.Rollback())
			expect("rollback", rows(db, count), [][]string{{"2"}})
		}
	}
}

func checkSizes(db *sql.DB) {
	result, err := db.Query(numbers + " SELECT i, REPEAT('x', 10240) FROM n ORDER BY i")
	check(err)
	total := 0
	for result.Next() {
		var i int
		var s string
		check(result.Scan(&i, &s))
		total += len(s)
	}
	check(result.Err())
	expect("10 MB result", total, 10240000)
	size := 17 << 20
	var got int
	check(db.QueryRow("SELECT LENGTH(?)", strings.Repeat("z", size)).Scan(&got))
	expect("17 MiB parameter", got, size)
	var long string
	check(db.QueryRow("SELECT REPEAT('y', ?)", size).Scan(&long))
	expect("17 MiB value received", len(long), size)
}

func checkErrors(db *sql.DB) {
	fails("syntax error", exec(db, "SELEKT 1"), 1064)
	fails("no such table", exec(db, "SELECT * FROM no_such_table WHERE 1 = ?", 1), 1146)
	must(db.Exec("INSERT INTO "+table+" (u) VALUES (?)", 1))
	fails("duplicate key", exec(db, "INSERT INTO "+table+" (u) VALUES (?)", 1), 1062)
	expect("usable after errors", rows(db, "SELECT 'yes'"), [][]string{{"yes"}})
}

func checkSeveralResults(db *sql.DB) {
	result, err := db.Query("SELECT 1; SELECT 2 FROM DUAL WHERE 1 = 0; SELECT 3")
	check(err)
	var found []int
	sets := 1
	for {
		for result.Next() {
			var value int
			check(result.Scan(&value))
			found = append(found, value)
		}
		if !result.NextResultSet() {
			break
		}
		sets++
	}
	check(result.Err())
	expect("several statements", []interface{}{sets, found}, []interface{}{3, []int{1, 3}})
}

func checkLoadData(db *sql.DB) {
	var lines strings.Builder
	for i := 0; i < 5000; i++ {
		fmt.Fprintf(&lines, "%d,line %d\n", i, i)
	}
	mysql.RegisterReaderHandler("lines", func() io.Reader { return strings.NewReader(lines.String()) })
	must(db.Exec("CREATE TABLE " + table + "_load (n INT, s VARCHAR(40))"))
	must(db.Exec("LOAD DATA LOCAL INFILE 'Reader::lines' INTO TABLE " + table + "_load FIELDS TERMINATED BY ','"))
	expect("LOAD DATA LOCAL", rows(db, "SELECT COUNT(*), SUM(n) FROM "+table+"_load"), [][]string{{"5000", "12497500"}})
	must(db.Exec("DROP TABLE " + table + "_load"))
}

func checkSession(db *sql.DB) {
	must(db.Exec("SET time_zone = '+05:30', @v = 42"))
	expect("session and user variable", rows(db, "SELECT @@time_zone, @v"), [][]string{{"+05:30", "42"}})
}

// A cancelled context closes the connection in the middle of a statement; the next one works on a new connection.
func checkCancelled(db *sql.DB) {
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	var value int
	err := db.QueryRowContext(ctx, "SELECT SLEEP(20)").Scan(&value)
	expect("cancelled", errors.Is(err, context.DeadlineExceeded), true)
	expect("usable after a cancelled statement", rows(db, "SELECT 'yes'"), [][]string{{"yes"}})
}

func checkLogins() {
	fails("wrong password", open(user, "wrong", schema, false).Ping(), 1045)
	fails("no password", open(user, "", schema, false).Ping(), 1045)
	fails("unknown user", open("nobody_knows", password, schema, false).Ping(), 1045)
	fails("unknown schema", open(user, password, "test_no_such_schema", false).Ping(), 1044, 1049)
	for _, login := range [][]string{{"nopass", ""}, {"other", "other-secret"}, {user, password}} {
		db := open(login[0], login[1], schema, false)
		expect("login as "+login[0], rows(db, "SELECT CURRENT_USER()"), [][]string{{login[0] + "@%"}})
		db.Close()
	}
}

func exec(db *sql.DB, statement string, arguments ...interface{}) error {
	_, err := db.Exec(statement, arguments...)
	return err
}

func rows(db *sql.DB, statement string, arguments ...interface{}) (found [][]string) {
	result, err := db.Query(statement, arguments...)
	check(err)
	defer result.Close()
	columns, err := result.Columns()
	check(err)
	for result.Next() {
		values, pointers, row := make([]sql.NullString, len(columns)), make([]interface{}, len(columns)), []string{}
		for i := range values {
			pointers[i] = &values[i]
		}
		check(result.Scan(pointers...))
		for _, value := range values {
			if !value.Valid {
				value.String = "NULL"
			}
			row = append(row, value.String)
		}
		found = append(found, row)
	}
	check(result.Err())
	return found
}

func must(result sql.Result, err error) sql.Result {
	check(err)
	return result
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "FAILED", err)
		panic(err)
	}
}

func expect(what string, found, wanted interface{}) {
	if !reflect.DeepEqual(found, wanted) {
		fmt.Fprintf(os.Stderr, "FAILED %s: expected %.300v, got %.300v\n", what, wanted, found)
		os.Exit(1)
	}
	if what != "" {
		fmt.Println("ok ", what)
	}
}

func fails(what string, err error, codes ...uint16) {
	var refused *mysql.MySQLError
	if errors.As(err, &refused) {
		for _, code := range codes {
			if refused.Number == code {
				fmt.Println("ok ", what, code)
				return
			}
		}
	}
	fmt.Fprintf(os.Stderr, "FAILED %s: expected error %v, got %v\n", what, codes, err)
	os.Exit(1)
}
