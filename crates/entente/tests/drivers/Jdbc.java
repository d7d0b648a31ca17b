// JDBC: statements and batches, transactions with savepoints, calls, metadata.
import java.math.BigDecimal;
import java.sql.BatchUpdateException;
import java.sql.CallableStatement;
import java.sql.Connection;
import java.sql.Date;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.sql.Types;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

public class Jdbc {
    static void same(Object found, Object expected) {
        if (!expected.equals(found)) {
            throw new AssertionError("expected " + expected + ", found " + found);
        }
    }

    static List<String> column(ResultSet rows, String... names) throws SQLException {
        List<String> found = new ArrayList<>();
        while (rows.next()) {
            StringBuilder row = new StringBuilder();
            for (String name : names) {
                row.append(row.isEmpty() ? "" : " ").append(rows.getString(name));
            }
            found.add(row.toString());
        }
        return found;
    }

    static void fails(String state, Statement statement, String sql) throws SQLException {
        try {
            statement.execute(sql);
        } catch (SQLException error) {
            same(error.getSQLState(), state);
            return;
        }
        throw new AssertionError(sql);
    }

    // What a function has opened is a result set: the driver says FETCH and CLOSE, and takes the rows in parts where it is told to.
    static void cursors(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute("CREATE TABLE cursor_item (id integer PRIMARY KEY, name text)");
            statement.execute("INSERT INTO cursor_item SELECT n, 'item ' || n FROM generate_series(1, 25) AS n");
            statement.execute("CREATE FUNCTION cursor_items(most integer) RETURNS refcursor LANGUAGE plpgsql AS $$"
                + " DECLARE c refcursor; BEGIN OPEN c FOR SELECT * FROM cursor_item WHERE id <= most ORDER BY id; RETURN c; END $$");
            statement.execute("CREATE FUNCTION cursor_both() RETURNS SETOF refcursor LANGUAGE plpgsql AS $$"
                + " BEGIN RETURN NEXT cursor_items(1); RETURN NEXT cursor_items(2); END $$");
        }
        connection.setAutoCommit(false);
        for (int size : new int[] {0, 10}) {
            for (int time = 0; time < 7; time++) {
                try (CallableStatement call = connection.prepareCall("{? = call cursor_items(?)}")) {
                    call.registerOutParameter(1, Types.REF_CURSOR);
                    call.setInt(2, 25);
                    call.setFetchSize(size);
                    call.execute();
                    try (ResultSet rows = call.getObject(1, ResultSet.class)) {
                        same(rows.getMetaData().getColumnLabel(2), "name");
                        rows.setFetchSize(size);
                        same(column(rows, "id").size(), 25);
                    }
                }
                connection.commit();
            }
        }
        try (Statement statement = connection.createStatement(); ResultSet cursors = statement.executeQuery("SELECT * FROM cursor_both()")) {
            for (int rows = 1; cursors.next(); rows++) {
                same(column((ResultSet) cursors.getObject(1), "name").size(), rows);
            }
        }
        try (Statement statement = connection.createStatement()) {
            same(column(statement.executeQuery("SELECT cursor_items(3) AS c"), "c").size(), 1);
            connection.commit();
            fails("34000", statement, "FETCH ALL IN \"<unnamed portal 1>\"");
        }
        connection.rollback();
        connection.setAutoCommit(true);
    }

    // The driver asks whose columns these are by the numbers that describe the result, and finds the table's key.
    static void updatable(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_UPDATABLE)) {
            statement.execute("CREATE TABLE jdbc_updatable (id integer PRIMARY KEY, name varchar(20), price numeric(10, 2), at timestamp(3))");
            statement.executeUpdate("INSERT INTO jdbc_updatable VALUES (1, 'one', 1.5), (2, 'two', 2.5), (3, 'three', 3.5)");
            ResultSet rows = statement.executeQuery("SELECT id, name AS called, price, at, price * 2 FROM jdbc_updatable ORDER BY id");
            ResultSetMetaData about = rows.getMetaData();
            same(about.getTableName(1), "jdbc_updatable");
            same(about.getColumnLabel(2), "called");
            same(((org.postgresql.PGResultSetMetaData) about).getBaseColumnName(2), "name");
            same(((org.postgresql.PGResultSetMetaData) about).getBaseSchemaName(2), "public");
            same(about.getPrecision(2), 20);
            same(about.getPrecision(3) * 10 + about.getScale(3), 102);
            same(about.getScale(4), 3);
            same(about.isNullable(1), ResultSetMetaData.columnNoNulls);
            same(about.getTableName(5), "");
            rows = statement.executeQuery("SELECT id, name, price FROM jdbc_updatable ORDER BY id");
            same(rows.next(), true);
            rows.updateString("name", "first");
            rows.updateRow();
            same(rows.getString("name"), "first");
            same(rows.next(), true);
            rows.deleteRow();
            rows.moveToInsertRow();
            rows.updateInt("id", 4);
            rows.updateString("name", "four");
            rows.updateBigDecimal("price", new BigDecimal("4.50"));
            rows.insertRow();
            same(column(statement.executeQuery("SELECT id, name FROM jdbc_updatable ORDER BY id"), "id", "name"),
                List.of("1 first", "3 three", "4 four"));
            rows = statement.executeQuery("SELECT id, name FROM jdbc_updatable WHERE id = 3");
            same(rows.next(), true);
            try (Statement other = connection.createStatement()) {
                other.executeUpdate("UPDATE jdbc_updatable SET name = 'third' WHERE id = 3");
            }
            rows.refreshRow();
            same(rows.getString("name"), "third");
        }
    }

    static void readOnly(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            connection.setReadOnly(true);
            connection.setAutoCommit(false);
            fails("25006", statement, "DELETE FROM jdbc_updatable");
            connection.rollback();
            same(column(statement.executeQuery("SELECT count(*) AS n FROM jdbc_updatable"), "n"), List.of("3"));
            connection.commit();
            connection.setAutoCommit(true);
            connection.setReadOnly(false);
            statement.execute("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY");
            same(connection.isReadOnly(), false);
            fails("25006", statement, "DROP TABLE jdbc_updatable");
            statement.execute("SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE");
            statement.execute("DROP TABLE jdbc_updatable");
        }
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, String> environment = System.getenv();
        String url = "jdbc:postgresql://" + environment.get("PGHOST") + ":" + environment.get("PGPORT") + "/"
            + environment.get("PGDATABASE") + "?user=" + environment.get("PGUSER");
        try (Connection connection = DriverManager.getConnection(url); Statement statement = connection.createStatement()) {
            statement.execute("CREATE TABLE jdbc_member (id bigint PRIMARY KEY, name varchar(40) NOT NULL UNIQUE)");
            statement.execute("CREATE TABLE jdbc_item (member bigint REFERENCES jdbc_member, number integer, price numeric(12, 2),"
                + " sold boolean, made date, PRIMARY KEY (member, number))");
            statement.execute("CREATE INDEX jdbc_item_price ON jdbc_item (price)");
            same(statement.executeUpdate("INSERT INTO jdbc_member VALUES (1, 'Ada'), (2, 'Bob')"), 2);

            // Often enough that the driver prepares on the server and goes over to the binary format.
            try (PreparedStatement insert = connection.prepareStatement("INSERT INTO jdbc_item VALUES (?, ?, ?, ?, ?)")) {
                for (int number = 1; number <= 20; number++) {
                    insert.setLong(1, 1);
                    insert.setInt(2, number);
                    insert.setBigDecimal(3, new BigDecimal("0.25").multiply(BigDecimal.valueOf(number)));
                    insert.setBoolean(4, number % 2 == 0);
                    insert.setDate(5, number == 1 ? null : Date.valueOf("2026-02-28"));
                    insert.addBatch();
                }
                same(insert.executeBatch().length, 20);
            }
            try (PreparedStatement query = connection.prepareStatement(
                    "SELECT number, price, sold, made FROM jdbc_item WHERE member = ? AND number = ?")) {
                for (int number = 1; number <= 12; number++) {
                    query.setLong(1, 1);
                    query.setInt(2, number);
                    try (ResultSet rows = query.executeQuery()) {
                        same(rows.next(), true);
                        same(rows.getInt("number"), number);
                        same(rows.getBigDecimal("price"), new BigDecimal("0.25").multiply(BigDecimal.valueOf(number)));
                        same(rows.getBoolean("sold"), number % 2 == 0);
                        same(String.valueOf(rows.getDate("made")), number == 1 ? "null" : "2026-02-28");
                    }
                }
                ResultSetMetaData about = query.getMetaData();
                same(about.getColumnTypeName(2), "numeric");
                same(about.getColumnType(4), Types.DATE);
            }

            // A batch happens as a whole or not at all.
            try (PreparedStatement insert = connection.prepareStatement("INSERT INTO jdbc_member VALUES (?, ?)")) {
                for (int number : new int[] { 50, 51, 50, 52 }) {
                    insert.setLong(1, number);
                    insert.setString(2, "member " + number);
                    insert.addBatch();
                }
                try {
                    insert.executeBatch();
                    throw new AssertionError("a key twice");
                } catch (BatchUpdateException error) {
                    same(error.getSQLState(), "23505");
                }
            }
            try (ResultSet rows = statement.executeQuery("SELECT count(*) FROM jdbc_member WHERE id >= 50")) {
                same(rows.next(), true);
                same(rows.getInt(1), 0);
            }

            connection.setAutoCommit(false);
            statement.executeUpdate("DELETE FROM jdbc_item WHERE number > 10");
            Savepoint savepoint = connection.setSavepoint("before");
            fails("23505", statement, "INSERT INTO jdbc_member VALUES (3, 'Ada')");
            connection.rollback(savepoint);
            statement.executeUpdate("INSERT INTO jdbc_member VALUES (3, 'Cy')");
            connection.commit();
            statement.executeUpdate("DELETE FROM jdbc_item");
            connection.rollback();
            connection.setAutoCommit(true);
            same(column(statement.executeQuery("SELECT count(*) AS n FROM jdbc_item"), "n"), List.of("10"));
            same(column(statement.executeQuery("SELECT name FROM jdbc_member ORDER BY id"), "name"), List.of("Ada", "Bob", "Cy"));

            statement.execute("CREATE PROCEDURE jdbc_add(amount integer, INOUT total integer) LANGUAGE plpgsql AS"
                + " $$ BEGIN total := total + amount; END $$");
            try (CallableStatement call = connection.prepareCall("CALL jdbc_add(?, ?)")) {
                call.setInt(1, 2);
                call.setInt(2, 40);
                call.registerOutParameter(2, Types.INTEGER);
                call.execute();
                same(call.getInt(2), 42);
            }
            statement.execute("CREATE FUNCTION call_halves(n integer, OUT half integer, OUT rest integer) LANGUAGE plpgsql"
                + " AS $$ BEGIN half := n / 2; rest := n % 2; END $$");
            try (CallableStatement call = connection.prepareCall("{call call_halves(?, ?, ?)}")) {
                call.setInt(1, 85);
                call.registerOutParameter(2, Types.INTEGER);
                call.registerOutParameter(3, Types.INTEGER);
                call.execute();
                same(call.getInt(2) * 10 + call.getInt(3), 421);
            }
            statement.execute("CREATE FUNCTION call_doubled(n integer) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN RETURN 2 * n; END $$");
            try (CallableStatement call = connection.prepareCall("{? = call call_doubled(?)}")) {
                call.registerOutParameter(1, Types.INTEGER);
                call.setInt(2, 21);
                call.execute();
                same(call.getInt(1), 42);
            }
            cursors(connection);
            fails("42P01", statement, "SELECT * FROM jdbc_nothing");
            fails("23503", statement, "INSERT INTO jdbc_item VALUES (99, 1)");

            DatabaseMetaData about = connection.getMetaData();
            same(about.getDatabaseProductName(), "PostgreSQL");
            same(column(about.getTables(null, "public", "jdbc\\_%", new String[] {"TABLE"}), "TABLE_NAME"),
                List.of("jdbc_item", "jdbc_member"));
            same(column(about.getColumns(null, "public", "jdbc_item", "%"), "COLUMN_NAME", "TYPE_NAME", "IS_NULLABLE"),
                List.of("member int8 NO", "number int4 NO", "price numeric YES", "sold bool YES", "made date YES"));
            same(column(about.getProcedures(null, "public", "jdbc%"), "PROCEDURE_NAME"), List.of("jdbc_add"));
            same(column(about.getSchemas(null, "public"), "TABLE_SCHEM"), List.of("public"));
            statement.execute("CREATE VIEW jdbc_view AS SELECT id FROM jdbc_member");
            statement.execute("CREATE SEQUENCE jdbc_numbers");
            statement.execute("CREATE FUNCTION jdbc_twice(amount integer) RETURNS integer LANGUAGE sql AS 'SELECT 2 * $1'");
            statement.execute("CREATE TABLE jdbc_numbered (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, tags text[])");
            same(column(about.getTables(null, "public", "jdbc\\_%", new String[] {"VIEW", "SEQUENCE"}), "TABLE_NAME", "TABLE_TYPE"),
                List.of("jdbc_numbered_id_seq SEQUENCE", "jdbc_numbers SEQUENCE", "jdbc_view VIEW"));
            same(column(about.getColumns(null, "public", "jdbc_numbered", "%"), "COLUMN_NAME", "TYPE_NAME", "IS_AUTOINCREMENT",
                    "DATA_TYPE", "ORDINAL_POSITION"),
                List.of("id int8 YES -5 1", "tags _text NO 2003 2"));
            same(column(about.getPrimaryKeys(null, "public", "jdbc_item"), "COLUMN_NAME", "KEY_SEQ", "PK_NAME"),
                List.of("member 1 jdbc_item_pkey", "number 2 jdbc_item_pkey"));
            List<String> keys = List.of("jdbc_member id jdbc_item member 1 3 3 jdbc_item_member_fkey jdbc_member_pkey");
            String[] names = {"PKTABLE_NAME", "PKCOLUMN_NAME", "FKTABLE_NAME", "FKCOLUMN_NAME", "KEY_SEQ", "UPDATE_RULE",
                "DELETE_RULE", "FK_NAME", "PK_NAME"};
            same(column(about.getImportedKeys(null, "public", "jdbc_item"), names), keys);
            same(column(about.getExportedKeys(null, "public", "jdbc_member"), names), keys);
            same(column(about.getCrossReference(null, "public", "jdbc_member", null, "public", "jdbc_item"), names), keys);
            same(column(about.getIndexInfo(null, "public", "jdbc_item", false, true), "INDEX_NAME", "NON_UNIQUE", "ORDINAL_POSITION",
                    "COLUMN_NAME", "ASC_OR_DESC", "TYPE"),
                List.of("jdbc_item_pkey f 1 member A 3", "jdbc_item_pkey f 2 number A 3", "jdbc_item_price t 1 price A 3"));
            same(column(about.getIndexInfo(null, "public", "jdbc_member", true, true), "INDEX_NAME", "COLUMN_NAME"),
                List.of("jdbc_member_name_key name", "jdbc_member_pkey id"));
            same(column(about.getBestRowIdentifier(null, "public", "jdbc_item", DatabaseMetaData.bestRowSession, true), "COLUMN_NAME"),
                List.of("member", "number"));
            same(column(about.getFunctions(null, "public", "jdbc%"), "FUNCTION_NAME"), List.of("jdbc_twice"));
            same(column(about.getFunctionColumns(null, "public", "jdbc_twice", "%"), "COLUMN_NAME", "COLUMN_TYPE", "TYPE_NAME"),
                List.of("returnValue 4 int4", "amount 1 int4"));
            same(column(about.getProcedureColumns(null, "public", "jdbc_add", "%"), "COLUMN_NAME", "COLUMN_TYPE", "TYPE_NAME"),
                List.of("amount 1 int4", "total 2 int4"));
            same(column(about.getTypeInfo(), "TYPE_NAME").containsAll(List.of("int4", "int8", "text", "numeric", "bool", "timestamptz")), true);
            same(column(about.getSchemas(), "TABLE_SCHEM").containsAll(List.of("information_schema", "pg_catalog", "public")), true);
            same(column(about.getCatalogs(), "TABLE_CAT").contains(connection.getCatalog()), true);
            same(column(about.getTableTypes(), "TABLE_TYPE").contains("TABLE"), true);
            column(about.getTablePrivileges(null, "public", "jdbc_item"), "PRIVILEGE");
            column(about.getColumnPrivileges(null, "public", "jdbc_item", "%"), "PRIVILEGE");
            column(about.getVersionColumns(null, "public", "jdbc_item"), "COLUMN_NAME");
            column(about.getUDTs(null, "public", "%", null), "TYPE_NAME");
            same(about.getSQLKeywords().contains("analyse"), true);
            same(about.getMaxColumnNameLength(), 63);
            ResultSetMetaData columns = statement.executeQuery("SELECT * FROM jdbc_numbered").getMetaData();
            same(columns.getColumnTypeName(2), "_text");
            statement.execute("DROP TABLE jdbc_numbered");
            statement.execute("DROP FUNCTION jdbc_twice");
            statement.execute("DROP SEQUENCE jdbc_numbers");
            statement.execute("DROP VIEW jdbc_view");

            updatable(connection);
            readOnly(connection);
            statement.execute("DROP PROCEDURE jdbc_add");
            statement.execute("DROP TABLE jdbc_item");
            statement.execute("DROP TABLE jdbc_member");
        }
        System.out.println("jdbc: ok");
    }
}
