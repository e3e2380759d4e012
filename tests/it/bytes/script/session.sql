# Transactions.
START TRANSACTION
INSERT INTO child VALUES (50, NULL)
SELECT * FROM child ORDER BY id
SAVEPOINT s
INSERT INTO child VALUES (51, NULL)
ROLLBACK TO SAVEPOINT s
RELEASE SAVEPOINT s
ROLLBACK
SELECT COUNT(*) FROM child
BEGIN
SELECT COUNT(*) FROM child
COMMIT
START TRANSACTION READ ONLY
INSERT INTO child VALUES (52, NULL)
COMMIT AND CHAIN
COMMIT
START TRANSACTION WITH CONSISTENT SNAPSHOT
COMMIT
BEGIN
BEGIN
UPDATE t SET n = 99 WHERE id = 2
ROLLBACK AND NO CHAIN
SET autocommit = 0
SELECT 1
SELECT COUNT(*) FROM child
INSERT INTO child VALUES (60, NULL)
COMMIT
DELETE FROM child WHERE id = 60
ROLLBACK
SET autocommit = 1
SELECT COUNT(*) FROM child
SET TRANSACTION ISOLATION LEVEL READ COMMITTED
START TRANSACTION
SELECT @@transaction_isolation
SELECT COUNT(*) FROM child
COMMIT
SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ ONLY
INSERT INTO child VALUES (61, NULL)
SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ WRITE
BEGIN
CREATE TABLE implicit_commit (id INT)
ROLLBACK
DROP TABLE implicit_commit
LOCK TABLES t READ, child WRITE
SELECT COUNT(*) FROM t
INSERT INTO t (v) VALUES ('locked')
SELECT * FROM numbers
INSERT INTO child VALUES (70, NULL)
UNLOCK TABLES
# Variables.
SET sql_mode = ''
SELECT @@sql_mode
INSERT INTO t (v, n) VALUES ('x', 'not a number')
SHOW WARNINGS
SELECT 1 / 0
SET sql_mode = 'ANSI_QUOTES,STRICT_ALL_TABLES'
SELECT "id" FROM t ORDER BY "id" LIMIT 1
SET sql_mode = DEFAULT
SET SESSION sql_mode = CONCAT(@@sql_mode, ',NO_BACKSLASH_ESCAPES')
SELECT 'a\'
SET sql_mode = DEFAULT
SET time_zone = '+02:00', timestamp = 1700000000
SELECT NOW(), UTC_TIMESTAMP(), @@time_zone
SELECT CURRENT_TIMESTAMP(6), UNIX_TIMESTAMP()
SET timestamp = DEFAULT
SET @old = @@time_zone
SET time_zone = '+05:00'
SET time_zone = @old
SELECT @@time_zone
SET time_zone = DEFAULT
SET SESSION max_join_size = 1000000, sql_safe_updates = 1
UPDATE t SET n = 1
DELETE FROM t
SET sql_safe_updates = 0, max_join_size = DEFAULT
SET @a = 1, @b := 'text', @c = NULL, @d = 1.5, @e = x'00ff', @f = _latin1'é'
SELECT @a, @b, @c, @d, @e, @f
SELECT @a := @a + 1, @a
SET @@session.sort_buffer_size = 300000
SELECT @@sort_buffer_size
SET sort_buffer_size = 1
SHOW WARNINGS
SET sql_select_limit = 1
SELECT id FROM t ORDER BY id
SET sql_select_limit = DEFAULT
SET group_concat_max_len = 10
SELECT GROUP_CONCAT(v ORDER BY id) FROM t
SHOW WARNINGS
SET group_concat_max_len = DEFAULT
SET last_insert_id = 77
SELECT LAST_INSERT_ID()
SET insert_id = 5000
INSERT INTO t (v) VALUES ('with an id')
SELECT LAST_INSERT_ID()
SET STATEMENT max_statement_time = 5 FOR SELECT 1
SELECT /*+ SET_VAR(sort_buffer_size = 400000) */ 1
SELECT @@max_allowed_packet, @@net_buffer_length, @@autocommit, @@tx_isolation
# Character sets.
SET NAMES latin1
SELECT 'é', CHARSET('é'), COLLATION('é'), b FROM strings WHERE id = 1
SELECT @@character_set_client, @@character_set_connection, @@character_set_results, @@collation_connection
SET NAMES 'utf8mb4' COLLATE 'utf8mb4_unicode_ci'
SELECT 'é', COLLATION('é')
SELECT @@collation_connection
SET CHARACTER SET latin1
SELECT @@character_set_connection, @@collation_connection
SET character_set_results = NULL
SELECT b, o FROM strings WHERE id = 1
SET character_set_results = binary
SELECT b, o FROM strings WHERE id = 1
SET NAMES DEFAULT
SET NAMES utf8mb4
SET collation_connection = utf8mb4_bin
SELECT 'a' = 'A', COLLATION('a')
SET NAMES utf8mb4
# Schemas.
USE test2
SELECT DATABASE()
SELECT 1 FROM strings
USE test
SELECT DATABASE()
USE {schema}
SELECT DATABASE()
# Temporary tables, text prepare, locks, handlers.
CREATE TEMPORARY TABLE tmp (id INT)
INSERT INTO tmp VALUES (1), (2)
SELECT * FROM tmp
CREATE OR REPLACE TEMPORARY TABLE tmp (id INT, b INT)
DROP TEMPORARY TABLE IF EXISTS tmp
DROP TEMPORARY TABLE IF EXISTS tmp
PREPARE p FROM 'SELECT ? + 1 AS x, ?'
SET @x = 41, @y = 'y'
EXECUTE p USING @x, @y
EXECUTE p USING @x
EXECUTE p
DEALLOCATE PREPARE p
EXECUTE p USING @x, @y
EXECUTE IMMEDIATE 'SELECT 5'
SELECT GET_LOCK('{schema}', 0), IS_FREE_LOCK('{schema}')
SELECT RELEASE_LOCK('{schema}')
SELECT RELEASE_ALL_LOCKS()
XA START '{schema}'
SELECT 1
XA END '{schema}'
XA ROLLBACK '{schema}'
SET ROLE NONE
BEGIN NOT ATOMIC SELECT 1; SELECT 2; END
