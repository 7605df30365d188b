# Labels at the ends of the lines of a chart.
#
#   awk -v section=S -v ids=I -v names='a;b;c' -v gap=G [-v per_size=1] -f labels.awk bench.tsv
#
# prints, for each contender, the last size, the value there, and the name.  Values of neighbouring
# labels are moved apart, by at least the factor `gap`.

BEGIN {
	FS = OFS = "\t"
	n = split(names, wanted, ";")
	for (i = 1; i <= n; i++)
		is_wanted[wanted[i]] = 1
}

$1 == section && $2 == ids && ($4 in is_wanted) {
	if ($5 != "\\N" && $3 + 0 >= size[$4] + 0) {
		size[$4] = $3
		value[$4] = per_size ? $5 / $3 : $5
	}
}

END {
	# by size, and then by value
	for (name in size) {
		for (i = ++count; i > 1 && after(order[i - 1], name); i--)
			order[i] = order[i - 1]
		order[i] = name
	}
	for (i = 1; i <= count; i++)
		at[i] = value[order[i]]
	for (round = 0; round < 200; round++)
		for (i = 2; i <= count; i++)
			if (size[order[i]] == size[order[i - 1]] && at[i] < at[i - 1] * gap * 0.999) {
				middle = sqrt(at[i] * at[i - 1])
				at[i - 1] = middle / sqrt(gap)
				at[i] = middle * sqrt(gap)
			}
	for (i = 1; i <= count; i++)
		print size[order[i]], at[i], order[i]
}

function after(a, b) { return size[a] + 0 > size[b] + 0 || (size[a] == size[b] && value[a] > value[b]) }
