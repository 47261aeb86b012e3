/* help.c - `loam help`: what there is, and the options of a command, from the tables. */
#include <stdio.h>
#include <string.h>

#include "options.h"
#include "util.h"

#define TEXT_COLUMN 34
#define RIGHT       118

/* Breaks text at blanks so that it stays between the columns. */
static void wrapped(const char *text, int at)
{
    for (const char *p = text; *p; p += strspn(p, " ")) {
        int word = (int)strcspn(p, " "), blank = p > text;
        if (at + blank + word > RIGHT && at > TEXT_COLUMN) {
            printf("\n%*s", TEXT_COLUMN, "");
            at = TEXT_COLUMN;
            blank = 0;
        }
        printf("%s%.*s", blank ? " " : "", word, p);
        at += blank + word;
        p += word;
    }
}

static void option_line(const option_row *row)
{
    char text[512], line[96] = "  ", name[32];
    size_t n = 2;
    for (const char *p = row->names; p;) {
        p = option_name(p, name);
        n += (size_t)snprintf(line + n, sizeof line - n, "%s%s", name, p ? ", " : "");
    }
    if (*row->argument) n += (size_t)snprintf(line + n, sizeof line - n, " %s", row->argument);
    printf("%s", line);
    if (n + 2 > TEXT_COLUMN) {
        putchar('\n');
        n = 0;
    }
    printf("%*s", TEXT_COLUMN - (int)n, "");
    snprintf(text, sizeof text, "%s%s%s%s", row->help, *row->fallback ? " (default " : "", row->fallback,
             *row->fallback ? ")" : "");
    wrapped(text, TEXT_COLUMN);
    putchar('\n');
}

void help_command(int command)
{
    const char *group = "";
    printf("loam %s - %s\n\nUsage: loam %s [option...]%s%s\n", commands[command].name, commands[command].summary,
           commands[command].name, *commands[command].arguments ? " " : "", commands[command].arguments);
    for (int i = 0; i < OPT_COUNT; i++) {
        const option_row *row = &option_rows[i];
        if (!option_of(row, command)) continue;
        if (strcmp(group, row->group) != 0) printf("\n%s\n", row->group);
        group = row->group;
        option_line(row);
    }
}

void help_overview(void)
{
    printf("Loam runs, quantizes and measures language models on this machine.\n\nUsage: loam COMMAND [option...]\n\n");
    for (int i = 0; i < CMD_COUNT; i++) printf("  %-18s %s\n", commands[i].name, commands[i].summary);
    printf("\nloam help COMMAND explains its options; loam help --man and --completion bash|zsh|fish print the manual page and "
           "completions.\n"
           "Exit codes: 0 done, 1 failed, 2 wrong usage.\n");
}

int cmd_help(const options *o)
{
    if (opt_given(o, OPT_MAN)) {
        help_man();
    } else if (opt_given(o, OPT_COMPLETION)) {
        help_completion(opt_text(o, OPT_COMPLETION));
    } else if (o->n_words) {
        char *words[2] = { (char *)(uintptr_t)o->words[0], o->n_words > 1 ? (char *)(uintptr_t)o->words[1] : NULL };
        int used = 0, command = command_find(o->n_words, words, &used);
        if (command < 0 || used != o->n_words) {
            if (command >= 0) return say_usage(o, "'%s' is no part of the command '%s'", o->words[used], commands[command].name);
            nearest near;
            nearest_begin(&near, o->words[0]);
            for (int i = 0; i < CMD_COUNT; i++) nearest_offer(&near, commands[i].name);
            char tools[256];
            group_tools(o->words[0], ", ", tools, sizeof tools);
            if (tools[0]) return say_usage(o, "%s has the tools %s", o->words[0], tools);
            if (near.best[0]) return say_usage(o, "there is no command '%s'; did you mean %s?", o->words[0], near.best);
            return say_usage(o, "there is no command '%s'", o->words[0]);
        }
        help_command(command);
    } else {
        help_overview();
    }
    return flush_output(o, stdout, "standard output");
}

int cmd_version(const options *o)
{
    printf("loam %s\n", loam_version());
    return flush_output(o, stdout, "standard output");
}
