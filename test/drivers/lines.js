// What the programs for Node.js share: the lines of README.md.

// [mode, sql, [[kind, value], ...]] for each line of the standard input
exports.read = () =>
	require('fs').readFileSync(0, 'utf8').split('\n').slice(0, -1).map(line => {
		const [mode, sql, ...parameters] = line.split('\t')
		return [mode, sql, parameters.map(p => p.match(/^(\w+) ?(.*)$/).slice(1))]
	})

// The value that a JavaScript programmer would give.
const number = text => Number.isSafeInteger(Number(text)) ? Number(text) : BigInt(text)

exports.natural = (kind, text, last) => {
	switch (kind) {
		case 'int': return number(text)
		case 'ints': return text.split(',').map(number)
		case 'strs': case 'uuids': return text.split(',')
		case 'bytes': return Buffer.from(text, 'hex')
		case 'null': return null
		case 'last': return last
		default: return text
	}
}

const show = exports.show = value =>
	value === undefined ? '-' :
	value === null ? 'NULL' :
	typeof value === 'boolean' ? (value ? 't' : 'f') :
	Buffer.isBuffer(value) ? '\\x' + value.toString('hex') :
	Array.isArray(value) ? '{' + value.map(show).join(',') + '}' : String(value)

exports.showError = error => {
	// what the server did not say is a failure of the program
	if (!error.code || !error.severity)
		throw error
	return `ERROR ${error.code} ${error.message}`
}
