// The tests of test.mjs in a headless browser: node test_browser.mjs BROWSER
//
// Serves the package and the golden values, and reads the page when the tests are through.
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const here = new URL('.', import.meta.url)
const root = new URL('../../', here)
const corpus = readdirSync(new URL('test/core/corpus/open', root))
const page = `<script type="module">
  import { run } from '/test.mjs'
  const golden = await (await fetch('/golden.out')).text()
  const files = await Promise.all(${JSON.stringify(corpus)}.map(async name => (
    { name, bytes: new Uint8Array(await (await fetch('/corpus/' + name)).arrayBuffer()) })))
  const result = await run(golden, files).catch(error => 'FAILED: ' + error.stack)
  await fetch('/result', { method: 'POST', body: result })
</script>`

const folder = mkdtempSync(join(tmpdir(), 'fav-browser-'))
let done
const result = new Promise(resolve => { done = resolve })
const server = createServer((request, response) => {
  const { url } = request
  const name = url.slice(1)
  if (url === '/') response.setHeader('Content-Type', 'text/html').end(page)
  else if (url === '/golden.out') response.end(readFileSync(new URL('expected/golden.out', root)))
  else if (url.startsWith('/corpus/')) response.end(readFileSync(new URL(`test/core/corpus/open/${url.slice(8)}`, root)))
  else if (['fav.js', 'wasm.js', 'test.mjs'].includes(name)) response.setHeader('Content-Type', 'text/javascript').end(readFileSync(new URL(name, here)))
  else if (url === '/result') {
    let body = ''
    request.on('data', data => { body += data }).on('end', () => done(body))
    response.end()
  } else response.writeHead(404).end()
})
server.listen(0, '127.0.0.1', () => {
  const browser = execFile(process.argv[2], ['--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', `--user-data-dir=${folder}`,
    '--remote-debugging-port=0', `http://127.0.0.1:${server.address().port}/`], error => { if (error && !error.killed) done(`FAILED: ${error.message.slice(0, 2000)}\nbrowser: 0 passed, 1 failed`) })
  const timer = setTimeout(() => done('FAILED: no result within five minutes\nbrowser: 0 passed, 1 failed'), 300000)
  result.then(text => {
    console.log(text.replace(/^js: /m, 'browser: '))
    process.exitCode = / [1-9]\d* passed, 0 failed$/.test(text) ? 0 : 1
    clearTimeout(timer)
    const end = () => {
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
      process.exit()
    }
    if (browser.exitCode !== null || !browser.kill()) end()
    browser.once('exit', end)
  })
})
