/* progress.c - one line on stderr that is redrawn: "quantizing  [######    ]  61 %  8 s". Silent where stderr is no terminal,
 * and in the first second. */
#include <string.h>
#include <unistd.h>

#include "util.h"

#define SECOND 1000000000u
#define WIDTH  30

void progress_begin(progress *p, const char *what, uint64_t total)
{
    *p = (progress){ .what = what, .total = total ? total : 1, .start_ns = now_ns(), .terminal = isatty(STDERR_FILENO) };
}

void progress_at(progress *p, uint64_t done)
{
    uint64_t now = p->terminal ? now_ns() : 0;
    if (!p->terminal || now - p->start_ns < SECOND || (p->drawn && now - p->drawn_ns < SECOND / 10)) return;
    double share = done < p->total ? (double)done / (double)p->total : 1, seconds = (double)(now - p->start_ns) / SECOND;
    char bar[WIDTH + 1];
    memset(bar, ' ', WIDTH);
    memset(bar, '#', (size_t)(share * WIDTH));
    bar[WIDTH] = 0;
    fprintf(stderr, "\r%s [%s] %3.0f %%", p->what, bar, share * 100);
    if (share > 0.01) fprintf(stderr, " %.0f s left   ", seconds / share - seconds);
    fflush(stderr);
    p->drawn = true;
    p->drawn_ns = now;
}

void progress_end(progress *p)
{
    if (p->drawn) fprintf(stderr, "\r\033[K");
    p->drawn = false;
}
