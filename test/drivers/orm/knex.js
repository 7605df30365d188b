// Knex (npm: knex, with pg)

const knex = require('knex')({ client: 'pg', connection: {} })

async function main() {
	const feed = async () =>
		(await knex('posts').whereRaw('NOT hidden_posts_has(?, id)', [7]).orderBy('id', 'desc'))
			.map(post => post.id).join(' ')

	await knex('hidden_posts').insert({ user_id: 7, post_id: 42 })
	console.log(await feed())
	await knex('hidden_posts').where({ user_id: 7, post_id: 42 }).del()
	console.log(await feed())
	await knex.destroy()
}

main().catch(error => { console.error(error); process.exit(1) })
