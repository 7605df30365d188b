// node-postgres (Debian: node-pg, npm: pg)

const { Client } = require('pg')
const { read, natural, show, showError } = require('./lines.js')

async function main() {
	const client = new Client()
	const statements = new Map()
	let last

	await client.connect()
	for (const [mode, sql, parameters] of read()) {
		// it takes the bytes of a binary result for UTF-8
		if (mode === 'binary') {
			console.log('unsupported')
			continue
		}
		const values = parameters.map(([kind, text]) => natural(kind, text, last))
		const query = { text: sql, values, rowMode: 'array' }

		if (mode === 'prepared') {
			if (!statements.has(sql))
				statements.set(sql, `statement ${statements.size}`)
			query.name = statements.get(sql)
		}
		try {
			const { rows } = await client.query(query)
			last = rows.length ? rows[0][0] : undefined
			console.log(show(last))
		} catch (error) {
			console.log(showError(error))
		}
	}
	await client.end()
}

main().catch(error => { console.error(error); process.exit(1) })
