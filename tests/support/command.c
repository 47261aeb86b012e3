/* command.c - see command.h. Output goes through files, so that no pipe can fill up. */
#include "command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char *rest(FILE *f, size_t *len)
{
    size_t cap = 1 << 16, n = 0, got;
    char *text = malloc(cap + 1);
    rewind(f);
    while (text && (got = fread(text + n, 1, cap - n, f)) > 0)
        if ((n += got) == cap) text = realloc(text, (cap *= 2) + 1);
    fclose(f);
    if (text) text[n] = 0;
    *len = n;
    return text;
}

command_result command_run(const char *input, const char *const *arguments)
{
    command_result r = { .code = -1 };
    FILE *in = tmpfile(), *out = tmpfile(), *err = tmpfile();
    char *argv[64] = { (char *)(size_t)LOAM_COMMAND };
    for (int i = 0; i < 62 && arguments[i]; i++) argv[i + 1] = (char *)(size_t)arguments[i];
    if (!in || !out || !err) return r;
    if (input) fwrite(input, 1, strlen(input), in);
    rewind(in);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        dup2(fileno(in), STDIN_FILENO);
        dup2(fileno(out), STDOUT_FILENO);
        dup2(fileno(err), STDERR_FILENO);
        execv(LOAM_COMMAND, argv);
        _exit(127);
    }
    int status = 0;
    if (child > 0 && waitpid(child, &status, 0) == child)
        r.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    fclose(in);
    r.out = rest(out, &r.out_len);
    r.err = rest(err, &r.err_len);
    return r;
}

void command_free(command_result *r)
{
    free(r->out);
    free(r->err);
    *r = (command_result){ 0 };
}
