/* options.h - the command line: commands, options and their values. */
#ifndef LOAM_CLI_OPTIONS_H
#define LOAM_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

typedef struct options options;
typedef int command_fn(const options *o);

typedef enum command_id {
#define COMMAND(id, name, function, arguments, least, most, summary) CMD_##id,
#include "commands.def"
#undef COMMAND
    CMD_COUNT
} command_id;

#define COMMAND(id, name, function, arguments, least, most, summary) command_fn function;
#include "commands.def"
#undef COMMAND

typedef struct command_row {
    const char *name;
    command_fn *run;
    const char *arguments;
    int least, most;
    const char *summary;
} command_row;

_Static_assert(CMD_COUNT <= 64, "an option has a bit for each command");

extern const command_row commands[CMD_COUNT];

typedef enum option_kind { KIND_FLAG, KIND_INT, KIND_NUM, KIND_TEXT, KIND_FILE, KIND_TYPE, KIND_CACHE, KIND_ONE, KIND_LIST } option_kind;

typedef enum option_id {
#define OPTION(id, group, kind, names, argument, lo, hi, fallback, commands, help) OPT_##id,
#include "options.def"
#undef OPTION
    OPT_COUNT
} option_id;

typedef struct option_row {
    const char *group;
    option_kind kind;
    const char *names;    /* "-m,--model" */
    const char *argument; /* "FILE" */
    double lo, hi;
    const char *fallback;
    uint64_t commands; /* bit 1 << CMD_... */
    const char *help;
} option_row;

extern const option_row option_rows[OPT_COUNT];

static inline bool option_of(const option_row *row, int command) { return row->commands >> command & 1u; }

/* One name of a row's list: writes it to name [32]; returns the rest of the list, NULL after the last. */
const char *option_name(const char *names, char name[32]);
const char *option_shown_name(option_id id); /* the longest name, for messages; static storage */

typedef struct option_value {
    bool given;
    int64_t i;
    double f;
    const char *s;
} option_value;

struct options {
    int command;
    option_value v[OPT_COUNT];
    const char **list;  /* [n_list] values of LIST options in order ... */
    option_id *list_of; /* ... and whose they are */
    int n_list;
    const char **words; /* [n_words] arguments that are not options */
    int n_words;
};

/* Reads argv. Returns EXIT_DONE with *o filled, or EXIT_USAGE after a message on stderr. Strings point into argv. */
int options_parse(options *o, int argc, char **argv);
void options_free(options *o);

/* Values, or the default of the row. */
bool opt_given(const options *o, option_id id);
int64_t opt_int(const options *o, option_id id);
double opt_num(const options *o, option_id id);
int opt_type(const options *o, option_id id);         /* a loam_type */
const char *opt_text(const options *o, option_id id); /* NULL where not given */

/* The command named by argv[1] (and argv[2]); *used words were taken. -1: none. */
int command_find(int argc, char **argv, int *used);

/* Of a command of two words, "debug eval": its tool "eval" where the group is `group`, or any group for NULL. NULL otherwise. */
const char *command_tool(int command, const char *group);
/* The tools of a group, separated by `between`, to text [size]; empty where there is no such group. */
void group_tools(const char *group, const char *between, char *text, size_t size);
/* Groups one after another: index of the first command after `after` (-1: of all) that opens a group, its name to group [32];
 * -1: no more. */
int next_group(int after, char group[32]);

/* The nearest of the names that `next` yields to `word`, NULL where none is near. */
typedef struct nearest {
    const char *word;
    char best[32];
    int distance;
} nearest;
void nearest_begin(nearest *n, const char *word);
void nearest_offer(nearest *n, const char *name);

/* help.c, man.c */
void help_command(int command);
void help_overview(void);
void help_man(void);
void help_completion(const char *shell);

#endif
