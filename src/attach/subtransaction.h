/*
 * subtransaction.h
 *		Calling a function in a subtransaction.
 */
#ifndef FAV_SUBTRANSACTION_H
#define FAV_SUBTRANSACTION_H

#include "postgres.h"

extern ErrorData *fav_try(void (*function) (void *argument), void *argument);

#endif							/* FAV_SUBTRANSACTION_H */
