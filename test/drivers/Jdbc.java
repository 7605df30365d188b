// JDBC (Debian: libpostgresql-jdbc-java)

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.sql.Array;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.postgresql.util.PGobject;
import org.postgresql.util.PSQLException;

public class Jdbc
{
	static final Pattern PARAMETER = Pattern.compile("\\$(\\d)");

	public static void main(String[] arguments) throws Exception
	{
		// is everything there?
		if (arguments.length > 0 && DriverManager.getDriver("jdbc:postgresql:") != null)
			return;

		PrintStream out = new PrintStream(System.out, false, "UTF-8");
		BufferedReader in = new BufferedReader(
			new InputStreamReader(System.in, StandardCharsets.UTF_8));
		Map<String, String> env = System.getenv();
		String url = "jdbc:postgresql://" + env.get("PGHOST") + ":" + env.get("PGPORT") + "/" +
			env.get("PGDATABASE") + "?prepareThreshold=1";
		Map<String, PreparedStatement> statements = new HashMap<>();
		Object last = null;

		try (Connection connection = DriverManager.getConnection(url, env.get("PGUSER"),
			env.get("PGPASSWORD")))
		{
			for (String line = in.readLine(); line != null; line = in.readLine())
			{
				String[] part = line.split("\t", -1);
				if (part[0].equals("binary"))
				{
					out.println("unsupported");
					continue;
				}
				PreparedStatement statement = statements.get(part[1]);
				if (statement == null)
				{
					statement = connection.prepareStatement(PARAMETER.matcher(part[1]).replaceAll("?"));
					statements.put(part[1], statement);
				}
				try
				{
					// a parameter that stands twice is given twice
					Matcher matcher = PARAMETER.matcher(part[1]);
					for (int i = 1; matcher.find(); i++)
						bind(connection, statement, i, part[1 + Integer.parseInt(matcher.group(1))], last);
					if (statement.execute())
					{
						ResultSet result = statement.getResultSet();
						last = result.next() ? result.getObject(1) : "-";
						out.println(show(last));
					}
					else
						out.println("-");
				}
				catch (PSQLException e)
				{
					if (e.getServerErrorMessage() == null)
						throw e;
					out.println("ERROR " + e.getSQLState() + " " +
						e.getServerErrorMessage().getMessage());
				}
				if (!part[0].equals("prepared"))
					statements.remove(part[1]).close();
			}
		}
		out.flush();
	}

	static void bind(Connection connection, PreparedStatement statement, int i, String parameter,
		Object last) throws SQLException
	{
		int space = parameter.indexOf(' ');
		String kind = space < 0 ? parameter : parameter.substring(0, space);
		String text = space < 0 ? "" : parameter.substring(space + 1);
		List<String> list = Arrays.asList(text.split(","));

		switch (kind)
		{
			case "int":
				BigDecimal number = new BigDecimal(text);
				if (number.toBigInteger().bitLength() < 64)
					statement.setLong(i, number.longValueExact());
				else
					statement.setBigDecimal(i, number);
				break;
			case "str":
				statement.setString(i, text);
				break;
			case "uuid":
				statement.setObject(i, UUID.fromString(text));
				break;
			case "bytes":
				byte[] bytes = new byte[text.length() / 2];
				for (int b = 0; b < bytes.length; b++)
					bytes[b] = (byte) Integer.parseInt(text.substring(2 * b, 2 * b + 2), 16);
				statement.setBytes(i, bytes);
				break;
			case "ints":
				statement.setArray(i, connection.createArrayOf("bigint",
					list.stream().map(Long::valueOf).toArray()));
				break;
			case "strs":
				statement.setArray(i, connection.createArrayOf("text", list.toArray()));
				break;
			case "uuids":
				statement.setArray(i, connection.createArrayOf("uuid",
					list.stream().map(UUID::fromString).toArray()));
				break;
			case "null":
				statement.setObject(i, null);
				break;
			case "last":
				statement.setObject(i, last);
				break;
			default:
				throw new IllegalArgumentException(kind);
		}
	}

	static String show(Object value) throws SQLException
	{
		if (value == null)
			return "NULL";
		if (value instanceof Boolean)
			return (Boolean) value ? "t" : "f";
		if (value instanceof PGobject)
			return ((PGobject) value).getValue();
		if (value instanceof byte[])
		{
			StringBuilder hex = new StringBuilder("\\x");
			for (byte b : (byte[]) value)
				hex.append(String.format("%02x", b));
			return hex.toString();
		}
		if (value instanceof Array)
		{
			List<String> shown = new ArrayList<>();
			for (Object element : (Object[]) ((Array) value).getArray())
				shown.add(show(element));
			return shown.stream().collect(Collectors.joining(",", "{", "}"));
		}
		return value.toString();
	}
}
