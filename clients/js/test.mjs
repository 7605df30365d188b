// Tests of the package, in node and in a browser: node test.mjs
//
// Ends with "js: N passed, N failed".  In a browser, test_browser.mjs calls run().
import { Fav, FavError, Uuid } from './fav.js'

let passed = 0
let failed = 0
const messages = []

function test(condition, what) {
  if (condition) passed++
  else {
    failed++
    messages.push(`FAILED: ${what}`)
  }
}

async function raises(code, what, call) {
  try {
    await call()
    test(false, `${what}: no error`)
  } catch (error) {
    test(code === 'TypeError' ? error instanceof TypeError : error instanceof FavError && error.code === code,
      `${what}: ${error.name} ${error.code}: ${error.message}`)
  }
}

const fromHex = text => Uint8Array.from(text.match(/../g) ?? [], pair => parseInt(pair, 16))
const toHex = bytes => Array.from(bytes, byte => byte.toString(16).padStart(2, '0')).join('')
const range = (first, last) => Array.from({ length: last - first + 1 }, (_, i) => first + i)

/** Element i of a kind, see sql/golden.sql. */
function element(kind, i) {
  if (kind === 'bigint') return i % 2 === 0 ? i : BigInt(i)
  if (kind === 'text') return `post ${i}`
  if (kind === 'uuid') return new Uuid(i.toString(16).padStart(32, '0'))
  if (kind === 'pair') return [i, 3n * BigInt(i)]
  return fromHex(i.toString(16).padStart(16, '0'))
}

const reported = (fav, kind, n) => range(1, n).map(i => fav.has(element(kind, i)) ? '1' : '0').join('')

/** What the server answered: expected/golden.out. */
async function testGolden(golden) {
  const filters = {}
  const damaged = async (name, bytes, problem) => {
    let message = 'valid'
    try {
      await Fav.open(bytes)
    } catch (error) {
      message = error instanceof FavError && error.code === 'MALFORMED' ? error.message.replace('not a fav value: ', '') : `${error}`
    }
    // %g is not exactly that of C
    const known = text => text.replace(/^Error rate is .*?,/, 'Error rate is x,')
    test(known(message) === known(problem), `${name}, damaged: "${message}", not "${problem}"`)
  }
  for (const line of golden.split('\n')) {
    const [what, name, ...fields] = line.split('|')
    if (what === 'filter' && fields.length === 4) {
      const [kind, count, answers, hex] = fields
      const bytes = fromHex(hex)
      filters[name] = { kind, bytes }
      const fav = await Fav.open(bytes)
      test(fav.count === +count, `${name}: count ${fav.count}`)
      test(reported(fav, kind, answers.length) === answers, `${name}: answers`)
      test(toHex(fav.bytes()) === hex, `${name}: bytes`)
    } else if (what === 'ask') {
      const [kind, hex, answer] = fields
      const text = new TextDecoder().decode(fromHex(hex))
      const id = kind === 'text' ? text : kind === 'bigint' ? BigInt(text) : kind === 'uuid' ? new Uuid(text)
        : kind === 'bytea' ? fromHex(text.slice(2)) : [Number(text), 3 * Number(text)]
      let result
      try {
        result = (await Fav.open(filters[name].bytes)).has(id) ? 't' : 'f'
      } catch (error) {
        result = { OTHER_KIND: '42804', BAD_ELEMENT: answer === '22003' ? '22003' : '22P02' }[error.code] ?? `${error}`
      }
      test(result === answer, `${name} asked for ${kind} "${text}": ${result}, not ${answer}`)
    } else if (what === 'edit') {
      const fav = (await Fav.open(filters[name].bytes)).add(...range(650, 900)).remove(...range(10, 120)).exclude(...range(700, 720))
      test(toHex(fav.bytes()) === fields[0], `${name}: bytes after an edit`)
    } else if (what === 'damaged') {
      const bytes = filters[name].bytes.slice()
      bytes[+fields[0]] = +fields[1]
      await damaged(name, bytes, fields[2])
    } else if (what === 'cut')
      await damaged(name, filters[name].bytes.slice(0, +fields[0]), fields[1])
    else if (what === 'large')
      await testLarge([name, ...fields].map(Number))
  }
  test(Object.keys(filters).length > 20, 'there are golden values')
}

async function testLarge([n, capacity, errorRate, regionSize, seed, count, length, sum, total, numbers]) {
  const ids = range(1, n).map(i => 2 * i)
  const fav = capacity === 0 ? await Fav.from(ids) : await Fav.from([], { capacity, errorRate, regionSize, seed })
  if (capacity > 0) for (const id of ids) fav.add(id)
  const bytes = fav.bytes()
  test(fav.count === count, `${n} elements: count ${fav.count}`)
  test(bytes.length === length && bytes.reduce((all, byte, i) => all + byte * (i % 65521), 0) === sum, `${n} elements: bytes`)
  const found = range(1, 1000000).filter(id => fav.has(id))
  test(found.length === total && found.reduce((all, id) => all + id, 0) === numbers, `${n} elements: answers`)
}

async function testElements() {
  const fav = await Fav.from([1, 2, 3])
  for (const id of [1.5, NaN, Infinity, 2 ** 53, -(2 ** 53), 2n ** 63n, -(2n ** 63n) - 1n, null, undefined, {}, [1], [1, 2, 3], ['1', '2'], [1, 2 ** 53], true, Symbol('1')])
    await raises('BAD_ELEMENT', `has ${String(id)}`, () => fav.has(id))
  await raises('BAD_ELEMENT', 'add', () => fav.add(4, 2 ** 53))
  await raises('BAD_ELEMENT', 'text', () => fav.add('four'))
  const uuid = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'
  const sameUuid = [uuid.toUpperCase(), uuid.replaceAll('-', ''), `{${uuid}}`, 'a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11', '{A0eebc999c0b4ef8-bb6d6bb9bd380a11}']
  const uuids = await Fav.from([new Uuid(uuid)])
  test(sameUuid.every(text => uuids.has(text) && uuids.has(new Uuid(text))), 'uuids as SQL reads them')
  for (const text of ['0', '', '{}', `${uuid}-`, `-${uuid}`, `{${uuid}`, `${uuid}}`, ` ${uuid}`, `${uuid}\n`, uuid.replace('-', '--'), 'a0-eebc999c0b4ef8bb6d6bb9bd380a11', `${uuid}0`, uuid.replace('a', 'g')]) {
    await raises('BAD_ELEMENT', `text ${text}`, () => uuids.has(text))
    await raises('BAD_ELEMENT', `Uuid ${text}`, () => new Uuid(text))
  }
  for (const text of [undefined, null, 5, Symbol('u'), {}]) await raises('BAD_ELEMENT', `Uuid ${String(text)}`, () => new Uuid(text))
  await raises('OTHER_KIND', 'a uuid asked of integers', () => fav.has(new Uuid('0'.repeat(32))))
  test(fav.has('2') && fav.has(2) && fav.has(2n) && !fav.has('4') && !fav.has(-0), 'text is converted')
  test(fav.count === 3, 'what fails changes nothing')
  test(fav.filter([4, 3, 2, 9]).join() === '4,9', 'filter')
  test(fav.filter([{ id: 1 }, { id: 5 }], post => post.id).map(({ id }) => id).join() === '5', 'filter of items')
  test(fav.add(2n ** 63n - 1n, -(2n ** 63n)).has('9223372036854775807') && fav.has('-9223372036854775808'), 'the ends of 64 bits')

  const text = await Fav.from(['é', '日本', '😀', ''])
  test(text.has('é') && text.has('日本') && text.has('😀') && text.has('') && !text.has('e') && text.kind === 'text', 'text is UTF-8')
  await raises('BAD_ELEMENT', 'half of a surrogate pair', () => text.has('\ud83d'))
  await raises('OTHER_KIND', 'a number asked of text', () => text.has(1))
  await raises('OTHER_KIND', 'two kinds', () => Fav.from(['a', 1]))
  test(text.add('x'.repeat(3000000)).has('x'.repeat(3000000)), 'long text')

  const empty = await Fav.open(null)
  test(!empty.has(1) && !empty.has('a') && empty.kind === null && empty.count === 0, 'null is the empty filter')
  test(empty.add().kind === null && empty.add(new Uuid('{'.slice(1) + 'A'.repeat(32))).has('a'.repeat(32)), 'the first element decides')
  test(empty.remove('a'.repeat(32)).kind === null && empty.add(1).kind === 'bigint', 'an empty filter has no kind')
  for (const bytes of [undefined, '\\x0100', [1, 2], {}]) await raises('TypeError', `open ${bytes}`, () => Fav.open(bytes))
  test((await Fav.open((await Fav.from([7])).bytes().buffer)).has(7), 'an ArrayBuffer')
  await raises('BAD_PARAMETER', 'region size', () => Fav.from([], { regionSize: 32 }))
  await raises('BAD_PARAMETER', 'capacity', () => Fav.from([], { capacity: -1 }))
  await raises('BAD_PARAMETER', 'error rate', () => Fav.from([], { errorRate: NaN }))
  await raises('TOO_LARGE', 'a large capacity', () => Fav.from([], { capacity: 1e12 }))
}

/** Filters are independent, and their memory is released. */
async function testMany() {
  const many = await Promise.all(range(1, 50).map(i => Fav.from([i])))
  test(many.every((fav, i) => fav.has(i + 1) && !fav.has(i + 2)), 'many filters at once')
  const bytes = (await Fav.from(range(1, 100000))).bytes()
  let all = true
  for (let i = 0; i < 300; i++) all &&= (await Fav.open(bytes)).has(5)
  test(all, 'many filters after each other')
}

/** Bytes from anywhere: a FavError, or a filter that works.  Never a trap. */
async function testHostile(files) {
  let state = 1
  const random = limit => (state = (Math.imul(state, 1103515245) + 12345) >>> 0) % limit
  for (const { name, bytes } of files) {
    const traps = []
    for (let round = 0; round < 20; round++) {
      const damaged = round % 6 === 5 ? bytes.slice(0, random(bytes.length + 1)) : bytes.slice()
      if (round > 0 && damaged.length > 0)
        damaged[random(round % 4 === 0 ? damaged.length : Math.min(damaged.length, 100))] ^= 1 << random(8)
      try {
        const fav = await Fav.open(damaged)
        const id = { text: 'x', uuid: '0'.repeat(32), bytea: new Uint8Array(3), pair: [1, 2] }[fav.kind] ?? 1
        fav.has(id)
        fav.count
        for (const change of [() => fav.add(id), () => fav.remove(id), () => fav.exclude(id)])
          try {
            change()
          } catch (error) {
            if (!(error instanceof FavError)) throw error
          }
        if (fav.has(id)) throw new Error('an excluded element is there')
        await Fav.open(fav.bytes())
      } catch (error) {
        if (!(error instanceof FavError)) traps.push(`round ${round}: ${error}`)
      }
    }
    test(traps.length === 0, `${name}: ${traps}`)
  }
}

export async function run(golden, files) {
  await testElements()
  await testGolden(golden)
  await testMany()
  await testHostile(files)
  return [...messages, `js: ${passed} passed, ${failed} failed`].join('\n')
}

if (globalThis.process?.argv[1]?.endsWith('test.mjs')) {
  const { readFileSync, readdirSync } = await import('node:fs')
  const root = new URL('../../', import.meta.url)
  const files = ['open', 'ops'].flatMap(folder => readdirSync(new URL(`test/core/corpus/${folder}`, root))
    .map(name => ({ name, bytes: new Uint8Array(readFileSync(new URL(`test/core/corpus/${folder}/${name}`, root))) })))
  const { files: shipped } = JSON.parse(readFileSync(new URL('package.json', import.meta.url)))
  const size = [...shipped, 'package.json', 'README.md'].reduce((sum, name) => sum + readFileSync(new URL(name, import.meta.url)).length, 0)
  test(size <= 60000, `the package has ${size} bytes`)
  const license = readFileSync(new URL('LICENSE', import.meta.url), 'utf8')
  test(license.startsWith(readFileSync(new URL('LICENSE', root), 'utf8').trim()), 'the package has the license of the repository')
  const result = await run(readFileSync(new URL('expected/golden.out', root), 'utf8'), files)
  console.log(result)
  process.exitCode = failed > 0 ? 1 : 0
}
