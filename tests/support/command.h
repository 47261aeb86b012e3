/* command.h - runs the built command `loam` and keeps what it says. */
#ifndef LOAM_TEST_COMMAND_H
#define LOAM_TEST_COMMAND_H

#include <stddef.h>

typedef struct command_result {
    int code;        /* exit code; 128 + signal where one ended it */
    char *out, *err; /* terminated; command_free */
    size_t out_len, err_len;
} command_result;

/* arguments: NULL-terminated, without the program's name. input: what standard input holds, NULL for nothing. */
command_result command_run(const char *input, const char *const *arguments);
void command_free(command_result *r);

/* command("run", "-m", path) */
#define command(...) command_run(NULL, (const char *const[]){ __VA_ARGS__, NULL })

#endif
