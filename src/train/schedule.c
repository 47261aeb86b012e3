/* schedule.c - learning rates as closed forms of the update's number. */
#include "base/mathd.h"
#include "loam/train.h"

#define PI 3.14159265358979323846

double loam_schedule_rate(const loam_schedule *s, int64_t update)
{
    int64_t first = s->warmup > 1 ? s->warmup : 1; /* the update with the whole rate */
    if (update < 1) update = 1;
    if (update < first) return s->base * ((double)update / (double)first);
    int64_t steps = s->total - first; /* updates left after it */
    if (s->decay >= 0 && s->decay < steps) steps = s->decay;
    int64_t done = update - (s->total - steps);
    if (s->kind == LOAM_DECAY_NONE || steps <= 0 || done <= 0) return s->base;
    if (done >= steps) return s->floor;
    double part = (double)done / (double)steps;
    if (s->kind == LOAM_DECAY_LINEAR) return s->base + (s->floor - s->base) * part;
    double sn, cs;
    mathd_sincos(PI * part, &sn, &cs);
    return s->floor + (s->base - s->floor) * 0.5 * (1.0 + cs);
}
