// Drizzle (npm: drizzle-orm, with pg)

const { Client } = require('pg')
const { drizzle } = require('drizzle-orm/node-postgres')
const { and, desc, eq, not, sql } = require('drizzle-orm')
const { bigint, pgTable } = require('drizzle-orm/pg-core')

const posts = pgTable('posts', {
	id: bigint('id', { mode: 'number' }).primaryKey(),
	reader: bigint('reader', { mode: 'number' }),
})
const hiddenPosts = pgTable('hidden_posts', {
	userId: bigint('user_id', { mode: 'number' }),
	postId: bigint('post_id', { mode: 'number' }),
})
const isHidden = (user, post) => sql`hidden_posts_has(${user}, ${post})`

async function main() {
	const client = new Client()
	await client.connect()
	const db = drizzle(client)
	const feed = async () =>
		(await db.select({ id: posts.id }).from(posts).where(not(isHidden(7, posts.id))).orderBy(desc(posts.id)))
			.map(post => post.id).join(' ')

	await db.insert(hiddenPosts).values({ userId: 7, postId: 42 })
	console.log(await feed())
	await db.delete(hiddenPosts).where(and(eq(hiddenPosts.userId, 7), eq(hiddenPosts.postId, 42)))
	console.log(await feed())
	await client.end()
}

main().catch(error => { console.error(error); process.exit(1) })
