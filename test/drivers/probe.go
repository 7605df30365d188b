// Is lib/pq installed?
package main

import _ "github.com/lib/pq"

func main() {}
