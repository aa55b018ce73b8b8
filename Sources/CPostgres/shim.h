#pragma once

// The functions of libpq, PostgreSQL's client library, that this program calls. The library is loaded when a database of
// PostgreSQL is opened for the first time: programs that use SQLite do not need it, and do not pay for its start. Version
// 14 is the first with pipelines.
// Reference: https://www.postgresql.org/docs/15/libpq.html

#include <dlfcn.h>
#include <postgresql/libpq-fe.h>
#include <stddef.h>

#define CPOSTGRES_FUNCTIONS(apply)                                                                                     \
    apply(connectdb)                                                                                                   \
    apply(status)                                                                                                      \
    apply(errorMessage)                                                                                                \
    apply(finish)                                                                                                      \
    apply(exec)                                                                                                        \
    apply(prepare)                                                                                                     \
    apply(describePrepared)                                                                                            \
    apply(resultStatus)                                                                                                \
    apply(resultErrorField)                                                                                            \
    apply(resultErrorMessage)                                                                                          \
    apply(clear)                                                                                                       \
    apply(ntuples)                                                                                                     \
    apply(nfields)                                                                                                     \
    apply(fname)                                                                                                       \
    apply(ftype)                                                                                                       \
    apply(nparams)                                                                                                     \
    apply(paramtype)                                                                                                   \
    apply(getisnull)                                                                                                   \
    apply(getvalue)                                                                                                    \
    apply(getlength)                                                                                                   \
    apply(cmdTuples)                                                                                                   \
    apply(serverVersion)                                                                                               \
    apply(transactionStatus)                                                                                           \
    apply(enterPipelineMode)                                                                                           \
    apply(exitPipelineMode)                                                                                            \
    apply(sendQueryParams)                                                                                             \
    apply(sendQueryPrepared)                                                                                           \
    apply(pipelineSync)                                                                                                \
    apply(getResult)                                                                                                   \
    apply(flush)                                                                                                       \
    apply(socket)                                                                                                      \
    apply(consumeInput)                                                                                                \
    apply(notifies)                                                                                                    \
    apply(freemem)                                                                                                     \
    apply(setNoticeProcessor)

// The types are those of libpq's own declarations.
typedef struct {
    __typeof__(&PQconnectdb) connectdb;
    __typeof__(&PQstatus) status;
    __typeof__(&PQerrorMessage) errorMessage;
    __typeof__(&PQfinish) finish;
    __typeof__(&PQexec) exec;
    __typeof__(&PQprepare) prepare;
    __typeof__(&PQdescribePrepared) describePrepared;
    __typeof__(&PQresultStatus) resultStatus;
    __typeof__(&PQresultErrorField) resultErrorField;
    __typeof__(&PQresultErrorMessage) resultErrorMessage;
    __typeof__(&PQclear) clear;
    __typeof__(&PQntuples) ntuples;
    __typeof__(&PQnfields) nfields;
    __typeof__(&PQfname) fname;
    __typeof__(&PQftype) ftype;
    __typeof__(&PQnparams) nparams;
    __typeof__(&PQparamtype) paramtype;
    __typeof__(&PQgetisnull) getisnull;
    __typeof__(&PQgetvalue) getvalue;
    __typeof__(&PQgetlength) getlength;
    __typeof__(&PQcmdTuples) cmdTuples;
    __typeof__(&PQserverVersion) serverVersion;
    __typeof__(&PQtransactionStatus) transactionStatus;
    __typeof__(&PQenterPipelineMode) enterPipelineMode;
    __typeof__(&PQexitPipelineMode) exitPipelineMode;
    __typeof__(&PQsendQueryParams) sendQueryParams;
    __typeof__(&PQsendQueryPrepared) sendQueryPrepared;
    __typeof__(&PQpipelineSync) pipelineSync;
    __typeof__(&PQgetResult) getResult;
    __typeof__(&PQflush) flush;
    __typeof__(&PQsocket) socket;
    __typeof__(&PQconsumeInput) consumeInput;
    __typeof__(&PQnotifies) notifies;
    __typeof__(&PQfreemem) freemem;
    __typeof__(&PQsetNoticeProcessor) setNoticeProcessor;
} CPostgresLibrary;

// Loads the library. Returns the name of the library or function that is missing; null if all is there.
static inline const char *cpostgres_load(CPostgresLibrary *library) {
    void *handle = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
    if (!handle) return "libpq.so.5";
#define CPOSTGRES_LOAD(name)                                                                                           \
    library->name = (__typeof__(library->name))dlsym(handle, "PQ" #name);                                             \
    if (!library->name) return "PQ" #name;
    CPOSTGRES_FUNCTIONS(CPOSTGRES_LOAD)
#undef CPOSTGRES_LOAD
    return NULL;
}

// libpq prints notices to the standard error otherwise.
static inline void cpostgres_ignore_notice(void *context, const char *message) {
    (void)context;
    (void)message;
}
