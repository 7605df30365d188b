<?php
// PHP (Debian: php-cli, php-pgsql): pg_query_params, PDO, or PDO with emulated prepares

set_error_handler(function ($level, $message) { throw new ErrorException($message); });

function natural($kind, $text, $last)
{
	switch ($kind)
	{
		case 'int':
			// beyond an integer of PHP there are only strings
			return is_int(filter_var($text, FILTER_VALIDATE_INT)) ? (int) $text : $text;
		case 'ints': case 'strs': case 'uuids':
			// PHP has no arrays for PostgreSQL: this is how people write them
			return '{' . $text . '}';
		case 'null':
			return null;
		case 'last':
			return $last;
		default:
			return $text;
	}
}

function show($value)
{
	return $value === null ? 'NULL' : (is_bool($value) ? ($value ? 't' : 'f') : (string) $value);
}

// The error of the server; what else goes wrong ends the program.
class ServerError extends Exception
{
}

// run() of both gives an array with the first value of the first row, if there is a row.
class Functions
{
	private $connection;
	private $statements = [];

	function __construct()
	{
		$this->connection = pg_connect('');
	}

	function run($mode, $sql, $parameters, $last)
	{
		$values = [];
		foreach ($parameters as [$kind, $text])
			$values[] = $kind === 'bytes' ?
				pg_escape_bytea($this->connection, hex2bin($text)) : natural($kind, $text, $last);
		if ($mode === 'prepared')
		{
			if (!isset($this->statements[$sql]))
			{
				$this->statements[$sql] = 'statement ' . count($this->statements);
				pg_send_prepare($this->connection, $this->statements[$sql], $sql);
				$this->result();
			}
			pg_send_execute($this->connection, $this->statements[$sql], $values);
		}
		else
			pg_send_query_params($this->connection, $sql, $values);
		$result = $this->result();
		return pg_num_rows($result) > 0 ? [pg_fetch_result($result, 0, 0)] : [];
	}

	private function result()
	{
		$result = pg_get_result($this->connection);
		while (pg_get_result($this->connection));
		$state = pg_result_error_field($result, PGSQL_DIAG_SQLSTATE);
		if ($state)
			throw new ServerError($state . ' ' . pg_result_error_field($result, PGSQL_DIAG_MESSAGE_PRIMARY));
		return $result;
	}
}

class Objects
{
	private $connection;
	private $statements = [];

	function __construct($is_emulated)
	{
		$this->connection = new PDO('pgsql:', null, null,
			[PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION, PDO::ATTR_EMULATE_PREPARES => $is_emulated]);
	}

	function run($mode, $sql, $parameters, $last)
	{
		try
		{
			// $1 is :p1 here
			$named = preg_replace('/\$(\d)/', ':p$1', $sql);
			$statement = $this->statements[$sql] ?? $this->connection->prepare($named);
			if ($mode === 'prepared')
				$this->statements[$sql] = $statement;
			foreach ($parameters as $i => [$kind, $text])
			{
				$value = $kind === 'bytes' ? hex2bin($text) : natural($kind, $text, $last);
				$type = $kind === 'bytes' ? PDO::PARAM_LOB :
					($value === null ? PDO::PARAM_NULL : (is_int($value) ? PDO::PARAM_INT : PDO::PARAM_STR));
				$statement->bindValue(':p' . ($i + 1), $value, $type);
			}
			$statement->execute();
			$row = $statement->columnCount() > 0 ? $statement->fetch(PDO::FETCH_NUM) : false;
			$statement->closeCursor();
			if ($row === false)
				return [];
			// bytea comes as a stream
			return [is_resource($row[0]) ? '\x' . bin2hex(stream_get_contents($row[0])) : $row[0]];
		}
		catch (PDOException $e)
		{
			if (!preg_match('/ERROR: +(.*)/', $e->errorInfo[2] ?? '', $found))
				throw $e;
			throw new ServerError($e->errorInfo[0] . ' ' . $found[1]);
		}
	}
}

$driver = $argv[1] === 'functions' ? new Functions() : new Objects($argv[1] === 'emulated');
$last = null;
while (($line = fgets(STDIN)) !== false)
{
	$parameters = explode("\t", rtrim($line, "\n"));
	$mode = array_shift($parameters);
	$sql = array_shift($parameters);
	if ($mode === 'binary')
	{
		echo "unsupported\n";
		continue;
	}
	try
	{
		$parameters = array_map(fn ($parameter) => explode(' ', $parameter, 2) + [1 => ''], $parameters);
		$row = $driver->run($mode, $sql, $parameters, $last);
		echo $row ? show($row[0]) : '-', "\n";
		$last = $row[0] ?? null;
	}
	catch (ServerError $e)
	{
		echo 'ERROR ', $e->getMessage(), "\n";
	}
}
