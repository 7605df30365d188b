/*
 * statements.c
 *		Statements on attached tables that have begun and not ended.
 */
#include "attach.h"

#include "access/xact.h"
#include "utils/memutils.h"

static FavStatement *statements = NULL;
static int	nstatements = 0;
static int	statements_room = 0;

/*
 * Statements that fail do not end.  An error takes the subtransaction with it in
 * which they began.
 */
static void
forget_statements(int level)
{
	int			kept = 0;
	int			i;

	for (i = 0; i < nstatements; i++)
		if (statements[i].level < level)
			statements[kept++] = statements[i];
	nstatements = kept;
}

static void
subtransaction_ended(SubXactEvent event, SubTransactionId mine, SubTransactionId parent, void *argument)
{
	(void) mine;
	(void) parent;
	(void) argument;
	if (event == SUBXACT_EVENT_ABORT_SUB)
		forget_statements(GetCurrentTransactionNestLevel());
}

static void
transaction_ended(XactEvent event, void *argument)
{
	(void) argument;
	if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT || event == XACT_EVENT_PREPARE)
	{
		nstatements = 0;
		fav_watch_forget_users();
	}
}

static void
watch_transactions(void)
{
	static bool watching = false;

	if (watching)
		return;
	RegisterSubXactCallback(subtransaction_ended, NULL);
	RegisterXactCallback(transaction_ended, NULL);
	watching = true;
}

static bool
same_attachment(const FavStatement *statement, const FavAttachment *attachment)
{
	return statement->source == attachment->source && statement->number == attachment->number;
}

void
fav_statement_begins(const FavWatch *watch)
{
	FavStatement *mine;
	int			i;

	watch_transactions();
	if (nstatements == statements_room)
	{
		int			room = Max(2 * statements_room, 16);

		statements = statements == NULL ?
			MemoryContextAlloc(TopMemoryContext, room * sizeof(FavStatement)) :
			repalloc(statements, room * sizeof(FavStatement));
		statements_room = room;
	}
	mine = &statements[nstatements];
	mine->source = watch->attachment.source;
	mine->number = watch->attachment.number;
	mine->relation = watch->relation;
	/* "used", so that a nested statement cannot have the same number */
	mine->command = GetCurrentCommandId(true);
	mine->level = GetCurrentTransactionNestLevel();
	mine->several = false;
	mine->nested = false;
	for (i = 0; i < nstatements; i++)
	{
		FavStatement *other = &statements[i];

		if (!same_attachment(other, &watch->attachment))
			continue;
		if (other->relation == mine->relation && other->command == mine->command)
			other->several = mine->several = true;
		else
			other->nested = mine->nested = true;
	}
	nstatements++;
}

/*
 * The one that ends is the last that began on this relation; with several parts,
 * any of them, as they are alike.
 */
void
fav_statement_ends(const FavWatch *watch, FavStatement *ended)
{
	int			i;

	for (i = nstatements - 1; i >= 0; i--)
		if (same_attachment(&statements[i], &watch->attachment) && statements[i].relation == watch->relation)
		{
			*ended = statements[i];
			memmove(&statements[i], &statements[i + 1], (nstatements - i - 1) * sizeof(FavStatement));
			nstatements--;
			return;
		}
	/* its BEFORE trigger is disabled: suspect the worst */
	memset(ended, 0, sizeof(*ended));
	ended->several = true;
	ended->nested = true;
}

/* Any, on whatever table? */
bool
fav_statement_is_open(void)
{
	return nstatements > 0;
}

/*
 * Will the row trigger's row be brought by a statement trigger, too?  It will if
 * a statement is open on the row's table, or on one that it inherits from, that
 * is the very command that wrote the row.
 */
bool
fav_statement_brings(const FavWatch *watch, CommandId command)
{
	int			i;

	for (i = 0; i < nstatements; i++)
		if (same_attachment(&statements[i], &watch->attachment) && statements[i].command == command &&
			list_member_oid(watch->ancestors, statements[i].relation))
			return true;
	/* it will not: for those that are open this is a nested change */
	for (i = 0; i < nstatements; i++)
		if (same_attachment(&statements[i], &watch->attachment))
			statements[i].nested = true;
	return false;
}
