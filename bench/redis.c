/*
 * Feed pages per second of one client, for the section redis of bench/run.
 *
 *   redis SECONDS TOPICS USER QUERY                        PostgreSQL filters
 *   redis SECONDS TOPICS USER QUERY SOCKET COMMAND KEY     Redis filters
 *
 * QUERY is prepared and returns the ids of a page; $1 is the topic and $2 the user.  Without a
 * socket, these are the visible ones.  With a socket, they are candidates: all of them go to
 * Redis as COMMAND KEY id..., in one round trip, and those for which it answers 0 are visible.
 *
 * Prints the visible ids in the pages of the first topics, as a check and to warm up, and then
 * the pages per second.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <hiredis/hiredis.h>
#include <libpq-fe.h>

#define CHECKED_PAGES 100
#define MAX_CANDIDATES 1000

static PGconn *server;
static redisContext *redis;
static const char *user;
static const char *command;
static const char *key;

static void
fail(const char *what, const char *why)
{
	fprintf(stderr, "redis: %s: %s\n", what, why);
	exit(1);
}

/* Keep the ids that Redis does not report; returns their number. */
static int
filter_by_redis(char **ids, int count)
{
	const char *words[2 + MAX_CANDIDATES];
	redisReply *reply;
	int			visible = 0;

	words[0] = command;
	words[1] = key;
	memcpy(words + 2, ids, count * sizeof(char *));
	reply = redisCommandArgv(redis, 2 + count, words, NULL);
	if (reply == NULL)
		fail(command, redis->errstr);
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != (size_t) count)
		fail(command, reply->type == REDIS_REPLY_ERROR ? reply->str : "unexpected reply");
	for (int i = 0; i < count; i++)
		if (reply->element[i]->integer == 0)
			ids[visible++] = ids[i];
	freeReplyObject(reply);
	return visible;
}

/* One page: the number of its visible ids. */
static int
page(int topic)
{
	char		number[16];
	const char *values[2] = {number, user};
	char	   *ids[MAX_CANDIDATES];
	PGresult   *result;
	int			count;

	snprintf(number, sizeof(number), "%d", topic);
	result = PQexecPrepared(server, "page", 2, values, NULL, NULL, 0);
	if (PQresultStatus(result) != PGRES_TUPLES_OK)
		fail("page", PQerrorMessage(server));
	count = PQntuples(result);
	if (count > MAX_CANDIDATES)
		fail("page", "too many candidates");
	for (int i = 0; i < count; i++)
		ids[i] = PQgetvalue(result, i, 0);
	if (redis != NULL && count > 0)
		count = filter_by_redis(ids, count);
	PQclear(result);
	return count;
}

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

int
main(int argc, char **argv)
{
	double		seconds;
	double		began;
	double		elapsed;
	int			topics;
	long		visible = 0;
	long		pages = 0;
	PGresult   *result;

	if (argc != 5 && argc != 8)
		fail("usage", "redis SECONDS TOPICS USER QUERY [SOCKET COMMAND KEY]");
	seconds = atof(argv[1]);
	topics = atoi(argv[2]);
	user = argv[3];

	server = PQconnectdb("");
	if (PQstatus(server) != CONNECTION_OK)
		fail("connect", PQerrorMessage(server));
	result = PQprepare(server, "page", argv[4], 0, NULL);
	if (PQresultStatus(result) != PGRES_COMMAND_OK)
		fail("prepare", PQerrorMessage(server));
	PQclear(result);
	if (argc == 8)
	{
		redis = redisConnectUnix(argv[5]);
		if (redis == NULL || redis->err)
			fail("connect", redis == NULL ? "out of memory" : redis->errstr);
		command = argv[6];
		key = argv[7];
	}

	for (int i = 0; i < CHECKED_PAGES; i++)
		visible += page(i % topics);

	began = now();
	do
		page(rand() % topics);
	while (pages++, (elapsed = now() - began) < seconds);
	printf("%ld %.2f\n", visible, pages / elapsed);

	if (redis != NULL)
		redisFree(redis);
	PQfinish(server);
	return 0;
}
