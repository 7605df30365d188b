// The filters of the PostgreSQL extension fav, in JavaScript.  README.md tells how to use them.
//
// The filter itself is libfav in WebAssembly.  Each Fav has an instance of its own, so its memory
// is released with it, and damaged bytes harm nobody else.
import wasm from './wasm.js'

/** The kinds of elements, in the order of libfav. */
const kinds = [null, 'bigint', 'text', 'uuid', 'bytea', 'pair']
const RECORD = 24 // bytes, see wasm.c

let compiled

async function compile() {
  const gzip = new Blob([Uint8Array.from(atob(wasm), c => c.charCodeAt(0))])
  const stream = gzip.stream().pipeThrough(new DecompressionStream('gzip'))
  return WebAssembly.compile(await new Response(stream).arrayBuffer())
}

/** Every error of a filter; `code` says which, as in libfav.h. */
export class FavError extends Error {
  constructor(code, message) {
    super(message)
    this.name = 'FavError'
    this.code = code
  }
}

/** As SQL reads it: a hyphen may follow each group of four digits, and braces may be around. */
const uuidText = /^(\{?)(?:[0-9a-f]{4}-?){7}[0-9a-f]{4}(\}?)$/i

/** A uuid for a filter that has no kind yet.  (A filter of uuids reads text as a uuid.) */
export class Uuid {
  constructor(text) {
    const match = typeof text === 'string' && uuidText.exec(text)
    if (!match || match[1].length !== match[2].length) throw new FavError('BAD_ELEMENT', `invalid uuid: "${String(text)}"`)
    this.bytes = Uint8Array.from(text.match(/[0-9a-f]{2}/gi), pair => parseInt(pair, 16))
    Object.freeze(this)
  }
}

function badElement(id) {
  let what = typeof id
  if (what === 'number' || what === 'bigint') what = `number ${id}`
  return new FavError('BAD_ELEMENT', what.startsWith('number')
    ? `${what} is no integer that JavaScript knows exactly, or has more than 64 bits: use a bigint or text`
    : `an element is a number, a bigint, text, a Uuid, a Uint8Array or a pair of integers, not ${id === null ? 'null' : what}`)
}

/** An integer of 64 bits. */
function toInteger(id) {
  if (typeof id === 'number' && Number.isSafeInteger(id)) return BigInt(id)
  if (typeof id === 'bigint' && BigInt.asIntN(64, id) === id) return id
  throw badElement(id)
}

const encoder = new TextEncoder()
const decoder = new TextDecoder()

/** Half of a surrogate pair would become U+FFFD, whichever it was. */
const isWellFormed = text => text.isWellFormed ? text.isWellFormed() : !/\p{Surrogate}/u.test(text)

export class Fav {
  #wasm
  #view = new Uint8Array() // of the memory, and as numbers
  #data
  #buffer = 0 // address and size of the buffer that the module reads from
  #size = 0

  /** A filter from its bytes: `filter::bytea` in SQL.  NULL is the empty filter. */
  static async open(bytes) {
    if (bytes instanceof ArrayBuffer) bytes = new Uint8Array(bytes)
    if (bytes !== null && !(bytes instanceof Uint8Array))
      throw new TypeError('the bytes of a filter are a Uint8Array, an ArrayBuffer or null: SELECT filter::bytea')
    const fav = await Fav.#make()
    if (bytes !== null) {
      fav.#reserve(bytes.length)
      fav.#memory().set(bytes, fav.#buffer)
      fav.#check(fav.#wasm.open(bytes.length))
    }
    return fav
  }

  /** A filter of exactly the right size for these elements: `fav_agg` in SQL. */
  static async from(ids, { capacity = 0, errorRate = 0.01, regionSize = 7, seed = 0 } = {}) {
    for (const [name, value] of Object.entries({ capacity, regionSize }))
      if (!Number.isSafeInteger(value) || value < 0) throw new FavError('BAD_PARAMETER', `${name} is ${value}`)
    const fav = await Fav.#make()
    fav.#wasm.set_params(capacity, +errorRate, regionSize, toInteger(seed))
    fav.#check(fav.#wasm.build(fav.#put(ids)))
    return fav
  }

  static async #make() {
    const module = await (compiled ??= compile())
    const instance = await WebAssembly.instantiate(module).catch(error => {
      // an instance takes address space, of which a browser has enough for about a hundred
      throw error instanceof RangeError ? new FavError('NO_MEMORY', `too many filters at once: ${error.message}`) : error
    })
    const fav = new Fav()
    fav.#wasm = instance.exports
    fav.#check(fav.#wasm.begin())
    return fav
  }

  /** Is the element in the filter? */
  has(id) {
    let answer
    if (typeof id === 'number') {
      if (!Number.isSafeInteger(id)) throw badElement(id)
      answer = this.#wasm.has_number(id)
    } else if (typeof id === 'bigint') {
      answer = this.#wasm.has_bigint(toInteger(id))
    } else {
      this.#put([id])
      answer = this.#wasm.has()
    }
    return answer === 1 || this.#check(answer) === 1
  }

  /** Those that are *not* in the filter, in order.  `idOf` gives the element of an item. */
  filter(items, idOf = item => item) {
    return Array.from(items).filter(item => !this.has(idOf(item)))
  }

  /** Add elements. */
  add(...ids) {
    return this.#change(this.#wasm.add, ids)
  }

  /** Remove elements that were added. */
  remove(...ids) {
    return this.#change(this.#wasm.remove_, ids)
  }

  /** From now on these elements are absent, whether they were added or not. */
  exclude(...ids) {
    return this.#change(this.#wasm.exclude, ids)
  }

  /** The number of elements: exact up to 128, then an estimate. */
  get count() {
    return this.#wasm.count()
  }

  /** 'bigint', 'text', 'uuid', 'bytea' or 'pair'; null while the filter is empty. */
  get kind() {
    return kinds[this.#wasm.kind()]
  }

  /** The bytes of the filter, for `Fav.open` or `$1::bytea::fav`. */
  bytes() {
    const size = this.#check(this.#wasm.write())
    const at = this.#wasm.written_at() >>> 0
    return this.#memory().slice(at, at + size)
  }

  /** The memory of the module, which is another object after it has grown. */
  #memory() {
    const { buffer } = this.#wasm.memory
    if (this.#view.buffer !== buffer) {
      this.#view = new Uint8Array(buffer)
      this.#data = new DataView(buffer)
    }
    return this.#view
  }

  #check(result) {
    if (result < 0) {
      const code = this.#text(this.#wasm.status_name(-result))
      throw new FavError(code, code === 'NO_MEMORY' ? 'out of memory' : this.#text(this.#wasm.message()))
    }
    return result
  }

  /** The C string at an address. */
  #text(at) {
    const memory = this.#memory()
    return decoder.decode(memory.subarray(at, memory.indexOf(0, at)))
  }

  #reserve(size) {
    if (size <= this.#size) return
    size = Math.max(size, 2 * this.#size, 1024)
    const at = size < 2 ** 32 ? this.#wasm.reserve(size) : 0
    if (at === 0) throw new FavError('NO_MEMORY', 'out of memory')
    this.#buffer = at >>> 0
    this.#size = size
  }

  /** Put elements into the buffer; returns how many. */
  #put(ids) {
    let end = 0
    let count = 0
    for (const id of ids) {
      let kind
      let size = 0
      let first = 0n
      let second = 0n
      if (typeof id === 'string') {
        if (!isWellFormed(id)) throw new FavError('BAD_ELEMENT', 'text has half of a surrogate pair')
        this.#reserve(end + RECORD + 3 * id.length + 8)
        kind = 2
        size = encoder.encodeInto(id, this.#memory().subarray(this.#buffer + end + RECORD)).written
      } else if (typeof id === 'number' || typeof id === 'bigint') {
        kind = 1
        first = toInteger(id)
      } else if (id instanceof Uint8Array || id instanceof Uuid) {
        const bytes = id.bytes ?? id
        kind = id === bytes ? 4 : 3
        size = bytes.length
        this.#reserve(end + RECORD + size + 8)
        this.#memory().set(bytes, this.#buffer + end + RECORD)
      } else if (Array.isArray(id) && id.length === 2) {
        kind = 5
        first = toInteger(id[0])
        second = toInteger(id[1])
      } else throw badElement(id)
      this.#reserve(end + RECORD)
      this.#memory()
      const at = this.#buffer + end
      this.#data.setUint32(at, kind, true)
      this.#data.setUint32(at + 4, size, true)
      this.#data.setBigInt64(at + 8, first, true)
      this.#data.setBigInt64(at + 16, second, true)
      end += RECORD + Math.ceil(size / 8) * 8
      count++
    }
    return count
  }

  #change(change, ids) {
    const count = this.#put(ids)
    if (count > 0) this.#check(change(count))
    return this
  }
}
