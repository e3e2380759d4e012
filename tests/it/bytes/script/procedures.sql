# CALL: several results, none, errors half way, OUT parameters.
CREATE PROCEDURE none() BEGIN END
CREATE PROCEDURE one() SELECT id, v FROM t ORDER BY id LIMIT 2
CREATE PROCEDURE many() BEGIN SELECT 1 AS a; SELECT 2 AS b, 'x' AS c; UPDATE t SET n = n + 1 WHERE id = 2; SELECT * FROM t WHERE FALSE; END
CREATE PROCEDURE fails() BEGIN SELECT 1 AS a; SELECT * FROM nowhere; SELECT 2; END
CREATE PROCEDURE warns() BEGIN SELECT CAST('x' AS SIGNED) AS a; INSERT IGNORE INTO t (id, v) VALUES (2, 'again'); END
CREATE PROCEDURE outs(INOUT a INT, OUT b VARCHAR(20), IN c INT) BEGIN SET a = a + c; SET b = 'out'; SELECT a, b; END
CREATE PROCEDURE only_outs(OUT b VARCHAR(20)) SET b = NULL
CREATE PROCEDURE opens() BEGIN START TRANSACTION; INSERT INTO child VALUES (900, NULL); SELECT COUNT(*) FROM child; END
CREATE PROCEDURE sets() BEGIN SET sql_mode = 'ANSI'; SET @from_procedure = 5; CREATE TEMPORARY TABLE from_procedure (id INT); END
CREATE PROCEDURE handles(n BIGINT) BEGIN DECLARE CONTINUE HANDLER FOR SQLSTATE '22003' SHOW ERRORS; SELECT n, ROUND(n, -2); SELECT 'behind'; END
CALL none()
CALL one()
CALL many()
SELECT ROW_COUNT()
CALL fails()
SHOW WARNINGS
CALL handles(1234)
CALL handles(-9223372036854775807)
CALL warns()
SHOW WARNINGS
SET @a = 1
CALL outs(@a, @b, 5)
SELECT @a, @b
CALL outs(1, 2, 3)
CALL outs(@a)
CALL opens()
SELECT COUNT(*) FROM child
ROLLBACK
CALL sets()
SELECT @@sql_mode, @from_procedure
SELECT * FROM from_procedure
DROP TEMPORARY TABLE from_procedure
CREATE PROCEDURE recursive(n INT) BEGIN IF n > 0 THEN SELECT n; CALL recursive(n - 1); END IF; END
SET max_sp_recursion_depth = 5
CALL recursive(3)
SET max_sp_recursion_depth = 0
CALL recursive(3)
