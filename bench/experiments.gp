# The charts of docs/internals/EXPERIMENTS.md and docs/CACHE.md, from experiments.tsv in the current folder.

set terminal svg size 820,400 font "Helvetica,13" background "#ffffff" rounded
set datafile separator "\t"
set border 3 lc rgb "#888888"
set tics nomirror out scale 0.5 textcolor rgb "#333333"
set grid ytics lc rgb "#e4e4e4" lt 1
set title font ",15" offset 0,0.4 textcolor rgb "#111111"
unset key

fav = "#d1495b"
plain = "#30638e"
other = "#66a182"
third = "#edae49"
pick(what) = "< awk -F'\\t' '" . what . "' experiments.tsv"

set output "experiments-deletes.svg"
set title "% of deleted elements still present (100,000 added, a tenth deleted)"
set xlabel "bits per element" textcolor rgb "#333333"
set ylabel ""
set logscale y
set format y "%g"
set xrange [9:31]
set yrange [0.005:100]
set object 1 rectangle from graph 0, first 0.4 to graph 1, first 0.6 fc rgb "#e8e8e8" fs solid noborder behind
set label 1 "0.4 to 0.6 %: what the inventors of FAV report" at 30.5,0.8 right textcolor rgb "#666666"
set label 2 "marks and nothing else, regions of 7 bits" at 17,6 left textcolor rgb plain
set label 3 "fav: 0 %, at 13.3 bits before the deletes and 17.4 after them" at 9.6,0.0085 left textcolor rgb fav
set arrow 1 from 13.3,0.0055 to 17.4,0.0055 nohead lw 6 lc rgb fav
plot pick('$1 == "plain" && $2 == "bits"') using 3:6 with linespoints lw 3 pt 7 ps 0.7 lc rgb plain
unset object 1
unset label
unset arrow

set output "experiments-regions.svg"
unset logscale
set multiplot layout 1,2
set xlabel "bits per region"
set xrange [0:32]
set yrange [0:100]
set title "% of deletes the bits cannot express"
set label 1 "marks and nothing else:\nstill present" at 17,97 right textcolor rgb plain
set label 2 "fav: kept as\na tombstone" at 31.5,47 right textcolor rgb fav
plot pick('$1 == "plain" && $2 == "region"') using 4:6 with linespoints lw 3 pt 7 ps 0.6 lc rgb plain, \
	pick('$1 == "fav"') using 3:6 with linespoints lw 3 pt 7 ps 0.6 lc rgb fav
unset label
set ylabel ""
set yrange [0:35]
set title "Bits per element at 1 %"
set label 1 "fav, a tenth deleted" at 12,21.5 left textcolor rgb fav
set label 2 "fav, full" at 12,14.5 left textcolor rgb "#e08794"
set label 3 "marks and nothing else" at 12,8 left textcolor rgb plain
plot pick('$1 == "fav"') using 3:5 with linespoints lw 3 pt 7 ps 0.6 lc rgb fav, \
	pick('$1 == "fav"') using 3:4 with linespoints lw 2 pt 7 ps 0.5 lc rgb "#e08794", \
	pick('$1 == "plain" && $2 == "region"') using 4:3 with linespoints lw 3 pt 7 ps 0.6 lc rgb plain
unset multiplot
unset label

set output "experiments-hashes.svg"
set title "False positives of a full slice, as a multiple of what it is sized for"
set ylabel ""
set xlabel "sized for (%)"
set logscale xy
set format x "%g"
set format y "%g ×"
set xrange [2:0.0005] reverse
set yrange [0.7:200]
set label 1 "columns Ha + i·Hb" at 0.011,24 right textcolor rgb plain
set label 2 "fav" at 0.003,1.4 right textcolor rgb fav
plot pick('$1 == "hashes"') using 2:5 with linespoints lw 3 pt 7 ps 0.7 lc rgb plain, \
	pick('$1 == "hashes"') using 2:3 with linespoints lw 3 pt 7 ps 0.7 lc rgb fav
unset label

set output "experiments-growth.svg"
set multiplot layout 1,2
set logscale xy
set xrange [500:1100000] noreverse
set format x "%.0s%c"
set format y "%g"
set xlabel "elements, made for 1,000"
set ylabel ""
set yrange [0.005:20]
set title "False positives in %, promised and measured"
do for [i = 1:3] {
	set arrow i from first 500, first 10.0 ** (2 - i) to first 1100000, first 10.0 ** (2 - i) nohead dt 2 lc rgb "#999999"
}
plot for [r in "0.1 0.01 0.001"] pick(sprintf('$1 == "growth" && $2 == "%s"', r)) using 3:4 with lines lw 3 lc rgb fav
unset arrow
unset logscale y
set ylabel ""
set yrange [0:60]
set title "Bits per element at 1 %"
set label 1 "fav" at 300000,40 left textcolor rgb fav
set label 2 "scalable Bloom filter, r = 0.5" at 900000,54 right textcolor rgb other
set label 3 "r = 0.9 (no deletes)" at 900000,14 right textcolor rgb plain
plot pick('$1 == "growth" && $2 == "0.01"') using 3:6 with lines lw 2 lc rgb other, \
	pick('$1 == "growth" && $2 == "0.01"') using 3:7 with lines lw 2 lc rgb plain, \
	pick('$1 == "growth" && $2 == "0.01"') using 3:5 with lines lw 3 lc rgb fav
unset multiplot

set output "experiments-bounded.svg"
unset logscale
set title "The published experiment: 1,000,000 draws from 100,000 values"
set xlabel "occupied slots of the direct-mapped table, %"
set ylabel "false negatives, % (dotted: false positives)" textcolor rgb "#333333"
set format "%g"
set xrange [0:80]
set yrange [-2:105]
set rmargin 35
array table[6] = ["direct-mapped, b = 1, 8 kB", "direct-mapped, b = 128, 1 MB", "fav_cache, 8 kB", "fav_cache, 65,536 slots, 393 kB", "fav_cache, 1 MB", "exact LRU, 65,536 elements"]
array table_dash[6] = [1, 1, 1, 1, 1, 3]
array table_shift[6] = [0, 0, 0, 2.5, 0, -2.5]
array table_colour[6] = ["#4fb3bf", "#00798c", "#f2b5bd", "#e58a97", "#d1495b", "#777777"]
wrong(column, table) = sprintf("< awk -F'\\t' '$1 == \"bounded\" && $2 == \"%s\" && $3 < 100 { print $3 \"\\t\" $%d }' experiments.tsv", table, column)
end(table) = sprintf("< awk -F'\\t' '$1 == \"bounded\" && $2 == \"%s\" && $3 < 100 && $3 >= x { x = $3; y = $4 } END { print x \"\\t\" y }' experiments.tsv", table)
plot for [i=1:6] wrong(4, table[i]) using 1:2 with linespoints lw 3 lc rgb table_colour[i] dt table_dash[i] pt 7 ps 0.5, \
	wrong(5, table[1]) using 1:2 with linespoints lw 2 lc rgb table_colour[1] dt 3 pt 7 ps 0.5, \
	for [i=1:6] end(table[i]) using ($1 + 1.5):($2 + table_shift[i]):(table[i]) with labels left noenhanced font ",12" textcolor rgb table_colour[i]
