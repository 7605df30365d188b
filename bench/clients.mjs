// The filter of bench/clients.c in node: node clients.mjs COUNT FILE
//
// Prints nanoseconds of processor time per probe, the bytes of the filter, of a JSON array of the
// ids, and of that compressed with gzip.
import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { Fav } from '../clients/js/fav.js'

const PROBES = 1000000
const [count, file] = [Number(process.argv[2]), process.argv[3]]
const id = i => Number(BigInt(i) * 2654435761n % 2n ** 32n) * 2 ** 20 + i % 1024
const bytes = readFileSync(file)
const fav = await Fav.open(bytes)
const probes = Array.from({ length: PROBES }, (_, i) => id(i * 7919 % (2 * count)))
const processor = () => { const { user, system } = process.cpuUsage(); return (user + system) * 1000 }
let best = Infinity
for (let round = 0; round < 5; round++) {
  const start = processor()
  let found = 0
  for (const probe of probes) found += fav.has(probe)
  best = Math.min(best, (processor() - start) / PROBES)
  if (found < PROBES / 3) throw new Error('elements are missing')
}
const json = JSON.stringify(Array.from({ length: count }, (_, i) => id(i)).sort((a, b) => a - b))
console.log(best.toFixed(1), bytes.length, json.length, gzipSync(json).length)
