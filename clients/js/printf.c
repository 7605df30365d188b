/*
 * printf.c
 *		A small vsnprintf() for WebAssembly.
 *
 * That of the C library is larger than all other code of libfav, and needs functions of the host.
 * This one knows what messages have: %d, %u, %zu, %llu, %s, %.*s and %g.
 */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A string that stops growing when it is full. */
typedef struct Text
{
	char	   *bytes;
	size_t		size;
	size_t		used;
} Text;

static void
put(Text *text, char c)
{
	if (text->used + 1 < text->size)
		text->bytes[text->used++] = c;
}

static void
put_string(Text *text, const char *string, int size)
{
	while (size-- != 0 && *string != '\0')
		put(text, *string++);
}

static void
put_number(Text *text, uint64_t number)
{
	char		digits[20];
	int			count = 0;

	do
	{
		digits[count++] = (char) ('0' + number % 10);
		number /= 10;
	}
	while (number > 0);
	while (count > 0)
		put(text, digits[--count]);
}

static void
put_signed(Text *text, int64_t number)
{
	if (number < 0)
		put(text, '-');
	put_number(text, number < 0 ? -(uint64_t) number : (uint64_t) number);
}

/* As %g for most numbers: up to six digits, without zeros at the end. */
static void
put_double(Text *text, double number)
{
	uint64_t	digits;
	int			exponent = 0;
	int			count = 6;

	if (number < 0)
		put(text, '-');
	number = number < 0 ? -number : number;
	if (number != number || number > 1.7976931348623157e308)
	{
		put_string(text, number != number ? "nan" : "inf", -1);
		return;
	}
	for (; number >= 1e6; exponent++)
		number /= 10;
	for (; number > 0 && number < 1e5; exponent--)
		number *= 10;
	digits = (uint64_t) (number + 0.5);
	for (; digits > 0 && digits % 10 == 0; exponent++)
		digits /= 10;
	if (exponent >= 0 && exponent < 6)
	{
		for (; exponent > 0; exponent--)
			digits *= 10;
		put_number(text, digits);
		return;
	}
	if (exponent < 0 && exponent >= -count - 4)
	{
		uint64_t	unit = 1;

		for (; exponent < 0; exponent++)
			unit *= 10;
		put_number(text, digits / unit);
		put(text, '.');
		for (unit /= 10; unit > 0; unit /= 10)
			put(text, (char) ('0' + digits / unit % 10));
		return;
	}
	put_number(text, digits);
	put(text, 'e');
	put_signed(text, exponent);
}

int
vsnprintf(char *bytes, size_t size, const char *format, va_list args)
{
	Text		text = {bytes, size, 0};

	for (; *format != '\0'; format++)
	{
		if (*format != '%')
			put(&text, *format);
		else if (strncmp(++format, "llu", 3) == 0)
		{
			put_number(&text, va_arg(args, unsigned long long));
			format += 2;
		}
		else if (strncmp(format, "zu", 2) == 0)
		{
			put_number(&text, va_arg(args, size_t));
			format++;
		}
		else if (strncmp(format, ".*s", 3) == 0)
		{
			int			length = va_arg(args, int);

			put_string(&text, va_arg(args, const char *), length);
			format += 2;
		}
		else if (*format == 'u')
			put_number(&text, va_arg(args, unsigned));
		else if (*format == 'd')
			put_signed(&text, va_arg(args, int));
		else if (*format == 's')
			put_string(&text, va_arg(args, const char *), -1);
		else if (*format == 'g')
			put_double(&text, va_arg(args, double));
		else
			abort();
	}
	if (size > 0)
		bytes[text.used] = '\0';
	return (int) text.used;
}
