/* util.h - what every command needs: messages, memory, texts from files, progress, JSON. */
#ifndef LOAM_CLI_UTIL_H
#define LOAM_CLI_UTIL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "loam/status.h"
#include "options.h"

/* ---- messages: "loam COMMAND: text" on stderr ---- */

int say_failed(const options *o, const char *fmt, ...) __attribute__((format(printf, 2, 3))); /* returns EXIT_FAILED */
int say_usage(const options *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));  /* returns EXIT_USAGE */
int say_error(const options *o, const loam_error *err);                                       /* returns EXIT_FAILED */
void say_note(const options *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void show_log(const options *o); /* the library's warnings go to stderr; with --verbose all of its lines */
int flush_output(const options *o, FILE *f, const char *name); /* EXIT_FAILED where writing had failed, e.g. on a full disk */

/* ---- memory ---- */

void *need(void *p); /* p; ends the program with a message where it is NULL */

typedef struct buffer {
    char *data; /* terminated */
    size_t len, cap;
} buffer;
void buffer_add(buffer *b, const void *data, size_t n);
void buffer_free(buffer *b);

/* ---- texts ---- */

/* A whole file, "-": standard input. False after a message. */
bool read_file(const options *o, const char *path, buffer *out);
/* Turns \n \t \r \\ \" \' \xHH into what they stand for, in place. */
void unescape(buffer *b);
/* Whole numbers separated by white space or commas: *ids [*n], for free(). False after a message that names the place. */
bool parse_ids(const options *o, const char *name, const buffer *text, int32_t **ids, size_t *n);

/* ---- machine ---- */

uint64_t now_ns(void);
uint64_t process_age_ns(void); /* since the process started, its loading included */
uint64_t resident_bytes(uint64_t *anonymous);
uint64_t peak_resident_bytes(void);
const char *environment(const char *name); /* env.c; NULL where unset or empty */

/* ---- progress: a bar on stderr, when that is a terminal and the work takes longer than a second ---- */

typedef struct progress {
    const char *what;
    uint64_t total, start_ns, drawn_ns;
    bool terminal, drawn;
} progress;
void progress_begin(progress *p, const char *what, uint64_t total);
void progress_at(progress *p, uint64_t done);
void progress_end(progress *p);

/* ---- JSON, written as it comes. key NULL inside arrays ---- */

typedef struct json {
    FILE *f;
    int depth;
    bool one_line; /* no line breaks but the last: JSON lines */
    bool comma[32];
} json;
void json_begin(json *j, FILE *f);
void json_open(json *j, const char *key, char bracket);                 /* '{' or '[' */
void json_close(json *j, char bracket);                                 /* '}' or ']' */
void json_text(json *j, const char *key, const char *text, size_t len); /* bytes that are not UTF-8 become U+FFFD */
void json_string(json *j, const char *key, const char *text);
void json_int(json *j, const char *key, int64_t v);
void json_num(json *j, const char *key, double v); /* null where not finite */
void json_bool(json *j, const char *key, bool v);
void json_null(json *j, const char *key);
/* Reads the JSON string at *p (white space before it is skipped), adds it to out and moves *p behind it. False: *why tells. */
bool json_read_string(const char **p, const char *end, buffer *out, const char **why);
/* Reads the string value of a key of the object in text. False where the text is no object or has no such string; *why tells. */
bool json_find_text(const char *text, size_t len, const char *key, buffer *out, const char **why);

#endif
