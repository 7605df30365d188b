// Builds wasm.js from ../../src: npm run build
//
// It needs clang, wasm-ld and a C library for WebAssembly (Debian: clang, lld, wasi-libc), and
// xxhash.h (libxxhash-dev).  CLANG and WASI_SYSROOT choose others.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'

const here = fileURLToPath(new URL('.', import.meta.url))
const src = join(here, '../../src')
const folder = mkdtempSync(join(tmpdir(), 'fav-'))
const result = join(folder, 'fav.wasm')
const sources = [
  ...readdirSync(join(src, 'core')).filter(name => name.endsWith('.c')).sort().map(name => join(src, 'core', name)),
  join(src, 'lib/libfav.c'), join(here, 'wasm.c'), join(here, 'printf.c')
]

const run = (program, ...options) => execFileSync(program, options, { stdio: 'inherit' })
const clang = process.env.CLANG ?? 'clang'
const target = ['--target=wasm32-wasi', `--sysroot=${process.env.WASI_SYSROOT ?? '/usr'}`]

try {
  // What a probe calls is made for speed, everything else for size.
  for (const [number, source] of sources.entries())
    run(clang, ...target, /(slice|libfav|wasm)\.c$/.test(source) ? '-O3' : '-Oz', '-flto', '-std=gnu11', '-mbulk-memory',
      '-ffp-contract=off', '-DNDEBUG', '-Wall', '-Wextra', '-Werror', `-I${src}`, `-I${join(src, 'lib')}`,
      '-c', '-o', join(folder, `${number}.o`), source)
  // The stack comes first, so that an overflow is a trap and overwrites nothing.
  run(clang, ...target, '-flto', '-nostdlib', '-o', result, ...sources.map((_, number) => join(folder, `${number}.o`)), '-lc',
    ...['--no-entry', '--stack-first', '-z,stack-size=262144', '--gc-sections', '--strip-all'].map(option => `-Wl,${option}`))
  const wasm = readFileSync(result)
  const imports = WebAssembly.Module.imports(new WebAssembly.Module(wasm))
  if (imports.length > 0) throw new Error(`the module imports ${imports.map(({ name }) => name)}`)
  writeFileSync(join(here, 'wasm.js'),
    `// made by build.mjs: gzip, base64\nexport default '${gzipSync(wasm, { level: 9 }).toString('base64')}'\n`)
  console.log(`wasm.js: ${wasm.length} bytes of WebAssembly`)
} finally {
  rmSync(folder, { recursive: true })
}
