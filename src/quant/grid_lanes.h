/* grid_lanes.h - the searches of the grid types (grid.h). The inverse scales of a group are tried at once, one in
 * each lane. See lanes.h for the vectors. */

/* The entry of a point: its own or the best neighbour for scale. *off becomes true for a neighbour. */
LANES_TARGET static int grid_entry(const grid_index *index, int point, const float *x, const float *root, float scale,
                                   bool *off)
{
    *off = index->place[point] < 0;
    if (!*off) return index->place[point];
    float table[8][8] __attribute__((aligned(32)));
    static const float levels[8] __attribute__((aligned(32))) = { 1, 3, 5, 7, 9, 11, 13, 15 };
    for (int i = 0; i < index->digits; i++)
        for (int d = 0; d < 8; d += LANES) {
            vf e = scale * LOAD(&levels[d]) - x[i];
            STORE(&table[i][d], root[i] * e * e);
        }
    return GRID_NEAREST(index, point, table);
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
        const int lanes = tries - t0 < LANES ? tries - t0 : LANES;
        uint16_t entry[8][LANES];
        float level[32][LANES] __attribute__((aligned(32)));
        unsigned off[LANES] = { 0 };
        grid_points(index, group, g + t0, points);
        if (lanes < LANES) memset(level, 0, sizeof level);
        for (int l = 0; l < lanes; l++)
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
        for (int l = 0; l < lanes; l++) {
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

const search_ops OPS = { fit_sym, fit_sym_descent, fit_min, fit_iq4, grid_search, grid_choose, GRID_NEAREST };
