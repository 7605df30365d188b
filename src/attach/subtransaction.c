/*
 * subtransaction.c
 *		Calling a function in a subtransaction.
 */
#include "attach/subtransaction.h"

#include "access/xact.h"
#include "utils/resowner.h"

/*
 * Call a function in a subtransaction, in the current memory context.  Returns the error that
 * rolled it back, or NULL.
 */
ErrorData *
fav_try(void (*function) (void *argument), void *argument)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	ErrorData  *volatile error = NULL;

	BeginInternalSubTransaction(NULL);
	PG_TRY();
	{
		MemoryContextSwitchTo(context);
		function(argument);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	return error;
}
