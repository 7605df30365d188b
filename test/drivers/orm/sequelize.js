// Sequelize (npm: sequelize, with pg)

const { DataTypes, Sequelize, col, fn, where } = require('sequelize')

const { PGHOST, PGPORT, PGUSER, PGPASSWORD, PGDATABASE } = process.env
const sequelize = new Sequelize(PGDATABASE, PGUSER, PGPASSWORD,
	{ dialect: 'postgres', host: PGHOST, port: PGPORT, logging: false })
const options = { timestamps: false }
const Post = sequelize.define('post', { id: { type: DataTypes.BIGINT, primaryKey: true }, reader: DataTypes.BIGINT },
	{ ...options, tableName: 'posts' })
const Hidden = sequelize.define('hidden', {
	user_id: { type: DataTypes.BIGINT, primaryKey: true },
	post_id: { type: DataTypes.BIGINT, primaryKey: true },
}, { ...options, tableName: 'hidden_posts' })

async function main() {
	const feed = async () =>
		(await Post.findAll({ where: where(fn('hidden_posts_has', 7, col('post.id')), false), order: [['id', 'DESC']] }))
			.map(post => post.id).join(' ')

	await Hidden.create({ user_id: 7, post_id: 42 })
	console.log(await feed())
	await Hidden.destroy({ where: { user_id: 7, post_id: 42 } })
	console.log(await feed())
	await sequelize.close()
}

main().catch(error => { console.error(error); process.exit(1) })
