/* main.c - the command loam: finds the command in the first words, reads its options, runs it. It sees nothing of the library but
 * include/loam. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "options.h"
#include "util.h"

static int no_command(int argc, char **argv)
{
    const char *word = argv[1], *second = argc > 2 ? argv[2] : NULL;
    char text[64], tools[256];
    nearest near;
    group_tools(word, ", ", tools, sizeof tools);
    if (tools[0] && second && second[0] != '-') {
        snprintf(text, sizeof text, "%s %s", word, second);
    } else if (tools[0]) {
        fprintf(stderr, "loam %s: name a tool: %s\n", word, tools);
        return EXIT_USAGE;
    } else {
        snprintf(text, sizeof text, "%s", word);
    }
    nearest_begin(&near, text);
    for (int i = 0; i < CMD_COUNT; i++) nearest_offer(&near, commands[i].name);
    if (near.best[0]) fprintf(stderr, "loam: there is no command '%s'; did you mean %s?\n", text, near.best);
    else fprintf(stderr, "loam: there is no command '%s'\n", text);
    fprintf(stderr, "See: loam help\n");
    return EXIT_USAGE;
}

int main(int argc, char **argv)
{
    process_age_ns();
    signal(SIGXFSZ, SIG_IGN); /* a limit on file sizes is an error of writing, not the end of the process */
    if (argc < 2) {
        help_overview();
        return EXIT_USAGE;
    }
    static char help[] = "help", version[] = "version";
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) argv[1] = help;
    if (strcmp(argv[1], "--version") == 0) argv[1] = version;
    int used;
    if (command_find(argc - 1, argv + 1, &used) < 0) return no_command(argc, argv);
    options o;
    int code = options_parse(&o, argc, argv);
    if (code == EXIT_DONE && opt_given(&o, OPT_HELP_FLAG)) help_command(o.command);
    else if (code == EXIT_DONE) code = commands[o.command].run(&o);
    options_free(&o);
    return code;
}
