/* limits.h - what bounds a model's speed on this machine, and how much of that a speed is. */
#ifndef LOAM_CLI_LIMITS_H
#define LOAM_CLI_LIMITS_H

#include "loam/debug.h"
#include "util.h"

#define LIMITS_READS 10 /* of the file, at least; the best one counts */

typedef struct limits {
    char *path;                  /* of the model */
    loam_limits best;            /* of the threads of -t */
    double int_macs, float_macs; /* multiply-adds with weights that a token of a prompt takes: block types, floats */
    double bytes;                /* of weights that a generated token takes */
    bool experts;                /* several tokens take different weights */
} limits;

/* An exit code each; everything but EXIT_DONE comes after a message. The model has to be a GGUF file of one part. */
int limits_begin(limits *l, const options *o);
int limits_measure(limits *l, const options *o); /* once more */
void limits_end(limits *l);                      /* also of a zeroed one */

/* 0 .. 1, NAN where the limit is not known. Speeds in tokens per second, of all sequences together. */
double limits_share_reading(const limits *l, double speed);                    /* of the multiply-adds */
double limits_share_writing(const limits *l, double speed, int32_t sequences); /* of the read bandwidth */

void limits_print(const limits *l);
void limits_json(const limits *l, json *j); /* the member "limits" */

#endif
