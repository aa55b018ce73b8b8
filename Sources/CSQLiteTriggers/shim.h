#pragma once

// One function of SQLite, which Swift cannot call, since it has a variable number of arguments. It is declared here and not
// included, since another module has SQLite's header. Reference: https://sqlite.org/c3ref/db_config.html
struct sqlite3;
int sqlite3_db_config(struct sqlite3 *, int operation, ...);

// Switches all triggers on or off, for this connection. Returns SQLite's result code.
static inline int csqlite_switch_triggers(void *_Nonnull connection, int isOn) {
    const int enableTrigger = 1003;
    return sqlite3_db_config((struct sqlite3 *)connection, enableTrigger, isOn, (int *)0);
}
