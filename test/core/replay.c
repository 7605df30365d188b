/*
 * replay.c
 *		Feed the corpus to the fuzz targets, without libFuzzer.
 *
 * Usage: replay <directory for fuzz_open> <directory for fuzz_ops> <directory for fuzz_bounded>
 */
#include <dirent.h>

#include "fuzz.h"

#define FILE_MAX 65536

static void
replay_file(const char *directory, const char *name, void (*target) (const uint8_t *, size_t))
{
	char		path[1024];
	uint8_t    *bytes = malloc(FILE_MAX);
	uint8_t    *exact;
	size_t		size;
	FILE	   *file;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "rb");
	CHECK_THAT(file != NULL, "cannot open %s", path);
	if (file != NULL)
	{
		size = fread(bytes, 1, FILE_MAX, file);
		fclose(file);

		/* an allocation of the exact size, so that the sanitizer detects reads past the end */
		exact = malloc(size > 0 ? size : 1);
		memcpy(exact, bytes, size);
		target(exact, size);
		free(exact);
	}
	free(bytes);
}

static void
replay(const char *directory, void (*target) (const uint8_t *, size_t))
{
	DIR		   *files = opendir(directory);
	struct dirent *entry;
	int			count = 0;

	test_begin("replay: %s", directory);
	while (files != NULL && (entry = readdir(files)) != NULL)
		if (entry->d_name[0] != '.')
		{
			replay_file(directory, entry->d_name, target);
			count++;
		}
	if (files != NULL)
		closedir(files);
	CHECK_THAT(count > 0, "no files");
	printf("replay: %d files of %s\n", count, directory);
	test_end();
}

int
main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	replay(argv[1], fuzz_open);
	replay(argv[2], fuzz_ops);
	replay(argv[3], fuzz_bounded);
	return test_summary("replay");
}
