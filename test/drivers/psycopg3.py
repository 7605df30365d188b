# psycopg 3 (Debian: python3-psycopg)

import re
import sys
import uuid

import psycopg

NATURAL = {
    "int": int,
    "str": str,
    "uuid": uuid.UUID,
    "bytes": bytes.fromhex,
    "ints": lambda text: [int(part) for part in text.split(",")],
    "strs": lambda text: text.split(","),
    "uuids": lambda text: [uuid.UUID(part) for part in text.split(",")],
    "null": lambda text: None,
}


def show(value):
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, (bytes, memoryview)):
        return "\\x" + bytes(value).hex()
    if isinstance(value, list):
        return "{" + ",".join(show(part) for part in value) + "}"
    return str(value)


def main():
    last = None
    with psycopg.connect(autocommit=True) as connection:
        for line in sys.stdin:
            mode, sql, *parameters = line.rstrip("\n").split("\t")
            values = {}
            for number, parameter in enumerate(parameters, 1):
                kind, _, text = parameter.partition(" ")
                values[f"p{number}"] = last if kind == "last" else NATURAL[kind](text)
            # psycopg makes $1 of %(p1)s, wherever it stands
            sql = re.sub(r"\$(\d)", r"%(p\1)s", sql)
            try:
                with connection.cursor(binary=mode == "binary") as cursor:
                    cursor.execute(sql, values, prepare=mode == "prepared")
                    last = cursor.fetchone()[0] if cursor.description else ...
                print("-" if last is ... else show(last))
            except psycopg.Error as error:
                if error.sqlstate is None:
                    raise
                print("ERROR", error.sqlstate, error.diag.message_primary)


main()
