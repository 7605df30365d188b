/*
 * client.c
 *		A client of PostgreSQL, and of Redis beside it, for bench/run.
 *
 *		client page SECONDS USER TOPICS QUERY [SOCKET COMMAND KEY]
 *		client add TURNS USERS FIRST QUERY
 *		client add TURNS USERS FIRST SOCKET COMMAND
 *		client life SECONDS CLIENTS USERS TOPICS POSTS PAGE HIDE UNHIDE SAMPLE [SOCKET]
 *
 * page: the pages per second of one user.  QUERY gets the user and a topic and returns the ids of
 * candidates.  With a socket, Redis is asked for all of them in one more round trip.
 *
 * add: microseconds per page view that adds 50 elements to the set of a user and learns which of
 * them, half, are new.  QUERY gets the user and an array.  Redis gets a pipeline of COMMAND (SADD,
 * CF.ADDNX), or one command if it takes many and tells each (BF.MADD).
 *
 * life: 80 % pages, 15 % hides, 5 % unhides.  PAGE gets user, topic and the id that all posts are
 * below, HIDE and UNHIDE get user and post, UNHIDE returns the post.  With a socket, the page's
 * posts are candidates for Redis, which has the sets as well.  SAMPLE is run every five seconds;
 * its columns are printed by name.
 *
 * Prints lines of: name, size, value (tab separated).
 */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <hiredis/hiredis.h>
#include <libpq-fe.h>

#define PAGE			50		/* posts of a page; elements of an add */
#define MAX_CANDIDATES	1000
#define MAX_CLIENTS		64
#define KINDS			3
#define BUCKETS			1500	/* of latencies, one per cent wide */

typedef struct Client
{
	PGconn	   *server;
	redisContext *redis;
	uint64_t	random;
	atomic_long done[KINDS];
	long		latencies[KINDS][BUCKETS];
} Client;

static const char *const kind_names[KINDS] = {"page", "hide", "unhide"};
static Client clients[MAX_CLIENTS];
static double *share_up_to;		/* of requests, by rank of the user */
static long users, topics, posts;
static double end;

static void
fail(const char *what, const char *why)
{
	fprintf(stderr, "client: %s: %s\n", what, why);
	exit(1);
}

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static uint64_t
next_random(Client *client)
{
	uint64_t	z = (client->random += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static void
prepare(Client *client, const char *name, const char *query, int integers)
{
	/* the first parameters are of type bigint, whether the query has all of them or not */
	static const Oid bigints[] = {20, 20, 20};
	PGresult   *result = PQprepare(client->server, name, query, integers, bigints);

	if (PQresultStatus(result) != PGRES_COMMAND_OK)
		fail(query, PQerrorMessage(client->server));
	PQclear(result);
}

static void
connect_client(Client *client, const char *socket)
{
	client->server = PQconnectdb("");
	if (PQstatus(client->server) != CONNECTION_OK)
		fail("connect", PQerrorMessage(client->server));
	if (socket != NULL)
	{
		client->redis = redisConnectUnix(socket);
		if (client->redis == NULL || client->redis->err)
			fail(socket, "cannot connect");
	}
}

/* Run a prepared statement with numbers as parameters. */
static PGresult *
run(Client *client, const char *name, int count, const long *numbers)
{
	char		text[3][24];
	const char *values[3];
	PGresult   *result;

	for (int i = 0; i < count; i++)
	{
		snprintf(text[i], sizeof(text[i]), "%ld", numbers[i]);
		values[i] = text[i];
	}
	result = PQexecPrepared(client->server, name, count, values, NULL, NULL, 0);
	if (PQresultStatus(result) != PGRES_TUPLES_OK && PQresultStatus(result) != PGRES_COMMAND_OK)
		fail(name, PQerrorMessage(client->server));
	return result;
}

static redisReply *
checked(Client *client, redisReply *reply)
{
	if (reply == NULL)
		fail("Redis", client->redis->errstr);
	if (reply->type == REDIS_REPLY_ERROR)
		fail("Redis", reply->str);
	return reply;
}

/* How many of a result's ids are visible?  Those that Redis does not report, or all of them. */
static int
visible(Client *client, PGresult *result, const char *command, const char *key)
{
	const char *words[2 + MAX_CANDIDATES] = {command, key};
	int			count = PQntuples(result);
	int			found = 0;
	redisReply *reply;

	if (client->redis == NULL || count == 0)
		return count;
	if (count > MAX_CANDIDATES)
		fail("page", "too many candidates");
	for (int i = 0; i < count; i++)
		words[2 + i] = PQgetvalue(result, i, 0);
	reply = checked(client, redisCommandArgv(client->redis, 2 + count, words, NULL));
	for (size_t i = 0; i < reply->elements; i++)
		found += reply->element[i]->integer == 0;
	freeReplyObject(reply);
	return found;
}

static void
measure_pages(char **argv, int argc)
{
	Client	   *client = &clients[0];
	double		began = 0;
	bool		in_redis = argc > 4;
	long		seen = 0;
	long		pages = 0;

	topics = atol(argv[2]);
	connect_client(client, in_redis ? argv[4] : NULL);
	prepare(client, "page", argv[3], 0);
	/* the first hundred warm up, and their ids are counted as a check */
	for (long i = 0;; i++)
	{
		PGresult   *result = run(client, "page", 2, (long[]) {atol(argv[1]), i * 7919 % topics});
		int			found = visible(client, result, in_redis ? argv[5] : NULL, in_redis ? argv[6] : NULL);

		PQclear(result);
		if (i < 100)
			seen += found;
		if (i < 100)
			began = now();
		else if (pages++, now() - began >= atof(argv[0]))
			break;
	}
	printf("visible\t0\t%ld\npages\t0\t%.2f\n", seen, pages / (now() - began));
}

static void
measure_adds(char **argv, int argc)
{
	Client	   *client = &clients[0];
	bool		in_redis = argc == 5;
	bool		many = in_redis && strcmp(argv[4], "BF.MADD") == 0;
	double		took = 0;
	long		added = 0;
	long		turns = atol(argv[0]);

	users = atol(argv[1]);
	connect_client(client, in_redis ? argv[3] : NULL);
	if (!in_redis)
		prepare(client, "add", argv[3], 0);
	for (long turn = 0; turn < turns; turn++)
	{
		/* Half of the elements are those of the user's last turn. */
		long		first = (atol(argv[2]) + turn / users) * PAGE / 2;
		char		user[24];
		char		key[40];
		char		ids[PAGE][24];
		char		array[PAGE * 24 + 2] = "{";
		const char *words[2 + PAGE] = {in_redis ? argv[4] : "", key};
		double		start;

		snprintf(user, sizeof(user), "%ld", turn % users);
		snprintf(key, sizeof(key), "%s:%s", in_redis ? argv[4] : "", user);
		for (int i = 0; i < PAGE; i++)
		{
			snprintf(ids[i], sizeof(ids[i]), "%lld",
					 (long long) ((uint64_t) (first + i + 1) * UINT64_C(0x9e3779b97f4a7c15)));
			words[2 + i] = ids[i];
			strcat(strcat(array, i > 0 ? "," : ""), ids[i]);
		}
		strcat(array, "}");
		start = now();
		if (!in_redis)
		{
			PGresult   *result = PQexecPrepared(client->server, "add", 2, (const char *[]) {user, array}, NULL, NULL, 0);

			if (PQresultStatus(result) != PGRES_TUPLES_OK)
				fail("add", PQerrorMessage(client->server));
			added += PQntuples(result);
			PQclear(result);
		}
		else
		{
			for (int i = 0; i < (many ? 1 : PAGE); i++)
				redisAppendCommandArgv(client->redis, many ? 2 + PAGE : 3,
									   many ? words : (const char *[]) {words[0], key, ids[i]}, NULL);
			for (int i = 0; i < (many ? 1 : PAGE); i++)
			{
				void	   *reply = NULL;
				redisReply *answer;

				redisGetReply(client->redis, &reply);
				answer = checked(client, reply);
				added += many ? 0 : answer->integer;
				for (size_t j = 0; j < answer->elements; j++)
					added += answer->element[j]->integer;
				freeReplyObject(answer);
			}
		}
		took += now() - start;
	}
	printf("microseconds\t0\t%.2f\nnew\t0\t%.3f\n", took * 1e6 / turns, (double) added / turns);
}

/* Zipf's law: the r-th most active user makes a share of 1/r of the requests. */
static long
random_user(Client *client)
{
	double		x = (double) (next_random(client) >> 11) / 9007199254740992.0 * share_up_to[users - 1];
	long		low = 0;
	long		high = users - 1;

	while (low < high)
	{
		long		middle = (low + high) / 2;

		if (share_up_to[middle] < x)
			low = middle + 1;
		else
			high = middle;
	}
	return low * 7919 % users;	/* neighbours in activity are not neighbours in the tables */
}

static void
live_once(Client *client, int kind)
{
	long		user = random_user(client);
	long		topic = next_random(client) % topics;
	long		post = next_random(client) % posts;
	char		key[40];
	PGresult   *result;

	snprintf(key, sizeof(key), "hidden:%ld", user);
	if (kind == 0)
	{
		int			found = 0;
		int			count;
		long		below = posts;

		/* more candidates if Redis leaves too few of them */
		do
		{
			result = run(client, "page", 3, (long[]) {user, topic, below});
			count = PQntuples(result);
			if (count > 0)
				below = atol(PQgetvalue(result, count - 1, 0));
			found += visible(client, result, "SMISMEMBER", key);
			PQclear(result);
		} while (client->redis != NULL && found < PAGE && count >= PAGE);
		return;
	}
	result = run(client, kind_names[kind], 2, (long[]) {user, post});
	if (client->redis != NULL && kind == 1)
		freeReplyObject(checked(client, redisCommand(client->redis, "SADD %s %ld", key, post)));
	else if (client->redis != NULL && PQntuples(result) > 0)
		freeReplyObject(checked(client, redisCommand(client->redis, "SREM %s %s", key, PQgetvalue(result, 0, 0))));
	PQclear(result);
}

static void *
live(void *argument)
{
	Client	   *client = argument;

	while (now() < end)
	{
		long		dice = next_random(client) % 100;
		int			kind = dice < 80 ? 0 : dice < 95 ? 1 : 2;
		double		start = now();
		int			bucket;

		live_once(client, kind);
		bucket = (int) (log((now() - start) * 1e6 + 1) / log(1.01));
		client->latencies[kind][bucket < BUCKETS ? bucket : BUCKETS - 1]++;
		atomic_fetch_add(&client->done[kind], 1);
	}
	return NULL;
}

static void
sample(Client *client, int second)
{
	PGresult   *result = run(client, "sample", 0, NULL);

	for (int i = 0; i < PQnfields(result); i++)
		printf("%s\t%d\t%s\n", PQfname(result, i), second, PQgetvalue(result, 0, i));
	PQclear(result);
}

static void
measure_life(char **argv, int argc)
{
	int			seconds = atoi(argv[0]);
	int			count = atoi(argv[1]);
	pthread_t	threads[MAX_CLIENTS];
	Client		observer = {0};
	long		before = 0;
	double		began;

	users = atol(argv[2]);
	topics = atol(argv[3]);
	posts = atol(argv[4]);
	share_up_to = malloc(users * sizeof(double));
	if (share_up_to == NULL || count > MAX_CLIENTS)
		fail("life", "too many users or clients");
	for (long i = 0; i < users; i++)
		share_up_to[i] = (i > 0 ? share_up_to[i - 1] : 0) + 1.0 / (i + 1);
	connect_client(&observer, NULL);
	prepare(&observer, "sample", argv[8], 0);
	for (int i = 0; i < count; i++)
	{
		clients[i].random = i;
		connect_client(&clients[i], argc > 9 ? argv[9] : NULL);
		for (int kind = 0; kind < KINDS; kind++)
			prepare(&clients[i], kind_names[kind], argv[5 + kind], kind == 0 ? 3 : 2);
	}
	sample(&observer, 0);
	began = now();
	end = began + seconds;
	for (int i = 0; i < count; i++)
		pthread_create(&threads[i], NULL, live, &clients[i]);
	for (int second = 1; second <= seconds; second++)
	{
		double		wait = began + second - now();
		long		done = 0;

		if (wait > 0)
			nanosleep(&(struct timespec) {(time_t) wait, (long) (fmod(wait, 1) * 1e9)}, NULL);
		for (int i = 0; i < count; i++)
			for (int kind = 0; kind < KINDS; kind++)
				done += atomic_load(&clients[i].done[kind]);
		printf("transactions per second\t%d\t%ld\n", second, done - before);
		before = done;
		if (second % 5 == 0)
			sample(&observer, second);
	}
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	for (int kind = 0; kind < KINDS; kind++)
	{
		long		total = 0;
		long		above = 0;
		int			bucket = BUCKETS;

		for (int i = 0; i < count; i++)
			total += clients[i].done[kind];
		while (bucket > 0 && above <= total / 1000)
			for (int i = (bucket--, 0); i < count; i++)
				above += clients[i].latencies[kind][bucket];
		printf("%s, total\t0\t%ld\n%s, 99.9 %%\t0\t%.0f\n", kind_names[kind], total,
			   kind_names[kind], pow(1.01, bucket + 1));
	}
}

int
main(int argc, char **argv)
{
	if ((argc == 6 || argc == 9) && strcmp(argv[1], "page") == 0)
		measure_pages(argv + 2, argc - 2);
	else if ((argc == 6 || argc == 7) && strcmp(argv[1], "add") == 0)
		measure_adds(argv + 2, argc - 2);
	else if ((argc == 11 || argc == 12) && strcmp(argv[1], "life") == 0)
		measure_life(argv + 2, argc - 2);
	else
		fail("usage", "see the head of client.c");
	return 0;
}
