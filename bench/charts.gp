# The charts of the benchmark: gnuplot -e "medians='bench.tsv'; folder='bench'" charts.gp
# writes bench-*.svg into the current folder.  `folder` has labels.awk.

set terminal svg size 860,470 font "Helvetica,13" background "#ffffff" rounded
set datafile separator "\t"
set border 3 lc rgb "#888888"
set tics nomirror out scale 0.5 textcolor rgb "#333333"
set grid ytics lc rgb "#e4e4e4" lt 1
set title font ",16" offset 0,0.4 textcolor rgb "#111111"
set style data linespoints
unset key

# A contender has the same colour in all charts.  fav stands out.
array name[17] = ["fav", "fav, grown", "fav_filter (array)", "fav_attach", "no filter", "cheapest call", \
	"NOT EXISTS", "NOT EXISTS, nested loop", "NOT IN (unnest)", "<> ALL (array)", "hstore", "jsonb", \
	"roaring", "roaring, detoasted once", "roaring, set-wise", "loaded whole", "row alone"]
array colour[17] = ["#d1495b", "#e58a97", "#8c1c2e", "#f26419", "#aaaaaa", "#777777", \
	"#00798c", "#4fb3bf", "#30638e", "#d99a1c", "#66a182", "#8d6a9f", \
	"#5c4033", "#8f6b4f", "#b08968", "#30638e", "#aaaaaa"]
array alias[3] = ["array", "pairs", "pairs with their index"]
array alias_colour[3] = ["#d99a1c", "#00798c", "#00798c"]

colour_of(wanted) = colour_in_aliases(wanted, 1) ne "" ? colour_in_aliases(wanted, 1) : colour_in_names(wanted, 1)
colour_in_aliases(wanted, i) = i > 3 ? "" : alias[i] eq wanted ? alias_colour[i] : colour_in_aliases(wanted, i + 1)
colour_in_names(wanted, i) = i > 17 ? "#000000" : name[i] eq wanted ? colour[i] : colour_in_names(wanted, i + 1)
width_of(wanted) = wanted eq "fav" ? 4 : 2
dash_of(wanted) = (wanted eq "no filter" || wanted eq "cheapest call" || wanted eq "row alone") ? 3 : 1

# The i-th of a list of names.
item(list, i) = system(sprintf("printf '%%s' '%s' | cut -d';' -f%d", list, i))
items(list) = system(sprintf("printf '%%s\\n' '%s' | tr ';' '\\n' | wc -l", list)) + 0

# The line of a contender: size and value, or value per size.
line(section, ids, contender) = sprintf("< awk -F'\\t' '$1 == \"%s\" && $2 == \"%s\" && $4 == \"%s\" && $5 != \"\\\\N\" { print $3 \"\\t\" $5; n++ } END { if (!n) print \"NaN\\tNaN\" }' %s", section, ids, contender, medians)
labels(section, ids, list, gap, more) = sprintf("< awk -v section='%s' -v ids='%s' -v names='%s' -v gap=%g %s -f %s/labels.awk %s", section, ids, list, gap, more, folder, medians)
rgb_of(wanted) = int(system(sprintf("printf '%%d' 0x%s", substr(colour_of(wanted), 2, 7))))

set logscale xy
set xtics ("100" 100, "1,000" 1000, "10,000" 10000, "100,000" 100000, "1,000,000" 1000000)
set xlabel "elements in the hidden set" textcolor rgb "#333333"
set xrange [80:1250000]
set rmargin 23

set output "bench-scan.svg"
set title "Filtering 1,000,000 posts by one user's hidden set"
set ylabel "milliseconds (less is better)" textcolor rgb "#333333"
set ytics ("20" 20, "50" 50, "100" 100, "200" 200, "500" 500, "1,000" 1000, "2,000" 2000, "5,000" 5000, "10,000" 10000)
set yrange [20:12000]
set label 1 "A line ends where larger sets take more than 10 s." at graph 0.98, 0.04 right textcolor rgb "#555555" font ",12"
list = "fav;fav, grown;no filter;cheapest call;NOT EXISTS;NOT EXISTS, nested loop;NOT IN (unnest);<> ALL (array);hstore;jsonb;roaring, detoasted once"
plot for [i=1:items(list)] line("scan", "random", item(list, i)) using 1:2 lw width_of(item(list, i)) lc rgb colour_of(item(list, i)) dt dash_of(item(list, i)) pt 7 ps 0.6, \
	labels("scan", "random", list, 1.28, "") using ($1 * 1.15):2:3:(rgb_of(strcol(3))) with labels left noenhanced font ",12" textcolor rgb variable

set output "bench-feed.svg"
set title "Feed pages, all 500 candidates filtered, two clients"
set ylabel "pages per second (more is better)" textcolor rgb "#333333"
set ytics ("1" 1, "10" 10, "100" 100, "1,000" 1000, "10,000" 10000)
set yrange [1:70000]
set label 1 "A line ends where a contender makes fewer than 10 pages per second." at graph 0.02, 0.04 left textcolor rgb "#555555" font ",12"
list = "fav;fav, grown;fav_filter (array);no filter;cheapest call;NOT EXISTS;NOT EXISTS, nested loop;NOT IN (unnest);<> ALL (array);hstore;jsonb;roaring, set-wise"
plot for [i=1:items(list)] line("page of 500", "random", item(list, i)) using 1:2 lw width_of(item(list, i)) lc rgb colour_of(item(list, i)) dt dash_of(item(list, i)) pt 7 ps 0.6, \
	labels("page of 500", "random", list, 1.6, "") using ($1 * 1.15):2:3:(rgb_of(strcol(3))) with labels left noenhanced font ",12" textcolor rgb variable

unset label 1
set output "bench-bytes.svg"
set title "Stored bytes of one user's hidden set, random 64-bit ids"
set ylabel "bytes per element (less is better)" textcolor rgb "#333333"
set ytics ("1" 1, "2" 2, "5" 5, "10" 10, "20" 20, "50" 50, "100" 100)
set yrange [1:120]
list = "fav;fav, grown;array;hstore;jsonb;roaring;pairs with their index"
plot for [i=1:items(list)] line("bytes", "random", item(list, i)) using 1:($2/$1) lw width_of(item(list, i)) lc rgb colour_of(item(list, i)) pt 7 ps 0.6, \
	labels("bytes", "random", list, 1.14, "-v per_size=1") using ($1 * 1.15):2:3:(rgb_of(strcol(3))) with labels left noenhanced font ",12" textcolor rgb variable

set output "bench-wal.svg"
set title "WAL written to add one element"
set ylabel "bytes (less is better)" textcolor rgb "#333333"
set ytics ("100" 100, "1 kB" 1e3, "10 kB" 1e4, "100 kB" 1e5, "1 MB" 1e6, "10 MB" 1e7)
set yrange [60:6e7]
list = "fav;array;hstore;jsonb;roaring;pairs"
plot for [i=1:items(list)] line("add: bytes of WAL", "", item(list, i)) using 1:2 lw width_of(item(list, i)) lc rgb colour_of(item(list, i)) pt 7 ps 0.6, \
	line("attached, WAL", "INSERT", "fav_attach") using 1:2 lw 4 lc rgb colour_of("fav_attach") pt 7 ps 0.6, \
	labels("add: bytes of WAL", "", list, 1.55, "") using ($1 * 1.15):2:3:(rgb_of(strcol(3))) with labels left noenhanced font ",12" textcolor rgb variable, \
	labels("attached, WAL", "INSERT", "fav_attach", 1.55, "") using ($1 * 1.15):2:("pair and attached filter"):(rgb_of("fav_attach")) with labels left noenhanced font ",12" textcolor rgb variable

set output "bench-accuracy.svg"
set title "False positives: promised (dashed) and measured; exact up to 128 elements"
set ylabel "% of the elements that are absent" textcolor rgb "#333333"
set ytics ("0.001" 0.001, "0.01" 0.01, "0.1" 0.1, "1" 1, "10" 10)
set yrange [0.0005:30]
array rate[4] = ["0.1", "0.01", "0.001", "0.0001"]
array rate_colour[4] = ["#d1495b", "#d99a1c", "#30638e", "#66a182"]
set for [i=1:4] label i sprintf("%g %% promised", 100 * (rate[i] + 0)) at 1450000, 100 * (rate[i] + 0) left textcolor rgb rate_colour[i] font ",12"
set label 5 "thick: grown one by one\nthin: built at once" at 1450000, 0.0011 left textcolor rgb "#555555" font ",12"
plot for [i=1:4] 100 * (rate[i] + 0) with lines lw 2 dt 2 lc rgb rate_colour[i], \
	for [i=1:4] line("accuracy", "grown", rate[i]) using 1:($2 > 0 ? $2 : NaN) lw 4 pt 7 ps 0.6 lc rgb rate_colour[i], \
	for [i=1:4] line("accuracy", "built", rate[i]) using 1:($2 > 0 ? $2 : NaN) lw 1.5 pt 6 ps 0.6 lc rgb rate_colour[i]
unset label

set output "bench-probe.svg"
set title "One probe of a filter on disk"
set xlabel "bytes of the filter" textcolor rgb "#333333"
set ylabel "microseconds (less is better)" textcolor rgb "#333333"
set xtics ("1 kB" 1e3, "10 kB" 1e4, "100 kB" 1e5, "1 MB" 1e6, "10 MB" 1e7, "100 MB" 1e8)
set ytics ("10" 10, "100" 100, "1,000" 1000, "10,000" 10000, "100,000" 100000)
set xrange [800:125000000]
set yrange [30:300000]
list = "fav;loaded whole;row alone"
plot for [i=1:items(list)] line("probe", "", item(list, i)) using 1:2 lw width_of(item(list, i)) lc rgb colour_of(item(list, i)) dt dash_of(item(list, i)) pt 7 ps 0.6, \
	labels("probe", "", list, 1.5, "") using ($1 * 1.15):2:3:(rgb_of(strcol(3))) with labels left noenhanced font ",12" textcolor rgb variable

set output "bench-bounded.svg"
unset logscale
set title "The published experiment: 1,000,000 draws from 100,000 values"
set xlabel "occupied slots of the direct-mapped table, %" textcolor rgb "#333333"
set ylabel "false negatives, % (dotted: false positives)" textcolor rgb "#333333"
set xtics auto
set ytics auto
set format "%g"
set xrange [0:80]
set yrange [-2:105]
set rmargin 35
array table[6] = ["direct-mapped, b = 1, 8 kB", "direct-mapped, b = 128, 1 MB", "fav_cache, 8 kB", "fav_cache, 65,536 slots, 393 kB", "fav_cache, 1 MB", "exact LRU, 65,536 elements"]
array table_dash[6] = [1, 1, 1, 1, 1, 3]
array table_shift[6] = [0, 0, 0, 2.5, 0, -2.5]
array table_colour[6] = ["#4fb3bf", "#00798c", "#f2b5bd", "#e58a97", "#d1495b", "#777777"]
wrong(what, table) = sprintf("< awk -F'\\t' '$1 == \"cache, %s\" && $4 == \"%s\" && $3 < 100 { print $3 \"\\t\" $5 }' %s", what, table, medians)
end(table) = sprintf("< awk -F'\\t' '$1 == \"cache, false negatives\" && $4 == \"%s\" && $3 < 100 && $3 >= x { x = $3; y = $5 } END { print x \"\\t\" y }' %s", table, medians)
plot for [i=1:6] wrong("false negatives", table[i]) using 1:2 lw 3 lc rgb table_colour[i] dt table_dash[i] pt 7 ps 0.5, \
	wrong("false positives", table[1]) using 1:2 lw 2 lc rgb table_colour[1] dt 3 pt 7 ps 0.5, \
	for [i=1:6] end(table[i]) using ($1 + 1.5):($2 + table_shift[i]):(table[i]) with labels left noenhanced font ",12" textcolor rgb table_colour[i]

set output "bench-core.svg"
unset logscale
set key outside right center reverse Left spacing 1.25 samplen 1 textcolor rgb "#333333"
set rmargin
set title "The core alone, 1,000,000 elements"
set xlabel ""
set ylabel "nanoseconds per operation (less is better)"
set format y "%g"
set xrange [-0.6:3.6]
set yrange [0:*]
set ytics auto
set style fill solid 1 noborder
set boxwidth 0.26
set xtics ("probe, absent" 0, "probe, present" 1, "add" 2, "delete" 3)
bar(filter) = sprintf("< awk -F'\\t' 'BEGIN { split(\"miss hit insert delete\", o, \" \") } $1 == \"core\" { for (i = 1; i <= 4; i++) if ($4 == \"%s: \" o[i]) print i - 1 \"\\t\" $5 }' %s", filter, medians)
plot bar("fav, sized") using ($1-0.28):2 with boxes lc rgb "#d1495b" title "fav, capacity known", \
	bar("cuckoo") using 1:2 with boxes lc rgb "#30638e" title "cuckoo, 12 bits", \
	bar("fav, grown") using ($1+0.28):2 with boxes lc rgb "#e58a97" title "fav, grown from 1,000", \
	bar("fav, sized") using ($1-0.28):2:(sprintf("%.0f", $2)) with labels offset 0,0.6 font ",11" notitle, \
	bar("cuckoo") using 1:2:(sprintf("%.0f", $2)) with labels offset 0,0.6 font ",11" notitle, \
	bar("fav, grown") using ($1+0.28):2:(sprintf("%.0f", $2)) with labels offset 0,0.6 font ",11" notitle
