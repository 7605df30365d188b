# Make the extension script from its template:
#
#	awk -f tools/sql.awk fav--1.0.sql.in >fav--1.0.sql
#
# The lines from "-- for {type} in A B C" to "-- end" are repeated for each of the SQL types A,
# B and C.  There {type} is the SQL type, and {suffix} is the end of the names of its C functions.

BEGIN {
	suffix["bigint"] = "int8"
	suffix["int"] = "int4"
	suffix["smallint"] = "int2"
}

/^-- for [{]type[}] in / {
	sub(/.* in /, "")
	ntypes = split($0, types, " ")
	section = ""
	next
}

/^-- end$/ {
	for (i = 1; i <= ntypes; i++) {
		copy = section
		gsub(/[{]type[}]/, types[i], copy)
		gsub(/[{]suffix[}]/, types[i] in suffix ? suffix[types[i]] : types[i], copy)
		printf "%s", copy
	}
	ntypes = 0
	next
}

ntypes { section = section $0 "\n"; next }
{ print }
