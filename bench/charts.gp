# The charts of the benchmark: gnuplot -e "medians='medians.tsv'" charts.gp
# writes bench-*.svg into the current folder.

set terminal svg size 820,470 font "Helvetica,13" background "#ffffff" rounded
set datafile separator "\t"
set border 3 lc rgb "#888888"
set tics nomirror out scale 0.5 textcolor rgb "#333333"
set grid ytics lc rgb "#e4e4e4" lt 1
set key outside right center reverse Left spacing 1.25 samplen 2 textcolor rgb "#333333"
set title font ",16" offset 0,0.4 textcolor rgb "#111111"
set style data linespoints

# One section of the file for one contender: size and value.
pick(section, ids, contender) = sprintf("< awk -F'\\t' '$1 == \"%s\" && $2 == \"%s\" && $4 == \"%s\" && $5 != \"\\\\N\" { print $3 \"\\t\" $5 }' %s", section, ids, contender, medians)
has(section, ids, contender) = system(sprintf("awk -F'\\t' '$1 == \"%s\" && $2 == \"%s\" && $4 == \"%s\" && $5 != \"\\\\N\"' %s | wc -l", section, ids, contender, medians)) + 0

# fav stands out; the others are quiet.
set style line 1 lw 4 lc rgb "#d1495b" pt 7 ps 0.9
set style line 2 lw 2 lc rgb "#e8a0a9" pt 7 ps 0.7
set style line 3 lw 2 lc rgb "#999999" dt 2 pt 6 ps 0.6
set style line 4 lw 2 lc rgb "#bbbbbb" dt 3 pt 6 ps 0.6
set style line 5 lw 2 lc rgb "#00798c" pt 5 ps 0.7
set style line 6 lw 2 lc rgb "#30638e" pt 9 ps 0.8
set style line 7 lw 2 lc rgb "#edae49" pt 11 ps 0.8
set style line 8 lw 2 lc rgb "#66a182" pt 13 ps 0.8
set style line 9 lw 2 lc rgb "#8d6a9f" pt 4 ps 0.8
set style line 10 lw 2 lc rgb "#5c4033" pt 8 ps 0.8
set style line 11 lw 2 lc rgb "#b08968" pt 10 ps 0.8

array contender[11] = ["fav", "fav, grown", "cheapest call", "no filter", "NOT EXISTS", "NOT IN (unnest)", "<> ALL (array)", "hstore", "jsonb", "roaring", "roaring, detoasted once"]

set logscale xy
set format x "%.0s%c"
set xlabel "elements in the hidden set" textcolor rgb "#333333"
set xrange [80:1250000]

set output "bench-scan.svg"
set title "Filtering 1,000,000 posts by one user's hidden set"
set ylabel "milliseconds (less is better)" textcolor rgb "#333333"
set format y "%.0f"
set yrange [20:20000]
plot for [i=1:11] (has("scan", "random", contender[i]) ? pick("scan", "random", contender[i]) : "/dev/null") using 1:2 ls i title contender[i] noenhanced

set output "bench-accuracy.svg"
set title "False positives: promised (dashed) and measured; exact up to 128 elements"
set ylabel "% of the elements that are not there" textcolor rgb "#333333"
set format y "%g"
set yrange [0.0005:20]
array rate[4] = ["0.1", "0.01", "0.001", "0.0001"]
array colour[4] = ["#d1495b", "#edae49", "#30638e", "#66a182"]
plot for [i=1:4] 100 * (rate[i] + 0) with lines lw 2 dt 2 lc rgb colour[i] title sprintf("%g %% promised", 100 * (rate[i] + 0)), \
	for [i=1:4] pick("accuracy", "grown", rate[i]) using 1:($2 > 0 ? $2 : NaN) with linespoints lw 3 pt 7 ps 0.8 lc rgb colour[i] notitle, \
	for [i=1:4] pick("accuracy", "built", rate[i]) using 1:($2 > 0 ? $2 : NaN) with linespoints lw 1.5 pt 6 ps 0.8 lc rgb colour[i] notitle, \
	NaN with linespoints lw 3 pt 7 ps 0.8 lc rgb "#555555" title "grown one by one", \
	NaN with linespoints lw 1.5 pt 6 ps 0.8 lc rgb "#555555" title "built at once"

set output "bench-feed.svg"
set title "Feed pages, all 500 candidates filtered, two clients"
set ylabel "pages a second (more is better)" textcolor rgb "#333333"
set format y "%.0s%c"
set yrange [*:*]
plot for [i=1:11] (has("page of 500", "random", contender[i]) ? pick("page of 500", "random", contender[i]) : "/dev/null") using 1:2 ls i title contender[i] noenhanced

set output "bench-bytes.svg"
set title "Stored bytes of one user's hidden set, random 64-bit ids"
set ylabel "bytes an element (less is better)" textcolor rgb "#333333"
set format y "%g"
array stored[7] = ["fav", "fav, grown", "", "", "array", "pairs with their index", "roaring"]
set yrange [1:100]
plot for [i=1:7] (strlen(stored[i]) && has("bytes", "random", stored[i]) ? pick("bytes", "random", stored[i]) : "/dev/null") using 1:($2/$1) ls i title stored[i] noenhanced, \
	pick("bytes", "random", "hstore") using 1:($2/$1) ls 8 title "hstore", \
	pick("bytes", "random", "jsonb") using 1:($2/$1) ls 9 title "jsonb"

set output "bench-wal.svg"
set title "WAL written to add one element"
set ylabel "bytes (less is better)" textcolor rgb "#333333"
set format y "%.0s%cB"
set yrange [*:*]
plot pick("add: bytes of WAL", "", "fav") using 1:2 ls 1 title "fav", \
	pick("add: bytes of WAL", "", "pairs") using 1:2 ls 5 title "pairs with their index", \
	pick("add: bytes of WAL", "", "array") using 1:2 ls 6 title "array", \
	(has("add: bytes of WAL", "", "roaring") ? pick("add: bytes of WAL", "", "roaring") : "/dev/null") using 1:2 ls 7 title "roaring", \
	pick("add: bytes of WAL", "", "hstore") using 1:2 ls 8 title "hstore", \
	pick("add: bytes of WAL", "", "jsonb") using 1:2 ls 9 title "jsonb"

set output "bench-probe.svg"
set title "One probe of a filter on disk"
set xlabel "bytes of the filter" textcolor rgb "#333333"
set ylabel "microseconds (less is better)" textcolor rgb "#333333"
set format x "%.0s%cB"
set format y "%.0f"
set xrange [800:125000000]
set yrange [*:*]
plot pick("probe", "", "fav") using 1:2 ls 1 title "fav", \
	pick("probe", "", "loaded whole") using 1:2 ls 6 title "value loaded whole", \
	pick("probe", "", "row alone") using 1:2 ls 4 title "row alone"

set output "bench-bounded.svg"
unset logscale
set title "The published experiment: 1,000,000 draws from 100,000 values"
set xlabel "occupied slots of the direct-mapped table, %" textcolor rgb "#333333"
set ylabel "false negatives, %" textcolor rgb "#333333"
set format x "%g"
set format y "%g"
set xrange [0:80]
set yrange [-2:100]
wrong(what, table) = sprintf("< awk -F'\\t' '$1 == \"cache, %s\" && $4 == \"%s\" && $3 < 100 { print $3 \"\\t\" $5 }' %s", what, table, medians)
plot wrong("false negatives", "direct-mapped, b = 128, 1 MB") using 1:2 ls 6 title "direct-mapped, b = 128, 1 MB" noenhanced, \
	wrong("false negatives", "fav_cache, 1 MB") using 1:2 ls 1 title "fav_cache, 1 MB" noenhanced, \
	wrong("false negatives", "fav_cache, 65,536 slots, 393 kB") using 1:2 ls 2 title "fav_cache, 65,536 slots, 393 kB" noenhanced, \
	wrong("false negatives", "exact LRU, 65,536 elements") using 1:2 ls 3 title "exact LRU, 65,536 elements" noenhanced, \
	wrong("false negatives", "fav_cache, 8 kB") using 1:2 ls 7 title "fav_cache, 8 kB" noenhanced, \
	wrong("false negatives", "direct-mapped, b = 1, 8 kB") using 1:2 ls 5 title "direct-mapped, b = 1, 8 kB" noenhanced, \
	wrong("false positives", "direct-mapped, b = 1, 8 kB") using 1:2 ls 5 dt 2 title "the same: false positives" noenhanced

set output "bench-core.svg"
unset logscale
set title "The core alone, 1,000,000 elements"
set xlabel ""
set ylabel "nanoseconds an operation (less is better)"
set format x "%g"
set format y "%g"
set xrange [-0.6:3.6]
set yrange [0:*]
set style fill solid 1 noborder
set boxwidth 0.26
set xtics ("ask, absent" 0, "ask, present" 1, "add" 2, "delete" 3)
bar(filter) = sprintf("< awk -F'\\t' 'BEGIN { split(\"miss hit insert delete\", o, \" \") } $1 == \"core\" { for (i = 1; i <= 4; i++) if ($4 == \"%s: \" o[i]) print i - 1 \"\\t\" $5 }' %s", filter, medians)
plot bar("fav, sized") using ($1-0.28):2 with boxes lc rgb "#d1495b" title "fav, capacity known", \
	bar("cuckoo") using 1:2 with boxes lc rgb "#30638e" title "cuckoo, 12 bits", \
	bar("fav, grown") using ($1+0.28):2 with boxes lc rgb "#e8a0a9" title "fav, grown from 1,000", \
	bar("fav, sized") using ($1-0.28):2:(sprintf("%.0f", $2)) with labels offset 0,0.6 font ",11" notitle, \
	bar("cuckoo") using 1:2:(sprintf("%.0f", $2)) with labels offset 0,0.6 font ",11" notitle, \
	bar("fav, grown") using ($1+0.28):2:(sprintf("%.0f", $2)) with labels offset 0,0.6 font ",11" notitle
