// postgres.js (npm: postgres)

const postgres = require('postgres')
const { read, natural, show, showError } = require('./lines.js')

async function main() {
	const sql = postgres({ max: 1, onnotice: () => {} })
	let last

	for (const [mode, text, parameters] of read()) {
		if (mode === 'binary') {
			console.log('unsupported')
			continue
		}
		try {
			const values = parameters.map(([kind, value]) => natural(kind, value, last))
			const rows = await sql.unsafe(text, values, { prepare: mode === 'prepared' }).values()
			last = rows.length ? rows[0][0] : undefined
			console.log(show(last))
		} catch (error) {
			console.log(showError(error))
		}
	}
	await sql.end()
}

main().catch(error => { console.error(error); process.exit(1) })
