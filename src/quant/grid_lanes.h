/* grid_lanes.h - the searches of the grid types (grid.h). Two things are done at once: the inverse scales of a group, one in
 * each lane, and the entries of a chunk of neighbours. See lanes.h for the vectors. */

typedef int8_t vb __attribute__((vector_size(LANES)));

LANES_TARGET static int grid_nearest(const grid_index *index, int point, const float *x, const float *w, const float fit[2])
{
    const int first = -1 - index->place[point], chunks = index->chunks[point];
    vf best = ALL(INFINITY);
    vi best_at = { 0 };
    for (int k = 0; k < chunks; k++) {
        const int8_t(*levels)[GRID_CHUNK] = index->levels + (first + k) * index->digits;
        for (int c = 0; c < GRID_CHUNK; c += LANES) {
            vf sum = { 0 };
            for (int i = 0; i < index->digits; i++) {
                vb bytes;
                memcpy(&bytes, &levels[i][c], sizeof bytes);
                vf e = ALL(fit[0]) * (__builtin_convertvector(bytes, vf) + fit[1]) - x[i];
                sum += w[i] * e * e;
            }
            vi less = sum < best;
            best = SELECT(less, sum, best);
            best_at = (less & (k * GRID_CHUNK + c)) | (~less & best_at);
        }
    }
    int lane = 0;
    for (int l = 1; l < LANES; l++) {
        /* Equal sums: the entry that comes first in the list. */
        int at = best_at[l] + l, kept = best_at[lane] + lane;
        if (best[l] < best[lane] || (best[l] == best[lane] && at < kept)) lane = l;
    }
    return index->list[first][best_at[lane] + lane];
}

/* The entry of a point: its own or the best neighbour for scale. *off becomes true for a neighbour. */
LANES_TARGET static int grid_entry(const grid_index *index, int point, const float *x, const float *root, float scale,
                                   bool *off)
{
    const float fit[2] = { scale, 0.0f };
    *off = index->place[point] < 0;
    return *off ? grid_nearest(index, point, x, root, fit) : index->place[point];
}

/* Points of all parts of the group for LANES inverse scales: points[part][lane]. */
FN grid_points(const grid_index *index, const grid_group *group, const float *g, int32_t points[8][LANES])
{
    const float top = (float)(index->base - 1);
    vf inverse;
    memcpy(&inverse, g, sizeof inverse);
    for (int part = 0; part < group->n / index->digits; part++) {
        const float *x = group->x + part * index->digits;
        vf point = { 0 };
        for (int i = index->digits - 1; i >= 0; i--) {
            vf digit = BOUND(ROUND(ALL(0.5f) * (inverse * x[i] - 1.0f)), 0, top);
            point = point * (float)index->base + digit;
        }
        for (int l = 0; l < LANES; l++) points[part][l] = (int32_t)point[l];
    }
}

FN grid_search(const grid_index *index, grid_group *group, const float *g, int tries)
{
    const int digits = index->digits, parts = group->n / digits;
    float gain = 0.0f;
    group->a = 0.0f;
    group->off = 0;
    for (int t0 = 0; t0 < tries; t0 += LANES) {
        int32_t points[8][LANES];
        uint16_t entry[8][LANES] = { { 0 } };
        float level[32][LANES] __attribute__((aligned(32))) = { { 0 } };
        unsigned off[LANES] = { 0 };
        grid_points(index, group, g + t0, points);
        for (int l = 0; l < LANES && t0 + l < tries; l++)
            for (int part = 0; part < parts; part++) {
                bool neighbour;
                int e = grid_entry(index, points[part][l], group->x + part * digits, group->root + part * digits,
                                   1.0f / g[t0 + l], &neighbour);
                entry[part][l] = (uint16_t)e;
                off[l] |= (unsigned)neighbour << part;
                for (int i = 0; i < digits; i++) level[part * digits + i][l] = (float)index->entry[e][i];
            }
        vf A = { 0 }, B = { 0 };
        for (int i = 0; i < group->n; i++) {
            vf q = LOAD(level[i]);
            A += group->w[i] * group->x[i] * q;
            B += group->w[i] * q * q;
        }
        for (int l = 0; l < LANES && t0 + l < tries; l++) {
            if (!(B[l] > 0.0f && A[l] > 0.0f && A[l] * A[l] > gain * B[l])) continue;
            group->a = A[l] / B[l];
            gain = group->a * A[l];
            group->off = off[l];
            for (int part = 0; part < parts; part++) group->entry[part] = entry[part][l];
        }
    }
}

FN grid_choose(const grid_index *index, grid_group *group, unsigned which, float scale)
{
    const int digits = index->digits;
    int32_t points[8][LANES];
    float g[LANES], A = 0.0f, B = 0.0f;
    for (int l = 0; l < LANES; l++) g[l] = 1.0f / scale;
    grid_points(index, group, g, points);
    for (int part = 0; part < group->n / digits; part++) {
        const float *x = group->x + part * digits, *w = group->w + part * digits;
        bool neighbour;
        if (which >> part & 1)
            group->entry[part] = (uint16_t)grid_entry(index, points[part][0], x, group->root + part * digits, scale, &neighbour);
        for (int i = 0; i < digits; i++) {
            float q = (float)index->entry[group->entry[part]][i];
            A += w[i] * x[i] * q;
            B += w[i] * q * q;
        }
    }
    if (B > 0.0f && A > 0.0f) group->a = A / B;
}

const search_ops OPS = { fit_sym, fit_sym_descent, fit_min, fit_iq4, grid_search, grid_choose, grid_nearest };
