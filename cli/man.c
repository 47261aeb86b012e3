/* man.c - the manual page and the shell completions, printed from the tables of commands and options. */
#include <stdio.h>
#include <string.h>

#include "loam/status.h"
#include "loam/tensor.h"
#include "options.h"

/* ---- the manual page ---- */

/* Text for troff: hyphens that are part of names, backslashes, and lines that would begin with a control character. */
static void troff(const char *text)
{
    if (*text == '.' || *text == '\'') fputs("\\&", stdout);
    for (; *text; text++) {
        if (*text == '-') fputs("\\-", stdout);
        else if (*text == '\\') fputs("\\e", stdout);
        else putchar(*text);
    }
}

static void man_option(const option_row *row)
{
    char name[32];
    printf(".TP\n");
    for (const char *p = row->names; p;) {
        p = option_name(p, name);
        printf("\\fB");
        troff(name);
        printf("\\fR%s", p ? ", " : "");
    }
    if (*row->argument) printf(" \\fI%s\\fR", row->argument);
    putchar('\n');
    troff(row->help);
    if (*row->fallback) {
        printf(" (default ");
        troff(row->fallback);
        putchar(')');
    }
    putchar('\n');
}

void help_man(void)
{
    printf(".TH LOAM 1 \"\" \"loam %s\" \"User Commands\"\n.SH NAME\nloam \\- run, quantize and measure language models\n.SH "
           "SYNOPSIS\n"
           ".B loam\n\\fICOMMAND\\fR [\\fIoption\\fR...]\n.SH DESCRIPTION\nLoam runs language models from GGUF files on the "
           "processor of "
           "this machine. Nothing leaves the machine; a model is fetched only where a command says so.\n.SH COMMANDS\n",
           loam_version());
    for (int c = 0; c < CMD_COUNT; c++) {
        printf(".SS loam ");
        troff(commands[c].name);
        if (*commands[c].arguments) printf(" \\fI%s\\fR", commands[c].arguments);
        putchar('\n');
        troff(commands[c].summary);
        printf(".\n");
        for (int i = 0; i < OPT_COUNT; i++)
            if (option_of(&option_rows[i], c) && i != OPT_HELP_FLAG) man_option(&option_rows[i]);
    }
    printf(".SH ENVIRONMENT\n.TP\n.B LOAM_MODEL\nthe model of run and bench without \\-m\n.TP\n.B LOAM_CPU\nrestricts the "
           "instruction sets "
           "used, such as avx2\n.TP\n.B XDG_CACHE_HOME\nwhere the default model is kept, in place of ~/.cache\n"
           ".SH EXIT STATUS\n0 done, 1 failed, 2 wrong usage.\n");
}

/* ---- completions ---- */

/* One word for `complete -W`, or nothing, for the values of an option. */
static void values_of(const option_row *row)
{
    if (row->kind == KIND_ONE)
        for (const char *p = row->argument; *p; p++) putchar(*p == '|' ? ' ' : *p);
    if (row->kind == KIND_TYPE || row->kind == KIND_CACHE)
        for (int t = 0; t < LOAM_TYPE_LIMIT; t++)
            if (loam_type_name(t)) printf("%s ", loam_type_name(t));
}

static void bash_words(int command)
{
    char name[32];
    for (int i = 0; i < OPT_COUNT; i++)
        for (const char *p = option_of(&option_rows[i], command) ? option_rows[i].names : NULL; p;) {
            p = option_name(p, name);
            printf("%s ", name);
        }
}

static void bash_values(void)
{
    char name[32];
    for (int i = 0; i < OPT_COUNT; i++) {
        const option_row *row = &option_rows[i];
        if (row->kind == KIND_FLAG) continue;
        printf("    ");
        for (int c = 0, first = 1; c < CMD_COUNT; c++)
            for (const char *p = option_of(row, c) ? row->names : NULL; p; first = 0) {
                p = option_name(p, name);
                printf("%s\"%s %s\"", first ? "" : "|", commands[c].name, name);
            }
        printf(") ");
        if (row->kind == KIND_FILE) {
            printf("COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n");
        } else {
            printf("COMPREPLY=($(compgen -W \"");
            values_of(row);
            printf("\" -- \"$word\")); return ;;\n");
        }
    }
}

static void first_words(void)
{
    char group[32];
    for (int c = 0; c < CMD_COUNT; c++)
        if (!command_tool(c, NULL)) printf("%s ", commands[c].name);
    for (int g = -1; (g = next_group(g, group)) >= 0;) printf("%s ", group);
}

static void completion_bash(void)
{
    char group[32], tools[256];
    printf("# completion of loam for bash: source it, or put it into bash-completion's folder\n_loam() {\n"
           "  local word=\"${COMP_WORDS[COMP_CWORD]}\" previous=\"${COMP_WORDS[COMP_CWORD-1]}\" command=\"${COMP_WORDS[1]}\"\n"
           "  if ((COMP_CWORD == 1)); then COMPREPLY=($(compgen -W \"");
    first_words();
    printf("\" -- \"$word\")); return; fi\n");
    for (int g = -1; (g = next_group(g, group)) >= 0;) {
        group_tools(group, " ", tools, sizeof tools);
        printf("  if [[ $command == %s ]]; then\n    if ((COMP_CWORD == 2)); then COMPREPLY=($(compgen -W \"%s\" -- \"$word\")); "
               "return; fi\n"
               "    command=\"%s ${COMP_WORDS[2]}\"\n  fi\n",
               group, tools, group);
    }
    printf("  case \"$command $previous\" in\n");
    bash_values();
    printf("  esac\n  if [[ $word != -* ]]; then COMPREPLY=($(compgen -f -- \"$word\")); return; fi\n  case \"$command\" in\n");
    for (int c = 0; c < CMD_COUNT; c++) {
        printf("    \"%s\") COMPREPLY=($(compgen -W \"", commands[c].name);
        bash_words(c);
        printf("\" -- \"$word\")) ;;\n");
    }
    printf("  esac\n}\ncomplete -o filenames -F _loam loam\n");
}

/* Inside single quotes, with the characters that _arguments gives a meaning to escaped. */
static void zsh_text(const char *text)
{
    for (; *text; text++) {
        if (*text == '\'') fputs("'\\''", stdout);
        else if (strchr("[]:\\", *text)) printf("\\%c", *text);
        else putchar(*text);
    }
}

static void zsh_option(const option_row *row)
{
    char name[32];
    for (const char *p = row->names; p;) {
        p = option_name(p, name);
        printf(" '%s%s[", row->kind == KIND_LIST ? "*" : "", name);
        zsh_text(row->help);
        printf("]");
        if (row->kind == KIND_FILE) {
            printf(":file:_files");
        } else if (row->kind == KIND_ONE || (row->kind == KIND_TYPE || row->kind == KIND_CACHE)) {
            printf(":value:(");
            values_of(row);
            printf(")");
        } else if (row->kind != KIND_FLAG) {
            printf(":%s: ", row->argument);
        }
        printf("'");
    }
}

static void completion_zsh(void)
{
    char group[32], tools[256];
    printf("#compdef loam\n_loam() {\n  local command=\"$words[2]\"\n  if ((CURRENT == 2)); then\n    local -a list=(");
    for (int c = 0; c < CMD_COUNT; c++)
        if (!command_tool(c, NULL)) printf("'%s:%s' ", commands[c].name, commands[c].summary);
    for (int g = -1; (g = next_group(g, group)) >= 0;) {
        group_tools(group, ", ", tools, sizeof tools);
        printf("'%s:%s' ", group, tools);
    }
    printf(")\n    _describe command list; return\n  fi\n");
    for (int g = -1; (g = next_group(g, group)) >= 0;) {
        group_tools(group, " ", tools, sizeof tools);
        printf("  if [[ $command == %s ]]; then\n    if ((CURRENT == 3)); then compadd %s; return; fi\n"
               "    command=\"%s $words[3]\"\n  fi\n",
               group, tools, group);
    }
    printf("  case \"$command\" in\n");
    for (int c = 0; c < CMD_COUNT; c++) {
        printf("    '%s') _arguments", commands[c].name);
        for (int i = 0; i < OPT_COUNT; i++)
            if (option_of(&option_rows[i], c)) zsh_option(&option_rows[i]);
        printf(" '*:file:_files' ;;\n");
    }
    printf("  esac\n}\n_loam \"$@\"\n");
}

/* Inside single quotes of fish. */
static void fish_text(const char *text)
{
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\') putchar('\\');
        putchar(*text);
    }
}

/* A command is recognized by its last word. */
static void fish_option(const option_row *row, const char *word)
{
    char name[32];
    for (const char *p = row->names; p;) {
        p = option_name(p, name);
        bool is_long = name[1] == '-';
        char kind = is_long ? 'l' : name[2] ? 'o' : 's';
        printf("complete -c loam -n '__fish_seen_subcommand_from %s' -%c %s", word, kind, name + (is_long ? 2 : 1));
        if (row->kind != KIND_FLAG) printf(row->kind == KIND_FILE ? " -r" : " -x");
        if (row->kind == KIND_ONE || (row->kind == KIND_TYPE || row->kind == KIND_CACHE)) {
            printf(" -a '");
            values_of(row);
            printf("'");
        }
        printf(" -d '");
        fish_text(row->help);
        printf("'\n");
    }
}

static void completion_fish(void)
{
    char group[32], tools[256];
    printf("# completion of loam for fish\ncomplete -c loam -n __fish_use_subcommand -f\n");
    for (int c = 0; c < CMD_COUNT; c++) {
        if (command_tool(c, NULL)) continue;
        printf("complete -c loam -n __fish_use_subcommand -a %s -d '", commands[c].name);
        fish_text(commands[c].summary);
        printf("'\n");
    }
    for (int g = -1; (g = next_group(g, group)) >= 0;) {
        group_tools(group, " ", tools, sizeof tools);
        printf("complete -c loam -n __fish_use_subcommand -a %s -d '%s'\n", group, tools);
        printf("complete -c loam -n '__fish_seen_subcommand_from %s' -f -a '%s'\n", group, tools);
    }
    for (int c = 0; c < CMD_COUNT; c++)
        for (int i = 0; i < OPT_COUNT; i++)
            if (option_of(&option_rows[i], c))
                fish_option(&option_rows[i], command_tool(c, NULL) ? command_tool(c, NULL) : commands[c].name);
}

void help_completion(const char *shell)
{
    if (strcmp(shell, "zsh") == 0) completion_zsh();
    else if (strcmp(shell, "fish") == 0) completion_fish();
    else completion_bash();
}
