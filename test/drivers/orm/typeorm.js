// TypeORM (npm: typeorm, with pg)

const { DataSource, EntitySchema } = require('typeorm')

const Post = new EntitySchema({
	name: 'Post', tableName: 'posts',
	columns: { id: { type: 'bigint', primary: true }, reader: { type: 'bigint' } },
})
const Hidden = new EntitySchema({
	name: 'Hidden', tableName: 'hidden_posts',
	columns: { user_id: { type: 'bigint', primary: true }, post_id: { type: 'bigint', primary: true } },
})

async function main() {
	const { PGHOST, PGPORT, PGUSER, PGPASSWORD, PGDATABASE } = process.env
	const source = await new DataSource({
		type: 'postgres', host: PGHOST, port: Number(PGPORT), username: PGUSER, password: PGPASSWORD,
		database: PGDATABASE, entities: [Post, Hidden],
	}).initialize()
	const feed = async () =>
		(await source.getRepository(Post).createQueryBuilder('p')
			.where('NOT hidden_posts_has(:user, p.id)', { user: 7 }).orderBy('p.id', 'DESC').getMany())
			.map(post => post.id).join(' ')

	await source.getRepository(Hidden).insert({ user_id: 7, post_id: 42 })
	console.log(await feed())
	await source.getRepository(Hidden).delete({ user_id: 7, post_id: 42 })
	console.log(await feed())
	await source.destroy()
}

main().catch(error => { console.error(error); process.exit(1) })
